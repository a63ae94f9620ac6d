//! The modern way of asking: the request is over, and what is to be remembered goes with the client, sealed.
//!
//! Spec: 2026-07-28 basic/patterns/mrtr, "Server Requirements" and "Request State"

use std::time::Duration;

use mcp_core::{
    Elicited, Form, HandlerError, KeyRing, Limits, ListRoots, Prompt, PromptReply, RequestContext, Server,
    ServerBuilder, StateKey, Tool, Visit, completer_of,
};
use mcp_tests::{Client, Lane, Profile, Reply, lanes};
use mcp_wire::RawJson;
use serde_json::{Value, json};

use crate::ask::{Name, asking};

lanes! {
    everywhere {}
    modern "in the legacy era the request stays open while the client answers" {
        a_question_ends_the_request_and_gives_no_hints,
        a_state_that_does_not_verify_is_always_the_same_error,
        a_state_is_good_for_its_lifetime,
        the_order_and_writing_of_arguments_do_not_matter,
        each_round_has_a_state_of_its_own,
        a_missing_answer_is_asked_for_again,
        answers_that_nobody_asked_for_are_ignored,
        answers_without_a_state_count_as_the_first_round,
        any_instance_with_the_key_serves_the_retry,
        an_old_key_opens_until_it_is_dropped,
        nothing_in_the_state_can_be_read,
        a_state_that_grows_too_large_ends_the_call,
        only_three_methods_ask,
        a_retry_is_checked_like_any_request,
        answers_have_to_be_an_object,
    }
}

/// Asks two things, one after the other, whatever its arguments.
fn two_rounds(name: &str) -> Tool {
    Tool::raw(name, json!({ "type": "object" }), |_: RawJson, context: RequestContext| async move {
        let roots = context.ask("first", ListRoots)?;
        let name = match context.ask("second", Form::<Name>::new("Who?"))? {
            Elicited::Accepted(name) => name.name,
            Elicited::Declined | Elicited::Cancelled => "nobody".to_owned(),
        };
        Ok::<_, HandlerError>(format!("{name} in {}", roots.len()))
    })
}

fn server() -> ServerBuilder {
    Server::builder("s", "1").tool(two_rounds("t")).tool(two_rounds("u"))
}

async fn call(client: &Client, tool: &str, arguments: Value, answers: Value, state: Option<&Value>) -> Reply {
    let mut params = json!({ "name": tool, "arguments": arguments, "inputResponses": answers });
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    client.request("tools/call", params).await
}

/// The state that the first round of a call ends with.
async fn first_state(client: &Client) -> Value {
    let reply = client.call("t", json!({ "a": 1, "b": [2] })).await;
    assert_eq!(reply.result()["resultType"], "input_required");
    reply.result()["requestState"].clone()
}

fn roots() -> Value {
    json!({ "first": { "roots": [] } })
}

async fn a_question_ends_the_request_and_gives_no_hints(lane: Lane) {
    let client = lane.connect(server()).await;
    let reply = client.call("t", json!({})).await;
    assert!(reply.has_status(200) && reply.before.is_empty());
    let result = reply.result();
    let mut members: Vec<_> = result.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["_meta", "inputRequests", "requestState", "resultType"]);
    assert_eq!(result["inputRequests"], json!({ "first": { "method": "roots/list", "params": {} } }));
}

