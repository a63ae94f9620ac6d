//! Which kinds of answer a client takes, and whether a body claims to be JSON.
//!
//! Why here: negotiation is decided once, before a request is read, and the same in both eras.
//! Invariants: linear in the header's length, no allocation; what cannot be parsed is passed over.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Sending Messages"; RFC 9110 12.5.1

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use super::mirror::{exactly_one, is_repeated};

/// What a client takes as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accepted {
    /// One JSON document.
    pub json: bool,
    /// A stream of events.
    pub event_stream: bool,
    /// Rather a stream: it is the only one, has the higher weight, or is listed first with the same weight.
    pub prefers_event_stream: bool,
}

impl Accepted {
    /// Whether a response that is there at once is better sent as one document.
    #[must_use]
    pub const fn takes_document(self) -> bool {
        self.json && !self.prefers_event_stream
    }

    /// What the `Accept` headers say. Without any, or with empty ones, everything is taken.
    ///
    /// The most specific range decides about a type (`*/*, application/json;q=0` takes no JSON); of several equally
    /// specific ones the greatest weight. A range whose weight is malformed is passed over.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        if let Some(common) = Self::common(headers) {
            return common;
        }
        let (mut json, mut event_stream) = (None, None);
        let lines = headers.get_all(ACCEPT).iter().map(HeaderValue::as_bytes);
        let ranges = lines.flat_map(|line| Pieces { rest: Some(line), separator: b',' });
        let mut listed = false;
        for (position, range) in ranges.filter(|range| !range.is_empty()).enumerate() {
            listed = true;
            let mut parts = Pieces { rest: Some(range), separator: b';' };
            let media_range = parts.next().unwrap_or_default();
            let Some(weight) = weight(parts) else { continue };
            let choice = |specificity| Choice { specificity, weight, position };
            Choice::improve(&mut json, specificity(media_range, b"application", b"json").map(choice));
            Choice::improve(&mut event_stream, specificity(media_range, b"text", b"event-stream").map(choice));
        }
        if !listed {
            return Self { json: true, event_stream: true, prefers_event_stream: false };
        }
        let json = json.filter(|choice| choice.weight > 0);
        let event_stream = event_stream.filter(|choice| choice.weight > 0);
        Self {
            json: json.is_some(),
            event_stream: event_stream.is_some(),
            prefers_event_stream: match (json, event_stream) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(json), Some(stream)) => {
                    stream.weight > json.weight || (stream.weight == json.weight && stream.position < json.position)
                }
            },
        }
    }

    /// What nearly every client sends, known at a glance.
    fn common(headers: &HeaderMap) -> Option<Self> {
        let prefers_event_stream = match headers.get(ACCEPT)?.as_bytes() {
            b"application/json, text/event-stream" | b"application/json,text/event-stream" => false,
            b"text/event-stream, application/json" | b"text/event-stream,application/json" => true,
            _ => return None,
        };
        let common = Self { json: true, event_stream: true, prefers_event_stream };
        (!is_repeated(headers, &ACCEPT)).then_some(common)
    }
}

/// Whether the body claims to be JSON: exactly one `Content-Type`, `application/json` in any case, with any
/// parameters.
#[must_use]
pub fn content_type_is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(value)) = exactly_one(headers, &CONTENT_TYPE) else { return false };
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// The range that decides about one type so far.
#[derive(Debug, Clone, Copy)]
struct Choice {
    /// 0 for `*/*`, 1 for `type/*`, 2 for the type itself.
    specificity: u8,
    /// In thousandths.
    weight: u16,
    position: usize,
}

impl Choice {
    fn improve(best: &mut Option<Self>, candidate: Option<Self>) {
        let rank = |choice: Self| (choice.specificity, choice.weight);
        if candidate.map(rank) > best.map(rank) {
            *best = candidate;
        }
    }
}

fn specificity(range: &[u8], kind: &[u8], subtype: &[u8]) -> Option<u8> {
    let slash = range.iter().position(|byte| *byte == b'/')?;
    let (range_kind, range_subtype) = (&range[..slash], &range[slash + 1..]);
    match (range_kind, range_subtype) {
        (b"*", b"*") => Some(0),
        (_, b"*") if range_kind.eq_ignore_ascii_case(kind) => Some(1),
        _ if range_kind.eq_ignore_ascii_case(kind) && range_subtype.eq_ignore_ascii_case(subtype) => Some(2),
        _ => None,
    }
}

/// The weight among a range's parameters, one if there is none; `None` if it is malformed.
fn weight(parameters: Pieces<'_>) -> Option<u16> {
    for parameter in parameters {
        if let [b'q' | b'Q', b'=', value @ ..] = parameter {
            return thousandths(value);
        }
    }
    Some(1000)
}

/// RFC 9110 12.4.2: from `0` to `1` with at most three digits after the point.
fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, digits) = match value {
        [whole @ (b'0' | b'1')] => (whole, &b""[..]),
        [whole @ (b'0' | b'1'), b'.', digits @ ..] if digits.len() <= 3 => (whole, digits),
        _ => return None,
    };
    let mut weight = u16::from(whole - b'0');
    for place in 0..3 {
        let digit = digits.get(place).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        weight = weight * 10 + u16::from(digit - b'0');
    }
    (weight <= 1000).then_some(weight)
}

