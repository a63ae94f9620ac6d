//! What somebody owns does not exist for anybody else: not even the answer tells.
//!
//! A stranger here is whoever differs in provider, issuer or subject, or is nobody. What they try is held, byte for byte,
//! against the same request with an id that never was.
//!
//! Spec: 2025-11-25 basic/security_best_practices, "Session Hijacking"; 2026-07-28 basic/patterns/mrtr, "Request State"

use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use mcp_auth::{AuthError, AuthProvider, AuthRequest, BearerChallenge, Challenge};
use mcp_core::{HandlerError, ListRoots, NoArguments, Principal, RequestContext, Resource, Server, Tool};
use mcp_http::server::HttpConfig;
use mcp_tests::{Client, Event, Host, HttpAnswer, Lane, Profile, idle, lanes, within};
use serde_json::{Value, json};
use tokio::sync::Notify;

lanes! {
    everywhere {}
    http_legacy "nothing before it has sessions that a second caller could name" {
        no_verb_tells_a_stranger_of_a_session,
        the_ids_within_a_session_mean_nothing_in_another,
        nothing_tells_a_stranger_of_a_pair,
    }
    http_modern "elsewhere one caller opens the connection, and sessions come first" {
        a_sealed_state_opens_for_its_owner_alone,
        the_ids_of_a_callers_requests_are_its_own,
    }
}

/// Everybody who is not ann of the first issuer: as `provider~issuer~subject`, or without credentials.
const STRANGERS: [Option<&str>; 4] = [
    Some("test~https://one.example~ben"),
    Some("test~https://two.example~ann"),
    Some("jwt~https://one.example~ann"),
    None,
];

/// Believes what a token says, and a mere name to be the first issuer's.
struct Believing;

#[async_trait]
impl AuthProvider for Believing {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        let Some(header) = request.headers().get(AUTHORIZATION) else { return Ok(Principal::anonymous()) };
        let token =
            header.to_str().ok().and_then(|header| header.strip_prefix("Bearer ")).ok_or(AuthError::Malformed)?;
        match *token.split('~').collect::<Vec<_>>() {
            [provider, issuer, subject] => Ok(Principal::new(provider, issuer, subject)),
            [subject] => Ok(Principal::new("test", "https://one.example", subject)),
            _ => Err(AuthError::Malformed),
        }
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        BearerChallenge::default().answer(error)
    }
}

/// A server with a tool that asks, one that waits until it is cancelled or told to go on, and a resource.
fn server() -> (Server, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    let start = Arc::clone(&go);
    let asks = Tool::typed("asks", async |_: NoArguments, context: RequestContext| {
        let roots = context.ask("roots", ListRoots)?;
        Ok::<_, HandlerError>(format!("{} roots", roots.len()))
    });
    let waits = Tool::typed("waits", move |_: NoArguments, context: RequestContext| {
        let start = Arc::clone(&start);
        async move {
            context.progress(1.0, None, None);
            tokio::select! {
                () = context.cancelled() => Ok::<_, HandlerError>("cancelled"),
                () = start.notified() => Ok("waited"),
            }
        }
    });
    let resource = Resource::text("test://a", "a", "text");
    (Server::builder("s", "1").tool(asks).tool(waits).resource(resource).build().unwrap(), go)
}

fn host(lane: Lane, server: &Server) -> Host {
    lane.host_as(server, HttpConfig::new(Believing).sse_pair("/sse", "/messages"))
}

fn show(stranger: Option<&str>, headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    if let Some(token) = stranger {
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    }
}

/// The answer, but for the time of day.
fn undated(mut answer: HttpAnswer) -> HttpAnswer {
    answer.headers.remove("date");
    answer
}

