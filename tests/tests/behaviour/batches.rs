//! Batches over HTTP: several messages in one request.
//!
//! Spec: 2025-03-26 basic, "Batching"; basic/transports, "Sending Messages to the Server"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use mcp_core::{HandlerError, NoArguments, RequestContext, Sample, Server, ServerBuilder, Tool};
use mcp_http::server::{HttpConfig, HttpService};
use mcp_tests::{Client, Events, HttpAnswer, Lane, idle, lanes, within};
use mcp_wire::types::{CreateMessageParams, SamplingMessage};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

lanes! {
    everywhere {}
    http_legacy "pipes have tests of their own for batches, and no modern message may be in one" {
        a_batch_is_answered_by_one_array_with_an_error_for_each_bad_element,
        ids_in_a_batch_are_echoed_or_refused_as_elsewhere,
        a_batch_that_asks_for_nothing_is_accepted_without_a_body,
        a_batch_has_so_many_messages,
        what_takes_its_time_is_answered_by_a_stream_that_can_be_lost,
        a_client_without_streams_waits_for_the_whole_array,
        an_answer_in_a_batch_reaches_who_asked,
        a_request_can_be_taken_back_from_within_a_batch,
        revisions_without_batches_refuse_them_whole,
        a_batch_needs_its_session_as_one_message_does,
        a_modern_message_in_a_batch_refuses_it_before_anything_is_done,
        an_ended_session_ends_the_batches_in_it,
        without_sessions_a_batch_stands_alone,
    }
}

/// Tools that answer at once, when they are let, and when the client has answered; and how often they ran.
fn server() -> (ServerBuilder, Arc<Semaphore>, Arc<AtomicUsize>) {
    let gate = Arc::new(Semaphore::new(0));
    let runs = Arc::new(AtomicUsize::new(0));
    let (open, count) = (Arc::clone(&gate), Arc::clone(&runs));
    let at_once = Tool::plain("at_once", move |_: NoArguments| {
        count.fetch_add(1, Ordering::SeqCst);
        "at once"
    });
    let waits = Tool::typed("waits", move |_: NoArguments, context: RequestContext| {
        let open = Arc::clone(&open);
        async move {
            context.progress(1.0, None, None);
            open.acquire().await?.forget();
            Ok::<_, HandlerError>("waited")
        }
    });
    let asks = Tool::typed("asks", async |_: NoArguments, context: RequestContext| {
        let question = Sample(CreateMessageParams::new(vec![SamplingMessage::user_text("Well?")], 10));
        Ok::<_, HandlerError>(context.ask("q", question)?.text().unwrap_or_default().to_owned())
    });
    (Server::builder("s", "1").tool(at_once).tool(waits.timeout(None)).tool(asks), gate, runs)
}

/// The lane in the one revision that has batches.
fn batching(lane: Lane) -> Lane {
    lane.each_revision().find(|lane| lane.revision().rules().batches).expect("one has them")
}