/// Checklist 23: a tampered, expired or foreign `requestState` gives a JSON-RPC error, and a missing answer gives another
/// `input_required`. (Here: the first half.)
async fn a_state_that_does_not_verify_is_always_the_same_error(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let ann = host.connect().await;
    let bob = host.connect_as(Profile::named("bob")).await;
    let arguments = json!({ "a": 1, "b": [2] });
    let good = first_state(&ann).await;
    let text = good.as_str().unwrap();
    let other_server = lane.connect(self::server()).await;

    let mut wrong = vec![
        json!(""),
        json!("x"),
        json!(format!("{text}x")),
        json!(format!("{text}=")),
        json!(7),
        json!({}),
        json!([]),
    ];
    wrong.push(json!(text[..text.len() - 1]));
    wrong.push(json!("A".repeat(1_000_000)));
    wrong.push(first_state(&other_server).await);
    for at in [0, 3, 8, text.len() / 2, text.len() - 2] {
        let mut tampered = text.as_bytes().to_vec();
        tampered[at] = if tampered[at] == b'A' { b'B' } else { b'A' };
        wrong.push(json!(String::from_utf8(tampered).unwrap()));
    }
    let mut errors = Vec::new();
    for state in wrong {
        errors.push(call(&ann, "t", arguments.clone(), roots(), Some(&state)).await);
    }
    errors.push(call(&bob, "t", arguments.clone(), roots(), Some(&good)).await);
    errors.push(call(&ann, "u", arguments.clone(), roots(), Some(&good)).await);
    errors.push(call(&ann, "t", json!({ "a": 2, "b": [2] }), roots(), Some(&good)).await);
    errors.push(call(&ann, "t", json!({}), roots(), Some(&good)).await);
    tokio::time::advance(Limits::default().state_lifetime + Duration::from_secs(1)).await;
    errors.push(call(&ann, "t", arguments, roots(), Some(&good)).await);

    let first = errors[0].error().clone();
    assert_eq!(first["code"], -32602);
    for (index, error) in errors.iter().enumerate() {
        assert_eq!(error.error(), &first, "case {index} can be told from the others");
        assert!(error.has_status(200), "case {index}");
    }
}

async fn a_state_is_good_for_its_lifetime(lane: Lane) {
    let client = lane.connect(server()).await;
    let state = first_state(&client).await;
    tokio::time::advance(Limits::default().state_lifetime - Duration::from_secs(1)).await;
    let reply = call(&client, "t", json!({ "a": 1, "b": [2] }), roots(), Some(&state)).await;
    assert_eq!(reply.result()["resultType"], "input_required", "the second question");
}

async fn the_order_and_writing_of_arguments_do_not_matter(lane: Lane) {
    let client = lane.connect(server()).await;
    let state = first_state(&client).await;
    let mut params =
        client.enveloped(json!({ "name": "t", "inputResponses": roots(), "requestState": state })).to_string();
    params.pop();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{params},"arguments":{{ "b" : [2.0], "\u0061": 1 }}}}}}"#
    );
    assert_eq!(client.raw(text).await.result()["resultType"], "input_required");
}

async fn each_round_has_a_state_of_its_own(lane: Lane) {
    let client = lane.connect(server()).await;
    let arguments = json!({ "a": 1, "b": [2] });
    let first = first_state(&client).await;
    let second = call(&client, "t", arguments.clone(), roots(), Some(&first)).await;
    assert_eq!(second.result()["inputRequests"]["second"]["method"], "elicitation/create");
    let second = second.result()["requestState"].clone();
    assert_ne!(first, second);
    let answer = json!({ "second": { "action": "accept", "content": { "name": "Ann" } } });
    let last = call(&client, "t", arguments.clone(), answer.clone(), Some(&second)).await;
    assert_eq!(last.tool_text(), "Ann in 0", "the earlier answer was remembered");
    // Nothing is spent: a retry may be repeated, and an earlier round gone back to.
    assert_eq!(call(&client, "t", arguments.clone(), answer, Some(&second)).await.tool_text(), "Ann in 0");
    let again = call(&client, "t", arguments, roots(), Some(&first)).await;
    assert_eq!(again.result()["resultType"], "input_required");
}