fn text(method: &str, id: i64, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// An id like this one, of nothing.
fn unknown(id: &str) -> String {
    let other = |letter: char| if letter.is_ascii_alphanumeric() { 'A' } else { letter };
    id.chars().map(other).collect()
}

/// Opens a call of ann's that says something and waits.
async fn open_call(ann: &Client) -> mcp_tests::Call {
    let mut call = ann.start("tools/call", json!({ "name": "waits", "_meta": { "progressToken": "p" } }));
    assert_eq!(within("progress", call.notification()).await["method"], "notifications/progress");
    call
}

async fn no_verb_tells_a_stranger_of_a_session(lane: Lane) {
    let (server, go) = server();
    let host = host(lane, &server);
    let ann = host.connect().await;
    let open = open_call(&ann).await;
    let mut asked = ann.start_tool("asks", json!({}));
    let question = within("the question", asked.server_request()).await;
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } }).to_string();
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": open.id() } });
    let uri = json!({ "uri": "test://a" });
    let plain = |method, body: String| (method, body, None);
    let resumed = |id: &'static str| (Method::GET, String::new(), Some(("last-event-id", id)));
    let attempts = [
        plain(Method::POST, text("tools/list", 1, json!({}))),
        plain(Method::POST, text("tools/call", 1, json!({ "name": "waits" }))),
        plain(Method::POST, text("resources/subscribe", 1, uri.clone())),
        plain(Method::POST, text("resources/unsubscribe", 1, uri)),
        plain(Method::POST, text("logging/setLevel", 1, json!({ "level": "debug" }))),
        plain(Method::POST, text("no/such", 1, json!({}))),
        plain(Method::POST, cancel.to_string()),
        plain(Method::POST, reply),
        plain(Method::POST, json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]).to_string()),
        plain(Method::POST, "{".to_owned()),
        (Method::POST, text("ping", 1, json!({})), Some(("mcp-protocol-version", "2025-03-26"))),
        (Method::POST, text("ping", 1, json!({})), Some(("accept", "application/json"))),
        plain(Method::GET, String::new()),
        resumed("1-0"),
        resumed("2-1"),
        resumed("9-9"),
        plain(Method::DELETE, String::new()),
    ];
    let id = ann.session_id();
    let sessions = host.open_sessions();
    let visitor = host.strange(Profile::default());
    for stranger in STRANGERS {
        for (method, body, header) in &attempts {
            let with = async |session: &str| {
                let edit = |headers: &mut HeaderMap| {
                    show(stranger, headers);
                    headers.insert("mcp-protocol-version", HeaderValue::from_static(lane.revision().as_str()));
                    headers.insert("mcp-session-id", session.parse().unwrap());
                    if let Some((name, value)) = *header {
                        headers.insert(name, HeaderValue::from_static(value));
                    }
                };
                undated(visitor.http(method.clone(), body.clone(), edit).await)
            };
            let (foreign, none) = (with(&id).await, with(&unknown(&id)).await);
            assert_eq!(foreign, none, "{stranger:?}: {method} {body}");
            assert!(foreign.status == 404 || body == "{", "{stranger:?}: {method} {body}: {}", foreign.status);
        }
    }
    // Nothing of it reached the session.
    assert_eq!(host.open_sessions(), sessions);
    ann.answer(&question, json!({ "roots": [{ "uri": "file:///a" }] })).await;
    assert_eq!(within("the answered call", asked.reply()).await.tool_text(), "1 roots");
    go.notify_one();
    assert_eq!(within("the open call", open.reply()).await.tool_text(), "waited");
}

/// The first events of a stream, as far as they are there.
async fn first_events(client: &Client, last_seen: &'static str, token: &str) -> Vec<Event> {
    let edit = |headers: &mut HeaderMap| {
        show(Some(token), headers);
        headers.insert("last-event-id", HeaderValue::from_static(last_seen));
    };
    let mut stream = client.stream(Method::GET, "", edit).await;
    let mut events = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(std::time::Duration::from_millis(1), stream.next()).await {
        events.push(event);
    }
    events
}

async fn the_ids_within_a_session_mean_nothing_in_another(lane: Lane) {
    let (server, go) = server();
    let host = host(lane, &server);
    let ann = host.connect().await;
    let open = open_call(&ann).await;
    let mut asked = ann.start_tool("asks", json!({}));
    let question = within("the question", asked.server_request()).await;
    assert!(!first_events(&ann, "1-0", "ann").await.is_empty(), "there is something to take from ann");

    let ben = host.connect_as(Profile::named("ben")).await;
    let none = first_events(&ben, "9-9", "ben").await;
    for place in ["1-0", "1-1", "2-0"] {
        assert_eq!(first_events(&ben, place, "ben").await, none, "{place}");
    }
    let said = async |message: Value| undated(ben.http(Method::POST, message.to_string(), |_| {}).await);
    let reply = |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } });
    assert_eq!(said(reply(&question["id"])).await, said(reply(&json!("never"))).await);
    let cancel =
        |id: &Value| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(said(cancel(open.id())).await, said(cancel(&json!("never"))).await);
    idle().await;

    ann.answer(&question, json!({ "roots": [{ "uri": "file:///a" }] })).await;
    assert_eq!(within("the answered call", asked.reply()).await.tool_text(), "1 roots");
    go.notify_one();
    drop(open);
    let rest =
        ann.stream(Method::GET, "", |headers| drop(headers.insert("last-event-id", HeaderValue::from_static("1-1"))));
    let mut rest = rest.await;
    loop {
        let event = within("the end of the open call", rest.next()).await.unwrap();
        assert!(!event.data.contains("cancelled"), "{event:?}");
        if event.data.contains("waited") {
            break;
        }
    }
}

