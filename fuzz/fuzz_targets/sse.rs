//! Events: a reader by the book gets exactly what was put in, whatever it holds.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mcp_http::codec::sse::{Event, comment};

#[derive(Arbitrary, Debug)]
struct Input {
    data: Vec<u8>,
    id: Option<String>,
    name: Option<String>,
    retry: Option<u64>,
    comment: String,
}

fuzz_target!(|input: Input| {
    let mut event = Event::new(&input.data);
    if let Some(id) = &input.id {
        event = event.with_id(id);
    }
    if let Some(name) = &input.name {
        event = event.with_name(name);
    }
    if let Some(retry) = input.retry {
        event = event.with_retry(Duration::from_millis(retry));
    }
    let encoded = event.encode();
    let said = comment(&input.comment);
    let texts = input.id.as_ref().map_or(0, String::len) + input.name.as_ref().map_or(0, String::len);
    assert!(encoded.len() <= 64 + texts + 8 * (input.data.len() + 1), "{} bytes", encoded.len());

    // Comments around an event change nothing.
    let stream = [&*said, &*encoded, &*said].concat();
    let mut read = Vec::new();
    read_events(&stream, &mut read);
    let [found] = &*read else { panic!("{} events in {stream:?}", read.len()) };
    let one_line = |text: &Option<String>| text.as_ref().map(|text| text.replace(['\n', '\r', '\0'], "").into_bytes());
    assert_eq!(found.data, breaks_as_line_feeds(&input.data));
    assert_eq!(found.id, one_line(&input.id));
    assert_eq!(found.name, one_line(&input.name));
    assert_eq!(found.retry, input.retry);
});

#[derive(Default)]
struct Found {
    data: Vec<u8>,
    has_data: bool,
    id: Option<Vec<u8>>,
    name: Option<Vec<u8>>,
    retry: Option<u64>,
}

/// The reader of the HTML standard, written down anew, for streams of whole events.
fn read_events(stream: &[u8], events: &mut Vec<Found>) {
    let mut event = Found::default();
    for line in breaks_as_line_feeds(stream).split(|byte| *byte == b'\n') {
        if line.is_empty() {
            let event = std::mem::take(&mut event);
            // An event without data is not told.
            if event.has_data {
                events.push(event);
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"" => {}
            b"data" => {
                if std::mem::replace(&mut event.has_data, true) {
                    event.data.push(b'\n');
                }
                event.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => event.id = Some(value.to_vec()),
            b"event" => event.name = Some(value.to_vec()),
            b"retry" => event.retry = Some(std::str::from_utf8(value).unwrap().parse().unwrap()),
            other => panic!("a field called {other:?}"),
        }
    }
}

fn breaks_as_line_feeds(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut bytes = bytes.iter().peekable();
    while let Some(byte) = bytes.next() {
        if *byte == b'\r' {
            bytes.next_if(|next| **next == b'\n');
            out.push(b'\n');
        } else {
            out.push(*byte);
        }
    }
    out
}