fn call(id: i64, tool: &str) -> Value {
    let params = json!({ "name": tool, "_meta": { "progressToken": id } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

async fn post(client: &Client, batch: Value) -> HttpAnswer {
    client.http(Method::POST, batch.to_string(), |_| {}).await
}

fn without_streams(headers: &mut HeaderMap) {
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
}

/// Text of the result, by id, for all responses of an array.
fn texts(array: &Value) -> Vec<(i64, String)> {
    let text = |response: &Value| response["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let of = |response: &Value| (response["id"].as_i64().unwrap(), text(response));
    let mut texts: Vec<_> = array.as_array().expect("an array").iter().map(of).collect();
    texts.sort();
    texts
}

/// The next message of a stream and its place.
async fn message(events: &mut Events) -> (String, Value) {
    loop {
        let event = within("an event", events.next()).await.expect("the stream goes on");
        if !event.data.is_empty() {
            return (event.id.unwrap_or_default(), serde_json::from_str(&event.data).unwrap());
        }
    }
}

async fn a_batch_is_answered_by_one_array_with_an_error_for_each_bad_element(lane: Lane) {
    let client = batching(lane).connect(server().0).await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {} });
    let batch = json!([
        call(1, "at_once"),
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        7,
        { "jsonrpc": "1.0", "id": 3, "method": "ping" },
        initialize,
        { "jsonrpc": "2.0", "id": 4, "method": "no/such" },
        { "jsonrpc": "2.0", "id": "b", "method": "ping" },
        { "jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": { "name": "x", "name": "y" } },
        call(2, "at_once"),
    ]);
    let answer = post(&client, batch).await;
    assert_eq!((answer.status, &answer.headers["content-type"]), (200, &HeaderValue::from_static("application/json")));
    let array = answer.json();
    let of = |id: Value| array.as_array().unwrap().iter().find(|response| response["id"] == id).unwrap().clone();
    assert_eq!(array.as_array().unwrap().len(), 8, "{array}");
    for (id, text) in [(1, "at once"), (2, "at once")] {
        assert_eq!(of(json!(id))["result"]["content"][0]["text"], text);
    }
    assert_eq!(of(json!("b"))["result"], json!({}));
    for (id, code) in [(json!(3), -32600), (json!(4), -32601), (json!(5), -32600), (json!(6), -32602)] {
        assert_eq!(of(id.clone())["error"]["code"], code, "{id}: {array}");
    }
    let nameless = array.as_array().unwrap().iter().find(|response| response["id"].is_null()).unwrap();
    assert_eq!(nameless["error"]["code"], -32600, "the number is no message");
}

/// Field case 13, within a batch.
async fn ids_in_a_batch_are_echoed_or_refused_as_elsewhere(lane: Lane) {
    let client = batching(lane).connect(server().0).await;
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let ids = ["7.0", "1e2", "0", r#""""#, "9007199254740993", "18446744073709551616", r#""7""#];
    let others = ["7.5", "null", "true", "{}"];
    let batch = ids.iter().chain(&others).map(|id| ping(id)).collect::<Vec<_>>().join(",");
    let answer = client.http(Method::POST, format!("[{batch}]"), |_| {}).await;
    for echoed in ["7", "100", "0", r#""""#, "9007199254740993", "18446744073709551616", r#""7""#] {
        assert!(answer.body.contains(&format!(r#""id":{echoed},"result":{{}}"#)), "{echoed}: {}", answer.body);
    }
    let array = answer.json();
    let (refused, served): (Vec<_>, Vec<_>) = array.as_array().unwrap().iter().partition(|it| it["id"].is_null());
    assert_eq!((refused.len(), served.len()), (others.len(), ids.len()), "{array}");
    assert!(refused.iter().all(|it| it["error"]["code"] == -32600), "{array}");
}

async fn a_batch_that_asks_for_nothing_is_accepted_without_a_body(lane: Lane) {
    let client = batching(lane).connect(server().0).await;
    let batch = json!([
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        { "jsonrpc": "2.0", "id": 99, "result": {} },
    ]);
    let answer = post(&client, batch).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
}

async fn a_batch_has_so_many_messages(lane: Lane) {
    let (builder, _gate, runs) = server();
    let client = batching(lane).connect(builder).await;
    let calls = |number: i64| Value::Array((0..number).map(|id| call(id, "at_once")).collect());
    assert_eq!(post(&client, calls(100)).await.status, 200);
    assert_eq!(runs.swap(0, Ordering::SeqCst), 100);
    let refused = post(&client, calls(101)).await;
    assert_eq!((refused.status, refused.code()), (400, -32600));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

async fn what_takes_its_time_is_answered_by_a_stream_that_can_be_lost(lane: Lane) {
    let (server, gate, _) = server();
    let client = batching(lane).connect(server).await;
    let batch = json!([call(1, "waits"), call(2, "at_once"), call(3, "waits"), 7]);
    let mut events = client.stream(Method::POST, batch.to_string(), |_| {}).await;
    let mut seen = Vec::new();
    let mut place = String::new();
    while seen.len() < 4 {
        let (at, said) = message(&mut events).await;
        seen.push(said);
        place = at;
    }
    let progress = seen.iter().filter(|said| said["method"] == "notifications/progress").count();
    assert_eq!(progress, 2, "both that wait said how far they are: {seen:?}");
    assert!(seen.iter().any(|said| said["id"] == 2 && said["result"].is_object()), "{seen:?}");
    assert!(seen.iter().any(|said| said["error"]["code"] == -32600), "{seen:?}");
    drop(events);
    gate.add_permits(2);
    idle().await;
    let place = HeaderValue::from_str(&place).unwrap();
    let come_back = |headers: &mut HeaderMap| drop(headers.insert("last-event-id", place));
    let mut again = client.stream(Method::GET, "", come_back).await;
    let mut late = [message(&mut again).await.1, message(&mut again).await.1];
    late.sort_by_key(|said| said["id"].as_i64());
    assert_eq!(texts(&json!(late)), [(1, "waited".to_owned()), (3, "waited".to_owned())]);
    assert_eq!(again.next().await, None, "the last response is the end");
}

async fn a_client_without_streams_waits_for_the_whole_array(lane: Lane) {
    let (server, gate, _) = server();
    let client = batching(lane).connect(server).await;
    let batch = json!([call(1, "waits"), call(2, "at_once"), call(3, "waits")]).to_string();
    let answer = client.http(Method::POST, batch, without_streams);
    let let_go = async {
        idle().await;
        gate.add_permits(2);
    };
    let (answer, ()) = tokio::join!(answer, let_go);
    assert_eq!(answer.status, 200);
    let waited = || "waited".to_owned();
    assert_eq!(texts(&answer.json()), [(1, waited()), (2, "at once".to_owned()), (3, waited())]);
}

async fn an_answer_in_a_batch_reaches_who_asked(lane: Lane) {
    let client = batching(lane).connect(server().0).await;
    let mut events = client.stream(Method::POST, json!([call(1, "asks"), call(2, "asks")]).to_string(), |_| {}).await;
    let mut answers = Vec::new();
    for text in ["one", "two"] {
        let asked = message(&mut events).await.1;
        assert_eq!(asked["method"], "sampling/createMessage");
        let result = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": text } });
        answers.push(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    }
    assert_eq!(post(&client, json!(answers)).await.status, 202);
    let said = json!([message(&mut events).await.1, message(&mut events).await.1]);
    assert_eq!(texts(&said), [(1, "one".to_owned()), (2, "two".to_owned())]);
}

async fn a_request_can_be_taken_back_from_within_a_batch(lane: Lane) {
    let client = batching(lane).connect(server().0).await;
    let cancelled = json!({ "requestId": 1 });
    let batch = json!([
        call(1, "waits"),
        call(2, "at_once"),
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled },
    ]);
    let answer = client.http(Method::POST, batch.to_string(), without_streams).await;
    assert_eq!(texts(&answer.json()), [(2, "at once".to_owned())], "what was taken back has no response");
}

async fn revisions_without_batches_refuse_them_whole(lane: Lane) {
    let (server, _, runs) = server();
    let server = server.build().unwrap();
    for lane in lane.each_revision().filter(|lane| !lane.revision().rules().batches) {
        let client = lane.host(&server).connect().await;
        for batch in [json!([call(1, "at_once")]), json!([call(1, "at_once"), 7])] {
            let answer = post(&client, batch).await;
            assert_eq!((answer.status, answer.code()), (400, -32600), "{lane:?}");
            assert!(answer.json().get("id").is_none_or(Value::is_null));
        }
    }
    let empty = post(&batching(lane).host(&server).connect().await, json!([])).await;
    assert_eq!((empty.status, empty.code()), (400, -32600), "an empty one is no batch anywhere");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

async fn a_batch_needs_its_session_as_one_message_does(lane: Lane) {
    let (server, _, runs) = server();
    let server = server.build().unwrap();
    let host = batching(lane).host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(mcp_tests::Profile::named("bob")).await);
    let batch = json!([call(1, "at_once")]).to_string();
    let foreign = HeaderValue::from_str(&bob.session_id()).unwrap();
    let in_session = |id: HeaderValue| move |headers: &mut HeaderMap| drop(headers.insert("mcp-session-id", id));
    let of_bob = ann.http(Method::POST, batch.clone(), in_session(foreign)).await;
    let unknown = ann.http(Method::POST, batch.clone(), in_session(HeaderValue::from_static("x"))).await;
    assert_eq!((of_bob.status, of_bob.body), (404, unknown.body), "somebody else's session and none look the same");
    let missing = ann.http(Method::POST, batch.clone(), |headers| drop(headers.remove("mcp-session-id"))).await;
    assert_eq!((missing.status, missing.code()), (400, -32600));
    let other = HeaderValue::from_static("2025-06-18");
    let other = ann.http(Method::POST, batch, |headers| drop(headers.insert("mcp-protocol-version", other))).await;
    assert_eq!((other.status, other.code()), (400, -32600), "the session speaks another revision");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

async fn a_modern_message_in_a_batch_refuses_it_before_anything_is_done(lane: Lane) {
    let (server, _, runs) = server();
    let client = batching(lane).connect(server).await;
    let mut modern = call(2, "at_once");
    modern["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = post(&client, json!([call(1, "at_once"), modern])).await;
    assert_eq!((answer.status, answer.code()), (400, -32600));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

async fn an_ended_session_ends_the_batches_in_it(lane: Lane) {
    let (server, _, _) = server();
    let client = batching(lane).connect(server).await;
    let mut events = client.stream(Method::POST, json!([call(1, "waits"), call(2, "waits")]).to_string(), |_| {}).await;
    message(&mut events).await;
    message(&mut events).await;
    assert_eq!(client.http(Method::DELETE, "", |_| {}).await.status, 204);
    assert_eq!(within("the end", events.next()).await, None);
}

async fn without_sessions_a_batch_stands_alone(_lane: Lane) {
    let service =
        HttpService::new(server().0.build().unwrap(), HttpConfig::new(mcp_auth::Anonymous).without_sessions());
    let batch = json!([call(1, "at_once"), 7, call(2, "at_once")]).to_string();
    for (declared, status) in [(None, 200), (Some("2025-03-26"), 200), (Some("2025-06-18"), 400), (Some("x"), 400)] {
        let mut request = Request::post("/mcp").header("host", "localhost").header(CONTENT_TYPE, "application/json");
        if let Some(declared) = declared {
            request = request.header("mcp-protocol-version", declared);
        }
        let response = service.respond(request.body(Full::new(Bytes::from(batch.clone()))).unwrap()).await;
        assert_eq!(response.status(), status, "{declared:?}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        match status {
            200 => assert_eq!(answer.as_array().map(Vec::len), Some(3), "{answer}"),
            _ => assert_eq!(answer["error"]["code"], -32600, "{answer}"),
        }
    }
}
