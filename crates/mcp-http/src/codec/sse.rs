//! Encodes events of the `text/event-stream` format.
//!
//! Why here: the one place that knows how a frame becomes lines, for both eras.
//! Invariants: no field can start another line or end its event; one event is one allocation of exactly its size.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Receiving Messages"

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2;

/// One event, still to be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    id: Option<&'a str>,
    retry: Option<Duration>,
    name: Option<&'a str>,
    data: &'a [u8],
}

impl<'a> Event<'a> {
    /// An event with `data` only.
    ///
    /// Each line of `data` gets a `data:` field. The format has one kind of line break, so the reader sees `\r\n` and
    /// `\r` as `\n`; in JSON, where breaks stand between tokens only, this changes nothing.
    #[must_use]
    pub const fn new(data: &'a [u8]) -> Self {
        Self { id: None, retry: None, name: None, data }
    }

    /// An event that carries no message: it gives the client an id to resume from before there is anything to say.
    #[must_use]
    pub const fn priming(id: &'a str) -> Self {
        Self::new(b"").with_id(id)
    }

    /// Adds the id a client may resume after. Line breaks and NUL in it are left out.
    #[must_use]
    pub const fn with_id(mut self, id: &'a str) -> Self {
        self.id = Some(id);
        self
    }

    /// Adds how long a client waits before it connects again, sent in whole milliseconds.
    #[must_use]
    pub const fn with_retry(mut self, retry: Duration) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Adds the event's name; without one it is a `message`. Line breaks and NUL in it are left out.
    #[must_use]
    pub const fn with_name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// The event as it is sent, with the blank line that ends it.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let retry = self.retry.map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX));
        let size = self.id.map_or(0, |id| field_size(ID, one_line(id).count()))
            + retry.map_or(0, |retry| field_size(RETRY, decimal_digits(retry)))
            + self.name.map_or(0, |name| field_size(NAME, one_line(name).count()))
            + Lines(Some(self.data)).map(|line| field_size(DATA, line.len())).sum::<usize>()
            + 1;
        let mut text = Vec::with_capacity(size);
        if let Some(id) = self.id {
            text.extend_from_slice(ID);
            text.extend(one_line(id));
            text.push(b'\n');
        }
        if let Some(retry) = retry {
            text.extend_from_slice(RETRY);
            // Writing into a vector cannot fail.
            let _ = writeln!(text, "{retry}");
        }
        if let Some(name) = self.name {
            text.extend_from_slice(NAME);
            text.extend(one_line(name));
            text.push(b'\n');
        }
        for line in Lines(Some(self.data)) {
            text.extend_from_slice(DATA);
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        text.push(b'\n');
        // `Bytes` takes a full vector over as it is; with room to spare it would allocate again.
        debug_assert_eq!(text.len(), size);
        Bytes::from(text)
    }
}

/// A comment, which clients skip. Line breaks and NUL in it are left out.
#[must_use]
pub fn comment(text: &str) -> Bytes {
    let mut line = Vec::with_capacity(text.len() + 4);
    line.extend_from_slice(b": ");
    line.extend(one_line(text));
    line.extend_from_slice(b"\n\n");
    Bytes::from(line)
}

/// The shortest comment: it shows proxies that the stream lives. Costs no allocation.
#[must_use]
pub const fn keep_alive() -> Bytes {
    Bytes::from_static(b":\n\n")
}

const ID: &[u8] = b"id: ";
const RETRY: &[u8] = b"retry: ";
const NAME: &[u8] = b"event: ";
const DATA: &[u8] = b"data: ";

const fn field_size(name: &[u8], value: usize) -> usize {
    name.len() + value + 1
}

const fn decimal_digits(number: u64) -> usize {
    match number.checked_ilog10() {
        Some(power) => power as usize + 1,
        None => 1,
    }
}

fn one_line(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | 0))
}

