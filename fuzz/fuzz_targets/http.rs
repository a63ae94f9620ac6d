//! Whole HTTP requests: whatever method, headers and body come, in whatever order, the endpoint answers at once, with a
//! status that it knows and a body that its Content-Type describes.
#![no_main]

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use arbitrary::Arbitrary;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body;
use http_body_util::Full;
use libfuzzer_sys::fuzz_target;
use mcp_auth::Anonymous;
use mcp_core::Server;
use mcp_fuzz::{decoded, poll, within};
use mcp_http::server::{HttpBody, HttpConfig, HttpService};
use mcp_wire::Message;

#[derive(Arbitrary, Debug)]
struct Input {
    requests: Vec<Sent>,
}

#[derive(Arbitrary, Debug)]
struct Sent {
    method: u8,
    /// Whether the session of an earlier answer is named.
    in_session: bool,
    headers: Vec<(u8, Text)>,
    body: Text,
}

#[derive(Arbitrary, Debug)]
enum Text {
    Known(u8),
    Bytes(Vec<u8>),
}

const METHODS: [Method; 6] = [Method::POST, Method::POST, Method::GET, Method::DELETE, Method::OPTIONS, Method::PUT];

const NAMES: [&str; 12] = [
    "accept",
    "content-type",
    "content-length",
    "host",
    "origin",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-param-text",
    "mcp-session-id",
    "last-event-id",
    "authorization",
];

const VALUES: [&str; 12] = [
    "application/json",
    "application/json, text/event-stream",
    "text/event-stream",
    "*/*;q=0",
    "localhost",
    "2025-11-25",
    "2026-07-28",
    "tools/call",
    "echo",
    "http://localhost:3000",
    "=?base64?aGk=?=",
    "1",
];

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn known_body(which: u8) -> String {
    match which % 8 {
        0 => r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"f","version":"1"}}}"#.to_owned(),
        1 => r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        2 => r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{}}}"#.to_owned(),
        3 => r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ann"}}}"#.to_owned(),
        4 => format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"echo","arguments":{{}},{META}}}}}"#),
        5 => format!(r#"{{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#),
        6 => r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#.to_owned(),
        _ => r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait","arguments":{}}}"#.to_owned(),
    }
}

fuzz_target!(|input: Input| {
    within(|server| {
        let service = HttpService::new(server.clone(), HttpConfig::new(Anonymous));
        let (mut session, mut streams) = (None, Vec::new());
        for sent in input.requests.iter().take(16) {
            let request = request(sent, session.as_ref());
            let is_options = request.method() == Method::OPTIONS;
            let mut answer = std::pin::pin!(service.respond(request));
            // A modern call that waits has no head yet; dropping it cancels it.
            let Poll::Ready(response) = poll(&mut answer) else { continue };
            if let Some(id) = response.headers().get("mcp-session-id") {
                session = Some(id.clone());
            }
            streams.extend(check(server, response, is_options));
        }
        assert!(service.open_sessions() <= input.requests.len());
        service.end_sessions();
        assert_eq!(service.open_sessions(), 0);
        for mut stream in streams {
            read(server, &mut stream);
        }
    });
});

fn request(sent: &Sent, session: Option<&HeaderValue>) -> Request<Full<Bytes>> {
    let body = match &sent.body {
        Text::Known(which) => Bytes::from(known_body(*which)),
        Text::Bytes(bytes) => Bytes::copy_from_slice(bytes),
    };
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = METHODS[usize::from(sent.method) % METHODS.len()].clone();
    *request.uri_mut() = http::Uri::from_static("/mcp");
    let headers = request.headers_mut();
    // What would end nearly every request at the door.
    headers.insert("host", HeaderValue::from_static("localhost"));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
    if let Some(session) = session.filter(|_| sent.in_session) {
        headers.insert("mcp-session-id", session.clone());
    }
    for (name, value) in &sent.headers {
        let name = HeaderName::from_static(NAMES[usize::from(*name) % NAMES.len()]);
        let value = match value {
            Text::Known(which) => HeaderValue::from_static(VALUES[usize::from(*which) % VALUES.len()]),
            Text::Bytes(bytes) => match HeaderValue::from_bytes(bytes) {
                Ok(value) => value,
                Err(_) => continue,
            },
        };
        // The first of a name replaces ours, further ones are beside it.
        if headers.get(&name).is_some_and(|known| known.is_sensitive()) {
            headers.append(name, value);
        } else {
            let mut value = value;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    request
}

/// The body, if it is a stream that goes on.
fn check(server: &Server, response: Response<HttpBody>, is_options: bool) -> Option<HttpBody> {
    let (head, mut body) = response.into_parts();
    let status = head.status.as_u16();
    assert!([200, 202, 204, 400, 403, 404, 405, 406, 409, 411, 413, 415, 421, 429].contains(&status), "{status}");
    let (text, over) = read(server, &mut body);
    match head.headers.get("content-type").map(HeaderValue::as_bytes) {
        Some(b"text/event-stream") => {
            assert_eq!(status, 200);
            return (!over).then_some(body);
        }
        Some(b"application/json") => {
            assert!(over && matches!(decoded(server, &text), Message::Response(_)), "{text:?}");
        }
        None => assert!(over && (text.is_empty() || is_options), "{status} with {text:?}"),
        Some(other) => panic!("an answer of the kind {other:?}"),
    }
    None
}

/// What is at hand of a body, and whether that is all.
fn read(server: &Server, body: &mut HttpBody) -> (Bytes, bool) {
    let mut text = Vec::new();
    loop {
        match Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(frame)) => {
                let data = frame.expect("a body ends in order").into_data().unwrap_or_default();
                for line in data.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")) {
                    if !line.is_empty() {
                        let _message: Message = decoded(server, &Bytes::copy_from_slice(line));
                    }
                }
                text.extend_from_slice(&data);
            }
            Poll::Ready(None) => return (text.into(), true),
            Poll::Pending => return (text.into(), false),
        }
    }
}
