//! Layers around the calls of tools, seen from a client.

use std::sync::Mutex;
use std::time::Duration;

use mcp_wire::{DecodeLimits, ErrorCode, Frame, RpcError};
use serde_json::{Value, json};

use super::*;
use crate::{Exchange, Form, FormSchema, Outbound, Pipe, Principal, Scope, Server, ServerBuilder, Tool};

/// What happened, in order.
type Diary = Arc<Mutex<Vec<String>>>;

fn lines(diary: &Diary) -> Vec<String> {
    diary.lock().unwrap().clone()
}

/// Writes down what passes.
struct Watch(&'static str, Diary);

#[async_trait]
impl CallLayer for Watch {
    async fn call(&self, call: LayeredCall, next: Next<'_>) -> Result<ToolReply, HandlerError> {
        let Self(name, diary) = self;
        diary.lock().unwrap().push(format!("{name}: {} {}", call.tool(), call.arguments.as_str()));
        let outcome = next.run(call).await;
        let ended = match &outcome {
            Ok(_) => "a reply",
            Err(error) if error.is_unanswered() => "a question",
            Err(_) => "an error",
        };
        diary.lock().unwrap().push(format!("{name}: {ended}"));
        outcome
    }
}

/// What a layer does in place of the call, or after it.
enum Act {
    Tell,
    Refuse,
    Panic,
    Hang,
    Rewrite,
    Swallow,
    Replace,
}

#[async_trait]
impl CallLayer for Act {
    async fn call(&self, mut call: LayeredCall, next: Next<'_>) -> Result<ToolReply, HandlerError> {
        match self {
            Self::Tell => Err(HandlerError::tell("not today")),
            Self::Refuse => Err(HandlerError::rpc(RpcError::new(ErrorCode::INVALID_REQUEST, "not you"))),
            Self::Panic => panic!("a layer's"),
            Self::Hang => std::future::pending().await,
            Self::Rewrite => {
                // No schema would let this pass.
                call.arguments =
                    RawJson::from_serialize(&json!({ "tenant": call.context().principal().is_anonymous() }))?;
                next.run(call).await
            }
            Self::Swallow => Ok(next.run(call).await.unwrap_or_else(|_| ToolReply::text("all is well"))),
            Self::Replace => next.run(call).await.map_err(|_| HandlerError::tell("it failed")),
        }
    }
}

fn closed() -> RawJson {
    RawJson::from_serialize(&json!({ "type": "object", "additionalProperties": { "type": "integer" } })).unwrap()
}

/// Answers its arguments.
fn echo(diary: &Diary) -> Tool {
    let diary = Arc::clone(diary);
    Tool::raw("echo", closed(), move |arguments: RawJson, _context| {
        diary.lock().unwrap().push("handler".to_owned());
        async move { Ok::<_, HandlerError>(arguments.as_str().to_owned()) }
    })
}

/// Asks before it answers.
fn ask() -> Tool {
    Tool::raw("ask", closed(), |_: RawJson, context: RequestContext| async move {
        let fields = FormSchema::builder().string("name", |field| field).build()?;
        let answer = context.ask("who", Form::<Value>::with_schema("Who?", fields))?;
        Ok(if answer.accepted().is_some() { "asked" } else { "declined" })
    })
}

fn builder() -> ServerBuilder {
    Server::builder("s", "1").without_server_info()
}

async fn called(server: &Server, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let peer = server.peer(Principal::anonymous(), Scope::Single);
    let frame = serde_json::to_vec(&message).unwrap().into();
    let Frame::One(message) = Frame::decode(&frame, DecodeLimits::default()) else { panic!("one message") };
    response(peer.receive_from(server.classify(message, None), &Pipe::new())).await
}

async fn response(mut exchange: Exchange) -> Value {
    loop {
        if let Outbound::Response(frame, _) = exchange.next().await.unwrap() {
            return serde_json::from_slice(&frame).unwrap();
        }
    }
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn the_servers_layers_are_around_the_tools_and_the_first_is_the_outermost() {
    let diary = Diary::default();
    let watch = |name| Watch(name, Arc::clone(&diary));
    let server = builder()
        .tool(echo(&diary).layer(watch("c")).layer(watch("d")))
        .layer(watch("a"))
        .layer(watch("b"))
        .build()
        .unwrap();
    let response = called(&server, json!({ "name": "echo", "arguments": { "x": 1 } })).await;
    assert_eq!(text(&response), r#"{"x":1}"#);
    let down = ["a", "b", "c", "d"].map(|name| format!("{name}: echo {{\"x\":1}}"));
    let up = ["d", "c", "b", "a"].map(|name| format!("{name}: a reply"));
    assert_eq!(lines(&diary), [&down[..], &["handler".to_owned()], &up].concat());
}

#[tokio::test]
async fn a_tool_that_comes_later_has_the_servers_layers_too() {
    let diary = Diary::default();
    let server = builder().offer(crate::Offer::Tools).layer(Watch("a", Arc::clone(&diary))).build().unwrap();
    server.add_tool(echo(&Diary::default())).unwrap();
    called(&server, json!({ "name": "echo" })).await;
    assert_eq!(lines(&diary), ["a: echo {}", "a: a reply"]);
}

#[tokio::test]
async fn a_layer_may_deny_a_call_to_the_model_or_to_the_client() {
    let diary = Diary::default();
    let server = builder().tool(echo(&diary)).layer(Act::Tell).build().unwrap();
    let response = called(&server, json!({ "name": "echo" })).await;
    assert_eq!((text(&response), &response["result"]["isError"]), ("not today", &json!(true)));
    let server = builder().tool(echo(&diary).layer(Act::Refuse)).build().unwrap();
    let response = called(&server, json!({ "name": "echo" })).await;
    assert_eq!(response["error"], json!({ "code": -32600, "message": "not you" }));
    assert!(lines(&diary).is_empty());
}

#[tokio::test]
async fn a_layer_sees_no_call_whose_arguments_do_not_match() {
    let diary = Diary::default();
    let server = builder().tool(echo(&diary)).layer(Watch("a", Arc::clone(&diary))).build().unwrap();
    let response = called(&server, json!({ "name": "echo", "arguments": { "x": "one" } })).await;
    assert_eq!(response["result"]["isError"], true);
    assert!(lines(&diary).is_empty());
}

#[tokio::test]
async fn a_layer_may_give_the_handler_other_arguments() {
    let diary = Diary::default();
    let server = builder().tool(echo(&diary).layer(Act::Rewrite)).build().unwrap();
    let response = called(&server, json!({ "name": "echo", "arguments": { "x": 1 } })).await;
    assert_eq!(text(&response), r#"{"tenant":true}"#);
}

#[tokio::test]
async fn an_attempt_without_its_answer_passes_through_the_layers_and_so_does_the_next() {
    let diary = Diary::default();
    // The state that goes with the client is bound to what the client sent, not to what a layer made of it.
    let server = builder().tool(ask()).layer(Watch("a", Arc::clone(&diary))).layer(Act::Rewrite).build().unwrap();
    let asked = called(&server, json!({ "name": "ask" })).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_eq!(lines(&diary), ["a: ask {}", "a: a question"]);
    let again = json!({
        "name": "ask",
        "requestState": asked["result"]["requestState"],
        "inputResponses": { "who": { "action": "accept", "content": { "name": "me" } } },
    });
    assert_eq!(text(&called(&server, again).await), "asked");
    assert_eq!(lines(&diary)[2..], ["a: ask {}", "a: a reply"]);
}

#[tokio::test]
async fn a_question_that_a_layer_swallows_or_replaces_fails_the_call() {
    for layer in [Act::Swallow, Act::Replace] {
        let server = builder().tool(ask()).layer(layer).build().unwrap();
        let response = called(&server, json!({ "name": "ask" })).await;
        assert_eq!(response["error"]["code"], -32603);
    }
}

#[tokio::test]
async fn a_panic_of_a_layer_is_the_error_of_its_call_alone() {
    let server = builder().tool(ask().layer(Act::Panic)).tool(echo(&Diary::default())).build().unwrap();
    let response = called(&server, json!({ "name": "ask" })).await;
    assert_eq!(response["error"]["code"], -32603);
    assert_eq!(text(&called(&server, json!({ "name": "echo" })).await), "{}");
}

#[tokio::test(start_paused = true)]
async fn a_tools_timeout_and_slot_hold_for_its_layers() {
    let diary = Diary::default();
    let tool = echo(&diary).layer(Act::Hang).max_in_flight(1).timeout(Duration::from_secs(3));
    let server = builder().tool(tool).build().unwrap();
    for _ in 0..2 {
        let response = called(&server, json!({ "name": "echo" })).await;
        assert_eq!(response["error"]["message"], "tool \"echo\" did not finish within 3 s");
    }
}