/// The lines between `\n`, `\r\n` and `\r`; at least one, and an empty last one after a final break.
struct Lines<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0.take()?;
        let Some(end) = memchr2(b'\n', b'\r', rest) else { return Some(rest) };
        let (line, after) = rest.split_at(end);
        self.0 = after.strip_prefix(b"\r\n").or_else(|| after.get(1..));
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(event: Event<'_>) -> String {
        String::from_utf8(event.encode().to_vec()).unwrap()
    }

    #[test]
    fn a_frame_without_breaks_is_one_data_line() {
        assert_eq!(text(Event::new(br#"{"jsonrpc":"2.0"}"#)), "data: {\"jsonrpc\":\"2.0\"}\n\n");
    }

    #[test]
    fn all_fields_stand_before_the_data() {
        let event = Event::new(b"x").with_id("7").with_retry(Duration::from_millis(1500)).with_name("endpoint");
        assert_eq!(text(event), "id: 7\nretry: 1500\nevent: endpoint\ndata: x\n\n");
    }

    #[test]
    fn every_kind_of_line_break_starts_a_new_data_line() {
        let expected = "data: a\ndata: b\ndata: c\ndata: \ndata: d\ndata: \n\n";
        assert_eq!(text(Event::new(b"a\nb\r\nc\r\rd\n")), expected);
    }

    #[test]
    fn a_priming_event_has_an_id_and_empty_data() {
        assert_eq!(text(Event::priming("s:1")), "id: s:1\ndata: \n\n");
    }

    #[test]
    fn an_id_or_a_name_cannot_add_a_line() {
        let event = Event::new(b"x").with_id("1\ndata: forged\0").with_name("a\r\n\r\nb");
        assert_eq!(text(event), "id: 1data: forged\nevent: ab\ndata: x\n\n");
        assert_eq!(comment("a\n\ndata: b"), ": adata: b\n\n");
    }

    #[test]
    fn retry_times_are_whole_milliseconds_within_64_bits() {
        assert_eq!(text(Event::new(b"").with_retry(Duration::from_micros(999))), "retry: 0\ndata: \n\n");
        let longest = text(Event::new(b"").with_retry(Duration::MAX));
        assert_eq!(longest, format!("retry: {}\ndata: \n\n", u64::MAX));
    }

    /// A reader after the format's own rules, written apart from the encoder.
    #[derive(Debug, Default, PartialEq)]
    struct Seen {
        id: String,
        retry: Option<u64>,
        name: String,
        data: Vec<u8>,
    }

    fn decode(stream: &[u8]) -> Vec<Seen> {
        let mut stream = stream.strip_prefix("\u{feff}".as_bytes()).unwrap_or(stream);
        let (mut events, mut open, mut last_id) = (Vec::new(), Seen::default(), String::new());
        while let Some(end) = stream.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            let (line, rest) = stream.split_at(end);
            stream = rest.strip_prefix(b"\r\n").unwrap_or_else(|| &rest[1..]);
            let (field, value) = match line.iter().position(|byte| *byte == b':') {
                Some(colon) => {
                    let value = &line[colon + 1..];
                    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
                }
                None => (line, &b""[..]),
            };
            match (line, field) {
                (b"", _) => {
                    let mut seen = std::mem::take(&mut open);
                    if seen.data.pop().is_some() {
                        seen.id.clone_from(&last_id);
                        events.push(seen);
                    }
                }
                (_, b"data") => open.data.extend(value.iter().chain(b"\n")),
                (_, b"event") => open.name = String::from_utf8(value.to_vec()).unwrap(),
                (_, b"id") if !value.contains(&0) => last_id = String::from_utf8(value.to_vec()).unwrap(),
                (_, b"retry") => open.retry = std::str::from_utf8(value).unwrap().parse().ok(),
                _ => {}
            }
        }
        events
    }

    #[test]
    fn the_test_reader_follows_the_format() {
        let stream =
            b"\xEF\xBB\xBFdata: a\r\n\r\n: note\rid:5\rdata\rdata:  b\r\rodd: x\nevent: e\n\nretry: 3\ndata:\n\n";
        let seen = |id: &str, retry, data: &[u8]| Seen { id: id.into(), retry, name: String::new(), data: data.into() };
        assert_eq!(decode(stream), [seen("", None, b"a"), seen("5", None, b"\n b"), seen("5", Some(3), b"")]);
    }

    fn normalized(data: &[u8]) -> Vec<u8> {
        String::from_utf8_lossy(data).replace("\r\n", "\n").replace('\r', "\n").into_bytes()
    }

    fn kept(text: &str) -> String {
        text.replace(['\r', '\n', '\0'], "")
    }

    proptest! {
        #[test]
        fn a_reader_gets_back_what_was_sent(
            sent in proptest::collection::vec((
                proptest::option::of(any::<String>()),
                proptest::option::of(any::<u32>()),
                proptest::option::of("[a-z\r\n\0: ]{0,8}"),
                "([a-z\r\n: \u{feff}]|\\PC|\r\n|data: |\n\n){0,12}",
            ), 0..6),
            starts_with_mark in any::<bool>(),
        ) {
            let mut stream = if starts_with_mark { "\u{feff}".as_bytes().to_vec() } else { Vec::new() };
            let (mut expected, mut last_id) = (Vec::new(), String::new());
            for (id, retry, name, data) in &sent {
                let mut event = Event::new(data.as_bytes());
                if let Some(id) = id {
                    event = event.with_id(id);
                    last_id = kept(id);
                }
                if let Some(retry) = retry {
                    event = event.with_retry(Duration::from_millis(u64::from(*retry)));
                }
                if let Some(name) = name {
                    event = event.with_name(name);
                }
                stream.extend(event.encode());
                stream.extend(comment(data));
                stream.extend(keep_alive());
                expected.push(Seen {
                    id: last_id.clone(),
                    retry: retry.map(u64::from),
                    name: kept(name.as_deref().unwrap_or_default()),
                    data: normalized(data.as_bytes()),
                });
            }
            prop_assert_eq!(decode(&stream), expected);
        }
    }
}