/// Checklist 23: a tampered, expired or foreign `requestState` gives a JSON-RPC error, and a missing answer gives another
/// `input_required`. (Here: the second half.)
async fn a_missing_answer_is_asked_for_again(lane: Lane) {
    let tool = asking("both", |context| async move {
        let (roots, visit) = context.ask_all((("a", ListRoots), ("b", Visit::new("Go", "https://example.com"))))?;
        Ok(format!("{} {visit:?}", roots.len()))
    });
    let client = lane.connect(server().tool(tool)).await;
    let state = client.call("both", json!({})).await.result()["requestState"].clone();
    for (answers, left) in [
        (json!({}), vec!["a", "b"]),
        (json!({ "a": { "roots": [] } }), vec!["b"]),
        (json!({ "b": { "action": "accept" } }), vec!["a"]),
        (json!({ "c": {} }), vec!["a", "b"]),
    ] {
        let reply = call(&client, "both", json!({}), answers.clone(), Some(&state)).await;
        let asked: Vec<_> = reply.result()["inputRequests"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(asked, left, "{answers}");
    }
    let half = call(&client, "both", json!({}), json!({ "a": { "roots": [] } }), Some(&state)).await;
    let state = half.result()["requestState"].clone();
    let whole = call(&client, "both", json!({}), json!({ "b": { "action": "decline" } }), Some(&state)).await;
    assert_eq!(whole.tool_text(), "0 Declined");
}

async fn answers_that_nobody_asked_for_are_ignored(lane: Lane) {
    let client = lane.connect(server()).await;
    let arguments = json!({ "a": 1, "b": [2] });
    let state = first_state(&client).await;
    // The second question was not asked yet, so that nothing can be said to it.
    let early = json!({ "first": { "roots": [] }, "second": { "action": "decline" }, "third": null });
    let reply = call(&client, "t", arguments, early, Some(&state)).await;
    assert!(reply.result()["inputRequests"]["second"].is_object());
}

async fn answers_without_a_state_count_as_the_first_round(lane: Lane) {
    let client = lane.connect(server()).await;
    let reply = call(&client, "t", json!({}), roots(), None).await;
    assert!(reply.result()["inputRequests"]["second"].is_object(), "{}", reply.text);
    let mut both = roots();
    both["second"] = json!({ "action": "accept", "content": { "name": "Ann" } });
    assert_eq!(call(&client, "t", json!({}), both.clone(), None).await.tool_text(), "Ann in 0");
    both["second"]["content"] = json!({ "name": 7 });
    assert_eq!(call(&client, "t", json!({}), both, None).await.code(), -32602, "they are checked all the same");
    // What was accepted in that round is remembered in the next one.
    let state = reply.result()["requestState"].clone();
    let answer = json!({ "second": { "action": "accept", "content": { "name": "Bob" } } });
    assert_eq!(call(&client, "t", json!({}), answer, Some(&state)).await.tool_text(), "Bob in 0");
}

async fn any_instance_with_the_key_serves_the_retry(lane: Lane) {
    let instance = || server().state_keys(KeyRing::new(StateKey::new([7; 32])));
    let (one, other) = (lane.connect(instance()).await, lane.connect(instance()).await);
    let state = first_state(&one).await;
    let reply = call(&other, "t", json!({ "a": 1, "b": [2] }), roots(), Some(&state)).await;
    assert!(reply.result()["inputRequests"]["second"].is_object());
}

async fn an_old_key_opens_until_it_is_dropped(lane: Lane) {
    let (old, new) = (StateKey::new([1; 32]), StateKey::new([2; 32]));
    let client = lane.connect(server().state_keys(KeyRing::new(old.clone()))).await;
    let state = first_state(&client).await;
    let arguments = json!({ "a": 1, "b": [2] });
    client.server().rotate_state_keys(KeyRing::new(new.clone()).accepting(old));
    let reply = call(&client, "t", arguments.clone(), roots(), Some(&state)).await;
    assert!(reply.result()["inputRequests"]["second"].is_object());
    client.server().rotate_state_keys(KeyRing::new(new));
    assert_eq!(call(&client, "t", arguments, roots(), Some(&state)).await.code(), -32602);
}

async fn nothing_in_the_state_can_be_read(lane: Lane) {
    let tool = asking("secret", |context| async move {
        context.keep_note(&"the combination is 1234")?;
        Ok(context.ask("k", ListRoots)?.len().to_string())
    });
    let client = lane.connect(server().tool(tool)).await;
    let reply = client.call("secret", json!({})).await;
    let state = reply.result()["requestState"].as_str().unwrap();
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(state).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("1234"));
    let again = client.call("secret", json!({})).await;
    assert_ne!(again.result()["requestState"], state, "the same state looks different each time");
}

