//! What a handler says while it works: progress and log messages.
//!
//! Spec: 2026-07-28 basic/utilities/progress; server/utilities/logging; 2025-11-25 server/utilities/logging

use std::sync::{Arc, Mutex};

use mcp_core::{HandlerError, Limits, ListRoots, NoArguments, RequestContext, Server, Tool};
use mcp_tests::{Lane, idle, lanes};
use mcp_wire::types::LoggingLevel;
use serde_json::{Value, json};

lanes! {
    everywhere {
        progress_comes_only_to_who_gave_a_token,
        progress_increases_or_is_not_sent,
        progress_that_finds_the_queue_full_is_merged_and_the_last_arrives,
        log_messages_that_find_the_queue_full_are_dropped_and_the_response_arrives,
        log_messages_come_from_the_level_up_that_was_asked_for,
        log_messages_carry_any_data_and_who_speaks,
        nothing_comes_after_the_response,
        what_was_said_before_a_question_is_not_said_again,
        each_call_hears_of_itself_alone,
    }
    legacy "the level of a session came with the legacy era" {
        a_session_has_a_level_that_can_be_changed,
        a_level_that_is_none_is_invalid_params,
        the_first_revision_hears_no_message_with_progress,
    }
    modern "in the legacy era a session has a level from the start" {
        without_a_level_nothing_is_logged,
        the_level_of_one_request_is_not_that_of_another,
    }
    http "a pipe always takes what comes before a response" {
        a_client_that_takes_no_stream_gets_the_response,
    }
}

fn tool<W>(name: &str, handler: impl Fn(RequestContext) -> W + Send + Sync + 'static) -> Tool
where
    W: Future<Output = Result<String, HandlerError>> + Send + 'static,
{
    Tool::typed(name, move |_: NoArguments, context: RequestContext| handler(context))
}

fn steps(name: &str, values: &'static [f64]) -> Tool {
    tool(name, move |context| async move {
        for value in values {
            context.progress(*value, Some(100.0), Some("working"));
        }
        Ok("done".to_owned())
    })
}

fn logs(name: &str) -> Tool {
    tool(name, |context| async move {
        use LoggingLevel::{Alert, Critical, Debug, Emergency, Error, Info, Notice, Warning};
        for level in [Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency] {
            context.log(level, level.as_str());
        }
        Ok("done".to_owned())
    })
}

fn with_token(tool: &str, token: Value) -> Value {
    json!({ "name": tool, "_meta": { "progressToken": token } })
}

fn values(notices: &[Value]) -> Vec<f64> {
    notices.iter().filter_map(|notice| notice["params"]["progress"].as_f64()).collect()
}

fn data(notices: &[Value]) -> Vec<&str> {
    notices.iter().filter_map(|notice| notice["params"]["data"].as_str()).collect()
}

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

async fn progress_comes_only_to_who_gave_a_token(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(steps("steps", &[1.5, 2.5]))).await;
    assert_eq!(client.call("steps", json!({})).await.before, Vec::<Value>::new());
    for token in [json!("t"), json!(0), json!(""), json!(-7), json!(9_007_199_254_740_993_i64)] {
        let reply = client.request("tools/call", with_token("steps", token.clone())).await;
        let expected = |progress: f64| {
            json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": { "progressToken": token, "progress": progress, "total": 100, "message": "working" },
            })
        };
        assert_eq!(reply.before, [expected(1.5), expected(2.5)]);
    }
}

async fn progress_increases_or_is_not_sent(lane: Lane) {
    let odd = &[-1.0, 0.0, 0.0, 5.0, 3.0, 5.0, f64::NAN, f64::INFINITY, 5.5];
    let client = lane.connect(Server::builder("s", "1").tool(steps("steps", odd))).await;
    let reply = client.request("tools/call", with_token("steps", json!("t"))).await;
    assert_eq!(values(&reply.before), [-1.0, 0.0, 5.0, 5.5]);
}

async fn progress_that_finds_the_queue_full_is_merged_and_the_last_arrives(lane: Lane) {
    let mut limits = Limits::default();
    limits.notices = 4;
    let many = tool("many", |context| async move {
        for step in 1..=1000 {
            context.progress(f64::from(step), None, None);
        }
        tokio::task::yield_now().await;
        context.progress(2000.0, None, None);
        Ok("done".to_owned())
    });
    let client = lane.connect(Server::builder("s", "1").limits(limits).tool(many)).await;
    let reply = client.request("tools/call", with_token("many", json!("t"))).await;
    let values = values(&reply.before);
    assert_eq!(values.first(), Some(&1.0));
    assert!(values.contains(&1000.0) && values.len() < 10, "{values:?}");
    assert_eq!(values.last(), Some(&2000.0));
    assert!(values.is_sorted(), "{values:?}");
}

