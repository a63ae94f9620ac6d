//! What the targets share: a server in memory whose handlers never fail by themselves, and a clock that stands still.
//!
//! Why here: a target is one file that says what must hold; how a message gets to the engine is the same for all.
//! Invariants: nothing here waits for real time; a panic ends the process even where the engine would catch it, since
//! libFuzzer's hook runs first.

pub mod claims;

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use mcp_core::wire::capability::ClientCapability;
use mcp_core::wire::types::{CreateMessageParams, LoggingLevel, SamplingMessage};
use mcp_core::wire::{Frame, Message, RawJson, Response};
use mcp_core::{
    Exchange, Form, FormSchema, HandlerError, Limits, NoArguments, Outbound, Peer, Prompt, PromptReply, RequestContext,
    Resource, ResourceTemplate, Sample, Server, Tool, completer_of,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

/// More time than a cancelled handler has to notice.
pub const GRACE: Duration = Duration::from_secs(5);

/// Entries of every list. A page has two.
pub const ENTRIES: usize = 5;

thread_local! {
    static SHARED: (Runtime, Server) = (runtime(), server());
}

/// Runs `with` inside a runtime whose clock stands still, with the one server of this process; afterwards so much time has
/// passed that no handler of this input is left.
pub fn within<T>(with: impl FnOnce(&Server) -> T) -> T {
    SHARED.with(|(runtime, server)| {
        let output = {
            let _entered = runtime.enter();
            with(server)
        };
        pass_time(runtime, GRACE);
        output
    })
}

/// Lets time pass, and everything that waits for it happen. Inside of [`within`] only.
pub fn wait(time: Duration) {
    SHARED.with(|(runtime, _)| pass_time(runtime, time));
}

fn pass_time(runtime: &Runtime, time: Duration) {
    runtime.block_on(async { tokio::time::sleep(time).await });
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime needs nothing that could be missing")
}

fn server() -> Server {
    let mut limits = Limits::default();
    limits.page = 2;
    // The clock of a target that runs for long gets far ahead.
    limits.state_lifetime = Duration::from_secs(1000 * 365 * 24 * 60 * 60);
    let mut builder = Server::builder("fuzzed", "1").limits(limits);
    for tool in tools() {
        builder = builder.tool(tool);
    }
    for entry in 0..ENTRIES {
        let name = format!("entry-{entry}");
        let family = format!("test://family-{entry}/{{id}}/{{+path}}{{?query}}");
        builder = builder
            .resource(Resource::text(format!("test://{name}"), &*name, "text"))
            .resource_template(
                ResourceTemplate::new(family, &*name, |request, _| std::future::ready(Ok(request.text("member"))))
                    .complete("id", completer_of(["one", "two"])),
            )
            .prompt(
                Prompt::new(name, |arguments, _| std::future::ready(Ok(PromptReply::user(arguments.text("a")))))
                    .optional("a", "Said again"),
            );
    }
    builder.build().expect("the server of the targets is in order")
}

/// As many as there are entries of the other lists.
fn tools() -> [Tool; ENTRIES] {
    let mirrored = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "x-mcp-header": "Text" },
            "number": { "type": "integer", "x-mcp-header": "Number" },
        },
    });
    [
        Tool::raw("echo", mirrored, |arguments: RawJson, _| {
            std::future::ready(Ok::<_, HandlerError>(arguments.to_string()))
        }),
        Tool::typed("wait", async |_: NoArguments, context: RequestContext| {
            context.cancelled().await;
            Ok::<_, HandlerError>("cancelled")
        }),
        Tool::typed("tell", async |_: NoArguments, context: RequestContext| {
            context.progress(0.5, None, Some("half done"));
            context.log(LoggingLevel::Error, "told");
            Ok::<_, HandlerError>("told")
        }),
        Tool::raw("ask", json!({ "type": "object" }), async |_: RawJson, context: RequestContext| {
            let schema = FormSchema::builder().string("name", |field| field.required()).build()?;
            let form = Form::<Map<String, Value>>::with_schema("Who are you?", schema);
            let name = context.ask("user", form)?.accepted().unwrap_or_default();
            Ok::<_, HandlerError>(Value::Object(name).to_string())
        }),
        Tool::typed("sample", async |_: NoArguments, context: RequestContext| {
            let params = CreateMessageParams::new(vec![SamplingMessage::user_text("Who am I?")], 10);
            Ok::<_, HandlerError>(context.ask("model", Sample(params))?.text().unwrap_or_default().to_owned())
        })
        .needs(ClientCapability::Sampling),
    ]
}

/// Hands a message to the peer; `declared` is the version header of a carrier that has one.
///
/// # Panics
/// When the message is none, which is the caller's mistake.
#[must_use]
pub fn send(server: &Server, peer: &Peer, message: &Value) -> Exchange {
    let frame = Bytes::from(message.to_string());
    match Frame::decode(&frame, server.limits().decode()) {
        Frame::One(message) => peer.receive(server.classify(message, None)),
        other => panic!("no message: {other:?}"),
    }
}

/// What is at hand of an exchange; `true` when it is over.
pub fn read(exchange: &mut Exchange) -> (Vec<Outbound>, bool) {
    let mut items = Vec::new();
    loop {
        match poll(exchange.next()) {
            Poll::Ready(Some(item)) => items.push(item),
            Poll::Ready(None) => return (items, true),
            Poll::Pending => return (items, false),
        }
    }
}

/// Polls once, for nobody who could be woken.
pub fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A frame of the server as a message.
///
/// # Panics
/// When it is none, or has line breaks.
#[must_use]
pub fn decoded(server: &Server, frame: &Bytes) -> Message {
    assert!(!frame.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "a frame with a line break: {frame:?}");
    match Frame::decode(frame, server.limits().decode()) {
        Frame::One(message) => message,
        other => panic!("the server said {frame:?}, which is {other:?}"),
    }
}

/// The response in a frame.
///
/// # Panics
/// When it is none, or an error that says that the server is at fault.
#[must_use]
pub fn response(server: &Server, frame: &Bytes) -> Response {
    let Message::Response(response) = decoded(server, frame) else { panic!("no response: {frame:?}") };
    if let Err(error) = &response.outcome {
        assert_ne!(error.code.0, -32603, "the server is at fault: {error:?}");
    }
    response
}

/// The one response that ends an exchange at once.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn answer(server: &Server, mut exchange: Exchange) -> Response {
    let (mut items, over) = read(&mut exchange);
    assert!(over, "the answer does not come: {items:?}");
    match items.pop() {
        Some(Outbound::Response(frame, _)) => response(server, &frame),
        other => panic!("no response but {other:?}"),
    }
}

/// The parameters with what modern requests have in them.
#[must_use]
pub fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {}, "sampling": {}, "roots": {} },
    });
    params
}

/// The handshake of a peer that speaks the newest legacy revision.
///
/// # Panics
/// When the handshake fails.
pub fn shake_hands(server: &Server, peer: &Peer) {
    let hello = json!({
        "jsonrpc": "2.0", "id": "hello", "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {}, "sampling": {}, "roots": {} },
            "clientInfo": { "name": "fuzzer", "version": "1" },
        },
    });
    assert!(answer(server, send(server, peer, &hello)).outcome.is_ok());
    let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert!(send(server, peer, &done).is_over());
}