async fn nothing_tells_a_stranger_of_a_pair(lane: Lane) {
    let (server, go) = server();
    let host = host(lane, &server);
    let ann = host.strange(Profile::default());
    let mut events = ann.stream_at("/sse", Method::GET, "", |_| {}).await;
    let address = within("the address", events.next()).await.unwrap().data;
    let hello =
        json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    for message in [
        text("initialize", 1, hello),
        text("tools/call", 2, json!({ "name": "waits", "_meta": { "progressToken": "p" } })),
    ] {
        assert_eq!(ann.http_at(&address, Method::POST, message, |_| {}).await.status, 202);
        assert!(within("what is said", events.next()).await.is_some());
    }
    let (path, id) = address.split_once('=').unwrap();
    let nowhere = format!("{path}={}", unknown(id));
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    for stranger in STRANGERS {
        for body in [
            text("tools/list", 3, json!({})),
            cancel.to_string(),
            json!({ "jsonrpc": "2.0", "id": 0, "result": {} }).to_string(),
            json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]).to_string(),
            "{".to_owned(),
        ] {
            let at = async |address: &str| {
                let edit = |headers: &mut HeaderMap| show(stranger, headers);
                undated(ann.http_at(address, Method::POST, body.clone(), edit).await)
            };
            let (foreign, none) = (at(&address).await, at(&nowhere).await);
            assert_eq!(foreign, none, "{stranger:?}: {body}");
            assert_eq!(foreign.status, 404, "{stranger:?}: {body}");
        }
        // The id is none of a session of the other kind, either.
        let as_session = async |id: &str| {
            let edit = |headers: &mut HeaderMap| {
                show(stranger, headers);
                headers.insert("mcp-session-id", id.parse().unwrap());
            };
            undated(ann.http(Method::DELETE, "", edit).await)
        };
        assert_eq!(as_session(id).await, as_session(&unknown(id)).await);
    }
    go.notify_one();
    let last = within("the result", events.next()).await.unwrap();
    assert!(last.data.contains("waited"), "{last:?}");
}

async fn a_sealed_state_opens_for_its_owner_alone(lane: Lane) {
    let (server, _) = server();
    let host = host(lane, &server);
    let ann = host.connect().await;
    let state = ann.call("asks", json!({})).await.result()["requestState"].clone();
    let stranger_says = async |stranger: Option<&str>, state: &str| {
        let params = json!({ "name": "asks", "inputResponses": { "roots": { "roots": [] } }, "requestState": state });
        let body = text("tools/call", 1, ann.enveloped(params));
        undated(ann.http(Method::POST, body, |headers| show(stranger, headers)).await)
    };
    let text = state.as_str().unwrap();
    for stranger in STRANGERS {
        let (foreign, none) = (stranger_says(stranger, text).await, stranger_says(stranger, &unknown(text)).await);
        assert_eq!(foreign, none, "{stranger:?}");
        assert_eq!((foreign.status, foreign.code()), (200, -32602), "{stranger:?}");
    }
    let of_ann = stranger_says(Some("ann"), text).await;
    assert_eq!(of_ann.json()["result"]["content"][0]["text"], "0 roots", "it was good");
}

async fn the_ids_of_a_callers_requests_are_its_own(lane: Lane) {
    let (server, go) = server();
    let host = host(lane, &server);
    let ann = host.connect().await;
    let open = open_call(&ann).await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = ann.start_as(json!("s"), "subscriptions/listen", filter.clone());
    assert!(within("the acknowledgement", listening.next()).await.is_some());
    for stranger in STRANGERS {
        let cancel = async |id: &Value| {
            let params = ann.enveloped(json!({ "requestId": id }));
            let body = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string();
            undated(ann.http(Method::POST, body, |headers| show(stranger, headers)).await)
        };
        let never = cancel(&json!("never")).await;
        for id in [open.id(), &json!("s")] {
            assert_eq!(cancel(id).await, never, "{stranger:?}");
        }
        // The same id is another subscription, and its end is its own.
        let message = json!({
            "jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": ann.enveloped(filter.clone()),
        });
        let mut theirs = ann.stream(Method::POST, message.to_string(), |headers| show(stranger, headers)).await;
        assert!(within("the acknowledgement", theirs.next()).await.is_some());
        drop(theirs);
        idle().await;
        server.tools_changed();
        let notice = within("a notice", listening.notification()).await;
        assert_eq!(notice["method"], "notifications/tools/list_changed");
    }
    go.notify_one();
    assert_eq!(within("the open call", open.reply()).await.tool_text(), "waited");
}