async fn a_state_that_grows_too_large_ends_the_call(lane: Lane) {
    let tool = asking("large", |context| async move {
        context.keep_note(&"x".repeat(2000))?;
        Ok(context.ask("k", ListRoots)?.len().to_string())
    });
    let mut limits = Limits::default();
    limits.state_bytes = 1000;
    let client = lane.connect(server().limits(limits).tool(tool)).await;
    let reply = client.call("large", json!({})).await;
    assert_eq!(reply.code(), -32603);
    assert!(reply.message().contains("1000"), "{}", reply.text);
    assert_eq!(client.call("t", json!({})).await.result()["resultType"], "input_required");
}

/// Checklist 24: `resultType: "input_required"` never appears on `tools/list`, `completion/complete` or
/// `server/discover`.
async fn only_three_methods_ask(lane: Lane) {
    let prompt = Prompt::new("p", |_, context: RequestContext| async move {
        Ok(PromptReply::user(context.ask("k", ListRoots)?.len().to_string()))
    });
    let prompt = prompt.optional("a", "one").complete("a", completer_of(["x"]));
    let resource = mcp_core::Resource::new(
        "test://r",
        "r",
        |request: mcp_core::ReadRequest, context: RequestContext| async move {
            Ok(request.text(context.ask("k", ListRoots)?.len().to_string()))
        },
    );
    let client = lane.connect(server().prompt(prompt).resource(resource)).await;
    let reference = json!({ "type": "ref/prompt", "name": "p" });
    for (method, params, expected) in [
        ("tools/call", json!({ "name": "t" }), "input_required"),
        ("prompts/get", json!({ "name": "p" }), "input_required"),
        ("resources/read", json!({ "uri": "test://r" }), "input_required"),
        ("tools/list", json!({}), "complete"),
        ("prompts/list", json!({}), "complete"),
        ("resources/list", json!({}), "complete"),
        ("resources/templates/list", json!({}), "complete"),
        ("server/discover", json!({}), "complete"),
        ("completion/complete", json!({ "ref": reference, "argument": { "name": "a", "value": "" } }), "complete"),
    ] {
        assert_eq!(client.request(method, params.clone()).await.result()["resultType"], expected, "{method}");
        let mut odd = params;
        odd["inputResponses"] = json!({ "k": { "roots": [] } });
        let reply = client.request(method, odd).await;
        let expected = if expected == "complete" || method != "tools/call" { "complete" } else { "input_required" };
        assert_eq!(reply.result()["resultType"], expected, "{method} with answers");
    }
}

async fn a_retry_is_checked_like_any_request(lane: Lane) {
    let client = lane.connect(server()).await;
    let state = first_state(&client).await;
    let params = |meta: Value| json!({ "name": "t", "arguments": { "a": 1, "b": [2] }, "inputResponses": roots(), "requestState": state, "_meta": meta });
    let version = json!({ "io.modelcontextprotocol/protocolVersion": "v999" });
    assert_eq!(client.request("tools/call", params(version)).await.code(), -32022);
    let unable = json!({ "io.modelcontextprotocol/clientCapabilities": {} });
    let reply = client.request("tools/call", params(unable)).await;
    assert_eq!(reply.code(), -32021, "the second question needs what this request does not declare");
}

async fn answers_have_to_be_an_object(lane: Lane) {
    let client = lane.connect(server()).await;
    for answers in [json!([]), json!(7), json!("x"), json!(true)] {
        assert_eq!(call(&client, "t", json!({}), answers, None).await.code(), -32602);
    }
    assert_eq!(call(&client, "t", json!({}), json!(null), None).await.result()["resultType"], "input_required");
}