async fn log_messages_that_find_the_queue_full_are_dropped_and_the_response_arrives(lane: Lane) {
    let mut limits = Limits::default();
    limits.notices = 4;
    let many = tool("many", |context| async move {
        for step in 1..=1000 {
            context.log(LoggingLevel::Error, step.to_string());
        }
        Ok("done".to_owned())
    });
    let client = lane.connect(Server::builder("s", "1").limits(limits).tool(many)).await;
    client.set_log_level("error").await;
    let reply = client.call("many", json!({})).await;
    assert_eq!(reply.tool_text(), "done");
    assert_eq!(data(&reply.before), ["1", "2", "3", "4"]);
}

/// Checklist 15: no log notification is sent without `logLevel`, and none below the level with it. (Here: the second
/// half, and the same for sessions.)
async fn log_messages_come_from_the_level_up_that_was_asked_for(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(logs("logs"))).await;
    for (index, level) in LEVELS.into_iter().enumerate() {
        client.set_log_level(level).await;
        let reply = client.call("logs", json!({})).await;
        assert_eq!(data(&reply.before), LEVELS[index..], "{level}");
        for notice in &reply.before {
            assert_eq!(notice["method"], "notifications/message");
            assert_eq!(notice["params"]["level"], notice["params"]["data"]);
        }
    }
}

async fn log_messages_carry_any_data_and_who_speaks(lane: Lane) {
    let speaks = tool("speaks", |context| async move {
        context.log_as(LoggingLevel::Error, Some("database"), json!({ "rows": [1, null, "x"] }));
        context.log(LoggingLevel::Error, json!(null));
        Ok("done".to_owned())
    });
    let client = lane.connect(Server::builder("s", "1").tool(speaks)).await;
    client.set_log_level("error").await;
    let reply = client.call("speaks", json!({})).await;
    assert_eq!(
        reply.before[0]["params"],
        json!({ "level": "error", "logger": "database", "data": { "rows": [1, null, "x"] } })
    );
    assert_eq!(reply.before[1]["params"], json!({ "level": "error", "data": null }));
}

async fn nothing_comes_after_the_response(lane: Lane) {
    let kept: Arc<Mutex<Option<RequestContext>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let keeps = tool("keeps", move |context| {
        *keep.lock().unwrap() = Some(context.clone());
        async move {
            context.progress(1.0, None, None);
            Ok("done".to_owned())
        }
    });
    let client = lane.connect(Server::builder("s", "1").tool(keeps)).await;
    client.set_log_level("debug").await;
    // That nothing follows the response is checked for every call.
    let call = client.start("tools/call", with_token("keeps", json!("t")));
    idle().await;
    let context = kept.lock().unwrap().take().unwrap();
    context.progress(2.0, None, None);
    context.log(LoggingLevel::Error, "late");
    let reply = call.reply().await;
    assert_eq!(values(&reply.before), [1.0]);
    assert_eq!(reply.before.len(), 1);
    context.progress(3.0, None, None);
    assert_eq!(client.call("keeps", json!({})).await.before.len(), 0);
}

async fn what_was_said_before_a_question_is_not_said_again(lane: Lane) {
    let asks = tool("asks", |context| async move {
        context.log(LoggingLevel::Info, "one");
        context.progress(1.0, None, None);
        context.ask("a", ListRoots)?;
        context.log(LoggingLevel::Info, "two");
        context.log(LoggingLevel::Debug, "not wanted");
        context.progress(2.0, None, None);
        context.ask("b", mcp_core::Visit::new("Go", "https://example.com"))?;
        context.log(LoggingLevel::Info, "three");
        context.progress(3.0, None, None);
        Ok("done".to_owned())
    });
    let client = lane.connect(Server::builder("s", "1").tool(asks)).await;
    client.set_log_level("info").await;
    let interview = client
        .interview_for("tools/call", with_token("asks", json!("t")), |question| match question.method.as_str() {
            "roots/list" => json!({ "roots": [] }),
            _ => json!({ "action": "accept" }),
        })
        .await;
    assert_eq!(interview.reply.tool_text(), "done");
    assert_eq!(data(&interview.notices), ["one", "two", "three"]);
    // A modern retry is a request of its own, whose progress starts anew.
    let expected = lane.pick(vec![1.0, 2.0, 3.0], vec![1.0, 1.0, 2.0, 1.0, 2.0, 3.0]);
    assert_eq!(values(&interview.notices), expected);
}

