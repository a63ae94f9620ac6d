//! The legacy way of asking: requests of the server on the stream of the call, while it waits.
//!
//! Spec: 2025-11-25 client/elicitation, client/sampling, client/roots; basic/transports, "Sending Messages to the Server"

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_core::{Form, HandlerError, Limits, ListRoots, RequestContext, Server, ServerBuilder, Tool, Visit};
use mcp_tests::{Item, Lane, Profile, idle, lanes};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::ask::asking;

lanes! {
    everywhere {}
    legacy "a modern server sends no requests" {
        a_refusal_is_told_to_the_model,
        an_answer_that_does_not_come_is_not_waited_for_without_end,
        an_answer_counts_once_and_only_from_its_own_client,
        an_id_may_come_back_in_another_writing,
        a_cancelled_call_waits_for_no_answer,
        calls_wait_for_their_answers_side_by_side,
        each_revision_is_asked_in_its_own_words,
        more_questions_than_a_session_may_have_open_are_refused,
    }
    http_legacy "only HTTP ends sessions from outside" {
        the_end_of_a_session_ends_what_waits_in_it,
        a_client_that_takes_no_stream_cannot_be_asked,
    }
}

fn look() -> Tool {
    asking("look", |context| async move { Ok(context.ask("where", ListRoots)?.len().to_string()) })
}

fn server() -> ServerBuilder {
    Server::builder("s", "1").tool(look())
}

async fn a_refusal_is_told_to_the_model(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut call = client.start_tool("look", json!({}));
    let asked = call.server_request().await;
    client.answer_error(&asked, -1, "the user said no").await;
    let reply = call.reply().await;
    assert!(reply.is_tool_error());
    let text = reply.tool_text();
    assert!(text.contains("where") && text.contains("the user said no"), "{text}");
}

async fn an_answer_that_does_not_come_is_not_waited_for_without_end(lane: Lane) {
    let client = lane.connect(server()).await;
    let started = Instant::now();
    let mut call = client.start_tool("look", json!({}));
    let asked = call.server_request().await;
    let withdrawn = call.notification().await;
    assert_eq!(started.elapsed().as_secs(), Limits::default().answer_wait.as_secs());
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    let reply = call.reply().await;
    assert_eq!((reply.code(), reply.message()), (-32603, "the client did not answer in time"));
    client.answer(&asked, json!({ "roots": [] })).await;
    assert_eq!(client.request("ping", json!({})).await.result(), &json!({}), "a late answer is ignored");
}

async fn an_answer_counts_once_and_only_from_its_own_client(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(Profile::named("bob")).await);
    let (mut of_ann, mut of_bob) = (ann.start_tool("look", json!({})), bob.start_tool("look", json!({})));
    let (asked_ann, asked_bob) = (of_ann.server_request().await, of_bob.server_request().await);
    assert_eq!(asked_ann["id"], asked_bob["id"], "ids are those of a session");
    bob.answer(&asked_ann, json!({ "roots": [] })).await;
    of_ann.is_quiet().await;
    assert_eq!(of_bob.reply().await.tool_text(), "0");
    let roots = json!({ "roots": [{ "uri": "file:///a" }] });
    ann.answer(&json!({ "id": 999 }), roots.clone()).await;
    ann.answer(&json!({ "id": format!("0{}", asked_ann["id"]) }), roots.clone()).await;
    of_ann.is_quiet().await;
    ann.answer(&asked_ann, roots.clone()).await;
    ann.answer(&asked_ann, roots).await;
    assert_eq!(of_ann.reply().await.tool_text(), "1");
}

/// Field case 13: several languages have one kind of number or of id only, and a lost answer is worse than a lenient match.
async fn an_id_may_come_back_in_another_writing(lane: Lane) {
    let client = lane.connect(server()).await;
    for write in [
        |id: i64| id.to_string(),
        |id| format!("{id}.0"),
        |id| format!("{id}e0"),
        |id| format!("{id}0E-1"),
        |id| format!("\"{id}\""),
    ] {
        let mut call = client.start_tool("look", json!({}));
        let id = write(call.server_request().await["id"].as_i64().unwrap());
        client.start_raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#)).silence().await;
        assert_eq!(call.reply().await.tool_text(), "0", "{id}");
        let mut call = client.start_tool("look", json!({}));
        let id = write(call.server_request().await["id"].as_i64().unwrap());
        let no = r#"{"code":-1,"message":"no"}"#;
        client.start_raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{no}}}"#)).silence().await;
        assert!(call.reply().await.is_tool_error(), "{id}");
    }
}

async fn a_cancelled_call_waits_for_no_answer(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut call = client.start_tool("look", json!({}));
    let asked = call.server_request().await;
    client.cancel(call).await;
    client.answer(&asked, json!({ "roots": [] })).await;
    assert_eq!(client.request("ping", json!({})).await.result(), &json!({}));
}