/// Splits at a separator outside quoted strings; pieces come without surrounding blanks.
struct Pieces<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let (mut quoted, mut escaped) = (false, false);
        let end = rest.iter().position(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => return !quoted && *byte == self.separator,
            }
            false
        });
        let Some(end) = end else { return Some(rest.trim_ascii()) };
        self.rest = Some(&rest[end + 1..]);
        Some(rest[..end].trim_ascii())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use proptest::prelude::*;

    use super::*;

    fn headers(name: &HeaderName, lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), HeaderValue::from_bytes(line.as_bytes()).unwrap())).collect()
    }

    /// `j` takes JSON, `s` takes streams, `>` prefers streams.
    fn accepted(lines: &[&str]) -> String {
        let accepted = Accepted::from_headers(&headers(&ACCEPT, lines));
        let marks = [(accepted.json, 'j'), (accepted.event_stream, 's'), (accepted.prefers_event_stream, '>')];
        marks.into_iter().filter_map(|(holds, mark)| holds.then_some(mark)).collect()
    }

    #[test]
    fn the_variants_clients_send_are_understood() {
        for (lines, expected) in [
            (&["application/json, text/event-stream"][..], "js"),
            (&["text/event-stream, application/json"], "js>"),
            (&["*/*"], "js"),
            (&["application/*, text/*"], "js"),
            (&["Application/JSON;q=0.9, Text/Event-Stream"], "js>"),
            (&["application/json", "text/event-stream"], "js"),
            (&["text/event-stream", "application/json"], "js>"),
            (&[], "js"),
            (&[""], "js"),
            (&[" , ,"], "js"),
            (&["application/json"], "j"),
            (&["application/*"], "j"),
            (&["text/event-stream"], "s>"),
            (&["text/*"], "s>"),
            (&["text/html"], ""),
            (&["application/json;q=0, text/event-stream"], "s>"),
            (&["application/json;q=0"], ""),
            (&["*/*;q=0"], ""),
            (&["*/*, application/json;q=0"], "s>"),
            (&["application/json;q=0, */*;q=0.5"], "s>"),
            (&["text/event-stream;q=0.001, application/json;q=0.002"], "js"),
            (&["application/json;q=0.5, text/event-stream;q=1.000"], "js>"),
            (&["text/event-stream ; charset=utf-8 ; Q=0.2 , application/json"], "js"),
            (&["application/json;q=0.1, application/json;q=0.9, text/event-stream;q=0.5"], "js"),
        ] {
            assert_eq!(accepted(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn what_cannot_be_parsed_is_passed_over() {
        for (line, expected) in [
            ("application/json;q=2, text/event-stream", "s>"),
            ("application/json;q=1.001, text/event-stream", "s>"),
            ("application/json;q=0.1234, text/event-stream", "s>"),
            ("application/json;q=, text/event-stream", "s>"),
            ("application/json;q=-1, text/event-stream", "s>"),
            ("json, ;;, /, text/event-stream/x, */json, application/json", "j"),
            ("application/jsonp, xapplication/json, text/event-stream2", ""),
            ("text/html;title=\"a, application/json, \\\" b\", text/event-stream", "s>"),
            ("text/html;title=\"application/json", ""),
        ] {
            assert_eq!(accepted(&[line]), expected, "{line}");
        }
        let bytes = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_bytes(b"\xff/\xfe, application/json").unwrap())]);
        assert!(Accepted::from_headers(&bytes).json);
    }

    #[test]
    fn only_json_counts_as_json() {
        let is_json = |lines: &[&str]| content_type_is_json(&headers(&CONTENT_TYPE, lines));
        for line in ["application/json", "application/json;charset=UTF-8", "APPLICATION/JSON", "application/json ; a=b"]
        {
            assert!(is_json(&[line]), "{line}");
        }
        for line in [
            "application/jsonp",
            "text/plain",
            "",
            "json",
            "text/plain;application/json",
            "application/json, text/plain",
        ] {
            assert!(!is_json(&[line]), "{line}");
        }
        assert!(!is_json(&[]));
        assert!(!is_json(&["application/json", "text/plain"]));
    }

    proptest! {
        #[test]
        fn no_header_makes_negotiation_panic(bytes in any::<Vec<u8>>()) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let headers = HeaderMap::from_iter([(ACCEPT, value.clone()), (CONTENT_TYPE, value)]);
                let accepted = Accepted::from_headers(&headers);
                prop_assert!(accepted.event_stream || !accepted.prefers_event_stream);
                let _ = content_type_is_json(&headers);
            }
        }

        #[test]
        fn ranges_of_other_types_change_nothing(
            before in "([a-z]{1,5}/[a-z]{1,5}(;q=0\\.[0-9])?, ){0,3}",
            after in "(, [a-z]{1,5}/[a-z]{1,5}(;q=0\\.[0-9])?){0,3}",
        ) {
            prop_assert_eq!(accepted(&[&format!("{before}application/json{after}")]), "j");
            prop_assert_eq!(accepted(&[&format!("{before}text/event-stream, application/json{after}")]), "js>");
        }
    }
}
