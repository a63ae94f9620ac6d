//! Mirrored headers: what is encoded decodes, a header and a value agree exactly if an oracle says so, and the endpoint
//! lets a call through exactly if they do.
#![no_main]

use std::cell::RefCell;

use arbitrary::Arbitrary;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::Full;
use libfuzzer_sys::fuzz_target;
use mcp_auth::Anonymous;
use mcp_core::Server;
use mcp_fuzz::{modern, poll, within};
use mcp_http::codec::accept::{Accepted, content_type_is_json};
use mcp_http::codec::mirror::{decode, encode, same_parameter, same_plain, same_text};
use mcp_http::codec::origin::{AllowedHosts, AllowedOrigins, sole_host};
use mcp_http::server::{HttpConfig, HttpService};
use serde_json::{Value, json};

#[derive(Arbitrary, Debug)]
struct Input {
    header: Header,
    value: Mirrored,
    accept: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Header {
    /// What the value encodes to.
    Honest,
    Bytes(Vec<u8>),
    /// These bytes, encoded, with whatever behind them.
    Encoded(Vec<u8>, String),
}

#[derive(Arbitrary, Debug)]
enum Mirrored {
    Text(String),
    /// A text that looks like an encoded one.
    Marked(String),
    Number(f64),
    Whole(i64),
    Absent,
    Null,
}

fuzz_target!(|input: Input| {
    negotiate(&input.accept);
    let (name, value) = match input.value {
        Mirrored::Text(text) => ("text", Some(Value::from(text))),
        Mirrored::Marked(text) => ("text", Some(Value::from(format!("=?base64?{text}?=")))),
        Mirrored::Number(number) => ("number", Some(Value::from(number)).filter(Value::is_number)),
        Mirrored::Whole(number) => ("number", Some(Value::from(number))),
        Mirrored::Absent => ("text", None),
        Mirrored::Null => ("text", Some(Value::Null)),
    };
    let shown = value
        .as_ref()
        .map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned));
    let honest = matches!(input.header, Header::Honest);
    let header = match input.header {
        Header::Honest => encode(&shown).into_owned().into_bytes(),
        Header::Bytes(bytes) => bytes,
        Header::Encoded(bytes, rest) => format!("=?base64?{}{rest}?=", STANDARD.encode(bytes)).into_bytes(),
    };
    let Ok(header) = HeaderValue::from_bytes(&header) else {
        assert!(!honest, "{shown:?} encodes to what no header may hold");
        return;
    };
    if honest {
        assert_eq!(decode(&header).as_deref(), Ok(&*shown));
        assert!(same_text(&header, &shown).is_ok());
    }
    match decode(&header) {
        Ok(text) => {
            assert!(same_text(&header, &text).is_ok());
            let again = HeaderValue::from_str(&encode(&text)).expect("what is encoded is a header");
            assert_eq!(decode(&again).as_ref(), Ok(&text));
            if same_plain(&header, &shown).is_ok() && !shown.starts_with("=?") {
                assert_eq!(text, shown);
            }
        }
        Err(error) => assert!(error.to_string().len() < 400, "{error}"),
    }
    let agrees = value.as_ref().is_some_and(|value| same_parameter(&header, value).is_ok());
    if let (Some(value), Ok(text)) = (&value, decode(&header)) {
        let expected = match value {
            Value::String(value) => *value == *text,
            // Equal to the letter is equal in value; the other way round takes another decimal parser.
            Value::Number(number) if *text == number.to_string() => true,
            Value::Number(_) => agrees && serde_json::from_str::<f64>(&text).is_ok(),
            _ => false,
        };
        assert_eq!(agrees, expected, "{header:?} and {value}");
    }
    within(|server| call(server, name, value.as_ref(), header, agrees));
});

/// Calls a tool whose argument a header repeats.
fn call(server: &Server, name: &str, value: Option<&Value>, header: HeaderValue, agrees: bool) {
    thread_local! {
        static SERVICE: RefCell<Option<HttpService>> = const { RefCell::new(None) };
    }
    let service = SERVICE.with(|service| {
        let make = || HttpService::new(server.clone(), HttpConfig::new(Anonymous));
        service.borrow_mut().get_or_insert_with(make).clone()
    });
    let mut arguments = json!({});
    if let Some(value) = value {
        arguments[name] = value.clone();
    }
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": modern(json!({ "name": "echo", "arguments": arguments })),
    });
    let mirror = format!("mcp-param-{name}");
    let request = Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo")
        .header(mirror, header)
        .body(Full::from(body.to_string()))
        .expect("the request is in order");
    let mut response = std::pin::pin!(service.respond(request));
    let std::task::Poll::Ready(response) = poll(&mut response) else { panic!("the endpoint waits") };
    // A null argument fits the header no more than the schema.
    let expected = if agrees { 200 } else { 400 };
    assert_eq!(response.status(), expected, "{body}");
}

/// What negotiation makes of any bytes.
fn negotiate(bytes: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(bytes) else { return };
    let mut headers = HeaderMap::new();
    for name in ["accept", "content-type", "origin", "host"] {
        headers.insert(name, value.clone());
    }
    let accepted = Accepted::from_headers(&headers);
    assert!(!accepted.takes_document() || accepted.json || accepted.event_stream, "{value:?}");
    if content_type_is_json(&headers) {
        assert!(value.as_bytes().trim_ascii().to_ascii_lowercase().starts_with(b"application/json"), "{value:?}");
    }
    let origins = [AllowedOrigins::loopback(), AllowedOrigins::none()].map(|allowed| allowed.check(&headers).is_ok());
    assert!(!origins[1], "no origin is allowed");
    if let Ok(Some(host)) = sole_host(&headers) {
        assert!(AllowedHosts::any().check(host).is_ok() || AllowedHosts::loopback().check(host).is_err(), "{host}");
        if AllowedHosts::loopback().check(host).is_ok() {
            let lower = host.to_ascii_lowercase();
            assert!(["localhost", "127.", "[::1]"].iter().any(|local| lower.starts_with(local)), "{host}");
        }
    }
}