async fn calls_wait_for_their_answers_side_by_side(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut calls = Vec::new();
    for count in 0..5 {
        let mut call = client.start_tool("look", json!({}));
        let asked = call.server_request().await;
        calls.push((count, call, asked));
    }
    calls.reverse();
    for (count, call, asked) in calls {
        let roots: Vec<_> = (0..count).map(|n| json!({ "uri": format!("file:///{n}") })).collect();
        client.answer(&asked, json!({ "roots": roots })).await;
        assert_eq!(call.reply().await.tool_text(), count.to_string());
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
enum Colour {
    /// Like blood
    Red,
    /// Like the sky
    Blue,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Choice {
    #[expect(dead_code, reason = "the test looks at the form only")]
    colour: Colour,
}

/// Checklist 38: an R3 session never receives `icons`, `execution`, titled enums, priming events or `resultType`. (Here:
/// titled enums.)
async fn each_revision_is_asked_in_its_own_words(lane: Lane) {
    let server = Server::builder("s", "1")
        .tool(asking("choose", |context| async move {
            context.ask("k", Form::<Choice>::new("Which?"))?;
            Ok("asked".to_owned())
        }))
        .tool(asking("visit", |context| async move {
            context.ask("k", Visit::new("Go", "https://example.com"))?;
            Ok("asked".to_owned())
        }))
        .build()
        .unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let rules = lane.revision().rules();
        let decline = |_: &mcp_tests::Question| json!({ "action": "decline" });
        let interview = client.interview("choose", json!({}), decline).await;
        if !rules.elicitation {
            assert!(interview.reply.is_tool_error() && interview.questions.is_empty(), "{lane:?}");
            continue;
        }
        let params = &interview.questions[0].params;
        assert_eq!(params.get("mode").is_some(), rules.elicitation_extended, "{lane:?}");
        let colour = &params["requestedSchema"]["properties"]["colour"];
        assert_eq!(colour.get("oneOf").is_some(), rules.elicitation_extended, "{lane:?}: {colour}");
        assert_eq!(colour.get("enumNames").is_some(), !rules.elicitation_extended, "{lane:?}: {colour}");
        let interview = client.interview("visit", json!({}), decline).await;
        assert_eq!(interview.questions.len(), usize::from(rules.elicitation_extended), "{lane:?}");
        assert_eq!(interview.reply.is_tool_error(), !rules.elicitation_extended, "{lane:?}");
    }
}

async fn more_questions_than_a_session_may_have_open_are_refused(lane: Lane) {
    let mut limits = Limits::default();
    limits.pending_requests = 2;
    let client = lane.connect(server().limits(limits)).await;
    let mut one = client.start_tool("look", json!({}));
    let first = one.server_request().await;
    let mut two = client.start_tool("look", json!({}));
    let second = two.server_request().await;
    assert_eq!(client.call("look", json!({})).await.code(), -32603);
    client.answer(&first, json!({ "roots": [] })).await;
    assert_eq!(one.reply().await.tool_text(), "0");
    let mut three = client.start_tool("look", json!({}));
    let third = three.server_request().await;
    for (call, asked) in [(two, second), (three, third)] {
        client.answer(&asked, json!({ "roots": [] })).await;
        assert_eq!(call.reply().await.tool_text(), "0");
    }
}

/// Checklist 33: after DELETE the session answers 404 and its pending server requests fail. (Here: the second half.)
async fn the_end_of_a_session_ends_what_waits_in_it(lane: Lane) {
    let cancelled = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&cancelled);
    let waits = asking("waits", move |context: RequestContext| {
        let seen = Arc::clone(&seen);
        async move {
            context.cancelled().await;
            seen.store(true, Ordering::Relaxed);
            Err(HandlerError::cancelled())
        }
    });
    let client = lane.connect(server().tool(waits)).await;
    let mut asking = client.start_tool("look", json!({}));
    let waiting = client.start_tool("waits", json!({}));
    asking.server_request().await;
    idle().await;
    assert_eq!(client.http(http::Method::DELETE, "", |_| {}).await.status, 204);
    // The stream of a legacy call ends in order; whether an error comes first is the server's choice.
    while let Some(item) = asking.next().await {
        assert!(matches!(&item, Item::Response(reply) if reply.code() == -32603), "{item:?}");
    }
    drop(waiting);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(cancelled.load(Ordering::Relaxed), "the handler was not told");
}

async fn a_client_that_takes_no_stream_cannot_be_asked(lane: Lane) {
    let client = lane.connect(server()).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "look" } });
    let answer = client
        .http(http::Method::POST, body.to_string(), |headers| {
            headers.insert("accept", http::HeaderValue::from_static("application/json"));
        })
        .await;
    assert_eq!((answer.status, answer.code()), (200, -32602));
}
