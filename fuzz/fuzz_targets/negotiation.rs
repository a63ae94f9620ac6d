//! Accept, Content-Type, Origin and Host: whatever lines come, the answer is that of an oracle which is written for being
//! read, and a host is the one that another parser sees as well.
#![no_main]

use arbitrary::Arbitrary;
use http::uri::{Authority, Uri};
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use mcp_http::codec::accept::{Accepted, content_type_is_json};
use mcp_http::codec::origin::{AllowedHosts, AllowedOrigins, Refused, sole_host};

#[derive(Arbitrary, Debug)]
enum Input {
    Accept(Vec<Vec<Piece>>),
    ContentType(Vec<Vec<Piece>>),
    Origin(Vec<Vec<Piece>>),
    Host(Vec<Vec<Piece>>),
}

/// A piece of a line.
#[derive(Arbitrary, Debug)]
enum Piece {
    Known(u8),
    Bytes(Vec<u8>),
    Port(u16),
}

const KNOWN: [&str; 32] = [
    "application/json",
    "text/event-stream",
    "*/*",
    "application/*",
    "text/*",
    "text/html",
    ",",
    ", ",
    ";",
    "; ",
    "q=",
    "q=0",
    "q=0.5",
    "q=1.000",
    "q=1.001",
    "Q=0.25",
    "charset=utf-8",
    "x=\"a,b;c\\\"",
    "\"",
    "APPLICATION/JSON",
    "http://",
    "https://",
    "localhost",
    "127.0.0.1",
    "[::1]",
    ":",
    ".",
    "@",
    "/",
    "app.example.com",
    "null",
    "443",
];

fuzz_target!(|input: Input| match input {
    Input::Accept(lines) => {
        let headers = headers("accept", &lines);
        let lines = texts(&headers, "accept");
        let answer = Accepted::from_headers(&headers);
        let answer = (answer.json, answer.event_stream, answer.prefers_event_stream);
        assert_eq!(answer, accepted(&lines), "{headers:?}");
    }
    Input::ContentType(lines) => {
        let headers = headers("content-type", &lines);
        let is_json = match &*texts(&headers, "content-type") {
            [line] => trimmed(line.split(|byte| *byte == b';').next().unwrap_or_default()) == b"application/json",
            _ => false,
        };
        assert_eq!(content_type_is_json(&headers), is_json, "{headers:?}");
    }
    Input::Origin(lines) => origin(&headers("origin", &lines)),
    Input::Host(lines) => host(&headers("host", &lines)),
});

fn headers(name: &'static str, lines: &[Vec<Piece>]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.iter().take(4) {
        let mut bytes = Vec::new();
        for piece in line {
            match piece {
                Piece::Known(which) => bytes.extend(KNOWN[usize::from(*which) % KNOWN.len()].bytes()),
                Piece::Bytes(more) => bytes.extend(more),
                Piece::Port(port) => bytes.extend(port.to_string().bytes()),
            }
        }
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            headers.append(name, value);
        }
    }
    headers
}

/// In small letters.
fn texts(headers: &HeaderMap, name: &str) -> Vec<Vec<u8>> {
    headers.get_all(name).iter().map(|value| value.as_bytes().to_ascii_lowercase()).collect()
}

/// Without blanks around.
fn trimmed(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

/// Whether a document is taken, a stream is taken, and a stream is preferred.
fn accepted(lines: &[Vec<u8>]) -> (bool, bool, bool) {
    let ranges: Vec<Vec<Vec<u8>>> = lines
        .iter()
        .flat_map(|line| split(line, b','))
        .filter(|range| !range.is_empty())
        .map(|range| split(&range, b';'))
        .collect();
    if ranges.is_empty() {
        return (true, true, false);
    }
    // The most specific range decides, then the greatest weight, then the first.
    let best = |names: [&[u8]; 3]| {
        names.iter().find_map(|name| {
            let weighed = ranges.iter().enumerate().filter(|(_, range)| range[0] == *name);
            let weighed = weighed.filter_map(|(place, range)| Some((weight(&range[1..])?, usize::MAX - place)));
            weighed.max()
        })
    };
    let json = best([b"application/json", b"application/*", b"*/*"]).filter(|(weight, _)| *weight > 0);
    let stream = best([b"text/event-stream", b"text/*", b"*/*"]).filter(|(weight, _)| *weight > 0);
    (json.is_some(), stream.is_some(), stream > json)
}

/// The pieces between separators that stand in no quotes, without blanks around.
fn split(line: &[u8], separator: u8) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::new()];
    let (mut is_quoted, mut is_escaped) = (false, false);
    for byte in line {
        if *byte == separator && !is_quoted {
            pieces.push(Vec::new());
            continue;
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(*byte);
        }
        is_quoted ^= *byte == b'"' && !is_escaped;
        is_escaped = is_quoted && *byte == b'\\' && !is_escaped;
    }
    pieces.iter().map(|piece| trimmed(piece).to_vec()).collect()
}

