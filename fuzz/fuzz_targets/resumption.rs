//! Last-Event-ID: a client that comes back gets exactly what it has not seen of the stream that the id names, of its own
//! session; an id that names none gets nothing of any stream, and is told so.
#![no_main]

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use arbitrary::Arbitrary;
use http::{HeaderValue, Method, Request};
use http_body::Body;
use http_body_util::Full;
use libfuzzer_sys::fuzz_target;
use mcp_auth::Anonymous;
use mcp_fuzz::{poll, wait, within};
use mcp_http::server::{HttpBody, HttpConfig, HttpService};
use serde_json::json;

#[derive(Arbitrary, Debug)]
struct Input {
    /// How many calls each of two sessions made.
    calls: [u8; 2],
    returns: Vec<Return>,
}

#[derive(Arbitrary, Debug)]
struct Return {
    in_second: bool,
    ids: Vec<Id>,
}

#[derive(Arbitrary, Debug)]
enum Id {
    Of { stream: u8, event: u8 },
    Spelled { before: Vec<u8>, stream: u8, between: Vec<u8>, event: u8, after: Vec<u8> },
    Numbers(u64, u64),
    Bytes(Vec<u8>),
}

/// An event as it came: its id, its text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    id: Option<String>,
    data: String,
}

fuzz_target!(|input: Input| {
    within(|server| {
        let service = HttpService::new(server.clone(), HttpConfig::new(Anonymous));
        let sessions = input.calls.map(|calls| opened(&service, calls % 3));
        for back in input.returns.iter().take(8) {
            let (session, streams) = &sessions[usize::from(back.in_second)];
            come_back(&service, session, streams, &back.ids);
        }
        service.end_sessions();
    });
});

/// A session, and what each of its calls said.
fn opened(service: &HttpService, calls: u8) -> (HeaderValue, Vec<Vec<Event>>) {
    let hello = json!({
        "jsonrpc": "2.0", "id": "hello", "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "fuzzer", "version": "1" },
        },
    });
    let request = Request::post("/mcp").header("content-type", "application/json");
    let request = request.header("accept", "application/json").body(Full::from(hello.to_string()));
    let response = respond(service, request.expect("the request is in order"));
    let session = response.headers().get("mcp-session-id").expect("a session is opened").clone();
    let marked = String::from_utf8_lossy(session.as_bytes()).into_owned();
    let streams = (0..calls).map(|call| {
        let message = json!({
            "jsonrpc": "2.0", "id": format!("{call} of {marked}"), "method": "tools/call",
            "params": { "name": "tell", "arguments": {}, "_meta": { "progressToken": format!("{call} of {marked}") } },
        });
        let request = Request::post("/mcp").header("content-type", "application/json");
        let request = request.header("accept", "text/event-stream").header("mcp-session-id", session.clone());
        let request = request.body(Full::from(message.to_string())).expect("the request is in order");
        let mut body = respond(service, request).into_body();
        wait(Duration::from_millis(1));
        let (events, is_over) = read(&mut body);
        assert!(is_over && events.len() > 2, "{events:?}");
        events
    });
    let streams = streams.collect();
    (session, streams)
}

fn come_back(service: &HttpService, session: &HeaderValue, streams: &[Vec<Event>], ids: &[Id]) {
    let mut request = Request::builder().method(Method::GET).uri("/mcp").header("accept", "text/event-stream");
    request = request.header("mcp-session-id", session.clone());
    let lines: Vec<HeaderValue> =
        ids.iter().take(2).filter_map(|id| HeaderValue::from_bytes(&written(id, streams)).ok()).collect();
    for line in &lines {
        request = request.header("last-event-id", line.clone());
    }
    let response = respond(service, request.body(Full::default()).expect("the request is in order"));
    assert_eq!(response.status(), 200);
    let (events, is_over) = read(&mut response.into_body());
    let line = lines.first().map(|line| String::from_utf8_lossy(line.as_bytes().trim_ascii()).into_owned());
    match line.as_deref() {
        None | Some("") => assert!(events.is_empty() && !is_over, "{events:?}"),
        Some(line) => match place(line).and_then(|(stream, seen)| Some((seen, stream_of(streams, stream)?))) {
            Some((seen, stream)) => {
                let [first, others @ ..] = &*events else { panic!("a resumed stream does not begin") };
                // The id that was sent, as it is written here.
                assert!(first.data.is_empty() && first.id.as_deref().and_then(place) == place(line), "{first:?}");
                let number =
                    |event: &&Event| event.id.as_deref().and_then(place).is_some_and(|(_, number)| number > seen);
                let rest: Vec<Event> = stream.iter().filter(number).cloned().collect();
                assert_eq!((others, is_over), (&*rest, true), "after {line}");
            }
            None => {
                let [told] = &*events else { panic!("{events:?} after {line}") };
                assert!(told.id.is_none() && told.data.contains("replay_truncated") && !is_over, "{told:?}");
            }
        },
    }
}

/// The stream and the event that an id names.
fn place(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

fn stream_of(streams: &[Vec<Event>], number: u64) -> Option<&Vec<Event>> {
    streams.iter().find(|events| {
        events.iter().any(|event| event.id.as_deref().and_then(place).is_some_and(|(stream, _)| stream == number))
    })
}

fn written(id: &Id, streams: &[Vec<Event>]) -> Vec<u8> {
    let known = |stream: u8, event: u8| -> Option<(String, String)> {
        let events = streams.get(usize::from(stream) % streams.len().max(1))?;
        let id = events.get(usize::from(event) % events.len())?.id.clone()?;
        id.split_once('-').map(|(stream, event)| (stream.to_owned(), event.to_owned()))
    };
    match id {
        Id::Of { stream, event } => known(*stream, *event).map_or_else(Vec::new, |(s, e)| format!("{s}-{e}").into()),
        Id::Spelled { before, stream, between, event, after } => {
            let (stream, event) = known(*stream, *event).unwrap_or_default();
            [before, stream.as_bytes(), between, event.as_bytes(), after].concat()
        }
        Id::Numbers(stream, event) => format!("{stream}-{event}").into(),
        Id::Bytes(bytes) => bytes.clone(),
    }
}

fn respond(service: &HttpService, mut request: Request<Full<bytes::Bytes>>) -> http::Response<HttpBody> {
    request.headers_mut().insert("host", HeaderValue::from_static("localhost"));
    let mut answer = std::pin::pin!(service.respond(request));
    match poll(&mut answer) {
        Poll::Ready(response) => response,
        Poll::Pending => panic!("the endpoint waits"),
    }
}

/// The events at hand, and whether that is all.
fn read(body: &mut HttpBody) -> (Vec<Event>, bool) {
    let (mut text, mut is_over) = (Vec::new(), true);
    loop {
        match Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(frame)) => {
                text.extend_from_slice(&frame.expect("a body ends in order").into_data().unwrap_or_default());
            }
            Poll::Ready(None) => break,
            Poll::Pending => {
                is_over = false;
                break;
            }
        }
    }
    let text = String::from_utf8(text).expect("events are text");
    let field = |event: &str, name: &str| event.lines().find_map(|line| line.strip_prefix(name).map(ToOwned::to_owned));
    let event = |event: &str| Event { id: field(event, "id: "), data: field(event, "data: ").unwrap_or_default() };
    // Comments say nothing.
    let said = text.split("\n\n").filter(|text| !text.is_empty() && !text.starts_with(':'));
    (said.map(event).collect(), is_over)
}