async fn each_call_hears_of_itself_alone(lane: Lane) {
    let slow = tool("slow", |context| async move {
        for step in 1..=3 {
            context.progress(f64::from(step), None, None);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        Ok("done".to_owned())
    });
    let client = lane.connect(Server::builder("s", "1").tool(slow)).await;
    let calls: Vec<_> = (0..4).map(|token| client.start("tools/call", with_token("slow", json!(token)))).collect();
    for (token, call) in calls.into_iter().enumerate() {
        let reply = call.reply().await;
        assert_eq!(values(&reply.before), [1.0, 2.0, 3.0]);
        assert!(reply.before.iter().all(|notice| notice["params"]["progressToken"] == token));
    }
}

async fn a_session_has_a_level_that_can_be_changed(lane: Lane) {
    let server = Server::builder("s", "1").tool(logs("logs")).build().unwrap();
    for lane in lane.each_revision() {
        let host = lane.host(&server);
        let (one, other) = (host.connect().await, host.connect().await);
        assert_eq!(data(&one.call("logs", json!({})).await.before), LEVELS[1..], "info, unless the client says so");
        one.set_log_level("alert").await;
        assert_eq!(data(&one.call("logs", json!({})).await.before), LEVELS[6..]);
        assert_eq!(data(&other.call("logs", json!({})).await.before), LEVELS[1..], "of this session alone");
    }
}

async fn a_level_that_is_none_is_invalid_params(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(logs("logs"))).await;
    client.set_log_level("alert").await;
    for params in [
        json!({}),
        json!({ "level": "loud" }),
        json!({ "level": "Debug" }),
        json!({ "level": 7 }),
        json!({ "level": null }),
    ] {
        assert_eq!(client.request("logging/setLevel", params.clone()).await.code(), -32602, "{params}");
    }
    assert_eq!(data(&client.call("logs", json!({})).await.before), LEVELS[6..], "what was set stands");
}

async fn the_first_revision_hears_no_message_with_progress(lane: Lane) {
    let server = Server::builder("s", "1").tool(steps("steps", &[1.0])).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let reply = client.request("tools/call", with_token("steps", json!("t"))).await;
        let has = lane.revision().rules().tool_annotations;
        assert_eq!(reply.before[0]["params"].get("message").is_some(), has, "{lane:?}");
    }
}

/// Checklist 15: no log notification is sent without `logLevel`, and none below the level with it. (Here: the first half.)
async fn without_a_level_nothing_is_logged(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(logs("logs"))).await;
    assert_eq!(client.call("logs", json!({})).await.before, Vec::<Value>::new());
}

async fn the_level_of_one_request_is_not_that_of_another(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(logs("logs"))).await;
    let with = |level: &str| json!({ "name": "logs", "_meta": { "io.modelcontextprotocol/logLevel": level } });
    assert_eq!(data(&client.request("tools/call", with("alert")).await.before), LEVELS[6..]);
    assert_eq!(client.call("logs", json!({})).await.before.len(), 0);
    assert_eq!(data(&client.request("tools/call", with("error")).await.before), LEVELS[4..]);
}

async fn a_client_that_takes_no_stream_gets_the_response(lane: Lane) {
    let server = Server::builder("s", "1").tool(steps("steps", &[1.0, 2.0])).tool(logs("logs"));
    let client = lane.connect(server).await;
    for tool in ["steps", "logs"] {
        let mut params = with_token(tool, json!("t"));
        if lane.is_modern() {
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": client.enveloped(params) });
        let answer = client
            .http(http::Method::POST, body.to_string(), |headers| {
                headers.insert("accept", http::HeaderValue::from_static("application/json"));
            })
            .await;
        assert_eq!((answer.status, &answer.headers["content-type"]), (200, &"application/json".parse().unwrap()));
        assert_eq!(answer.json()["result"]["content"][0]["text"], "done");
    }
}