/// In thousandths; nothing if it is none.
fn weight(parameters: &[Vec<u8>]) -> Option<u32> {
    let Some(text) = parameters.iter().find_map(|parameter| parameter.strip_prefix(b"q=")) else { return Some(1000) };
    let text = std::str::from_utf8(text).ok()?;
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    let is_plain =
        (whole == "0" || whole == "1") && digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = format!("{whole}{digits:0<3}").parse().ok().filter(|_| is_plain)?;
    (number <= 1000).then_some(number)
}

fn origin(headers: &HeaderMap) {
    let listed = AllowedOrigins::none().and("https://app.example.com").expect("it is an origin");
    let policies = [AllowedOrigins::none(), AllowedOrigins::loopback(), listed, AllowedOrigins::any()];
    let [none, loopback, listed, any] = policies.each_ref().map(|policy| policy.check(headers));
    let lines: Vec<&HeaderValue> = headers.get_all("origin").iter().collect();
    let text = match *lines {
        [] => return assert!([none, loopback, listed, any].iter().all(|outcome| *outcome == Ok(None))),
        [line] => line,
        _ => return assert!([none, loopback, listed, any].iter().all(|outcome| *outcome == Err(Refused::Repeated))),
    };
    assert_eq!(any, Ok(Some(text)));
    assert!(none.is_err(), "no origin is allowed, and {text:?} is");
    // What is malformed is so under each policy.
    assert_eq!(none == Err(Refused::Malformed), loopback == Err(Refused::Malformed));
    assert_eq!(none == Err(Refused::Malformed), listed == Err(Refused::Malformed));
    for (outcome, is_right) in [(loopback, is_loopback as fn(&str) -> bool), (listed, is_app)] {
        if outcome.is_ok() {
            let uri: Uri = text.to_str().ok().and_then(|text| text.parse().ok()).expect("an origin is an address");
            let scheme = uri.scheme_str().unwrap_or_default();
            assert!(is_right(uri.host().unwrap_or_default()), "{text:?}");
            assert!(["http", "https"].contains(&scheme) && uri.path().len() <= 1 && uri.query().is_none(), "{text:?}");
        }
    }
    if listed.is_ok() {
        let uri: Uri = text.to_str().ok().and_then(|text| text.parse().ok()).expect("an origin is an address");
        assert!(uri.scheme_str() == Some("https") && matches!(uri.port_u16(), None | Some(443)), "{text:?}");
    }
}

fn host(headers: &HeaderMap) {
    let lines = headers.get_all("host").iter().count();
    let text = match sole_host(headers) {
        Ok(None) => return assert_eq!(lines, 0),
        Err(Refused::Repeated) => return assert!(lines > 1),
        Err(other) => {
            assert_eq!((lines, other), (1, Refused::Malformed));
            return;
        }
        Ok(Some(text)) => text,
    };
    assert_eq!(lines, 1);
    let at = AllowedHosts::none().and("app.example.com:8443").expect("it is a host");
    let outcomes = [AllowedHosts::none(), AllowedHosts::loopback(), at, AllowedHosts::any()].map(|it| it.check(text));
    let is_malformed = outcomes[3] == Err(Refused::Malformed);
    assert!(outcomes.iter().all(|outcome| (*outcome == Err(Refused::Malformed)) == is_malformed), "{text}");
    assert!(outcomes[0].is_err());
    if is_malformed {
        return;
    }
    let seen: Authority = text.parse().expect("a host is an authority");
    assert!(!seen.as_str().contains('@'), "{text}");
    assert_eq!(outcomes[1].is_ok(), is_loopback(seen.host()), "{text}");
    assert_eq!(outcomes[2].is_ok(), is_app(seen.host()) && seen.port_u16() == Some(8443), "{text}");
}

fn is_app(host: &str) -> bool {
    ["app.example.com", "app.example.com."].contains(&&*host.to_ascii_lowercase())
}

fn is_loopback(host: &str) -> bool {
    let six = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(|text| text.parse().ok());
    let names = ["localhost", "localhost.", "127.0.0.1"];
    names.contains(&&*host.to_ascii_lowercase()) || six == Some(std::net::Ipv6Addr::LOCALHOST)
}
