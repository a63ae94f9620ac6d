//! Events of handlers, and what the clients of their requests are told of them.

use mcp_wire::{DecodeLimits, Frame, RawJson};
use serde_json::json;
#[cfg(feature = "schemars")]
use tracing::dispatcher::{get_default, with_default};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Instrument, debug, error, info, info_span, trace, warn};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;

use super::*;
use crate::{Exchange, HandlerError, Outbound, Pipe, Principal, Scope, Server, Tool};

fn listening() -> DefaultGuard {
    set_default(tracing_subscriber::registry().with(LogForwarding::of(["app", "mcp_core"])))
}

fn server<W>(run: impl Fn(RequestContext) -> W + Send + Sync + 'static) -> Server
where
    W: Future<Output = ()> + Send + 'static,
{
    let schema = RawJson::from_serialize(&json!({ "type": "object" })).unwrap();
    let tool = Tool::raw("work", schema, move |_: RawJson, context| {
        let running = run(context);
        async move {
            running.await;
            Ok::<_, HandlerError>("done")
        }
    });
    Server::builder("s", "1").tool(tool).build().unwrap()
}

/// A call of a client that wants to hear of this level.
fn call(server: &Server, level: Option<&str>) -> Exchange {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(level) = level {
        meta["io.modelcontextprotocol/logLevel"] = level.into();
    }
    let params = json!({ "name": "work", "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let frame = serde_json::to_vec(&message).unwrap().into();
    let Frame::One(message) = Frame::decode(&frame, DecodeLimits::default()) else { panic!("one message") };
    let peer = server.peer(Principal::anonymous(), Scope::Single);
    peer.receive_from(server.classify(message, None), &Pipe::new())
}

/// The parameters of the log messages of a call that ends well.
async fn told(mut exchange: Exchange) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        match exchange.next().await.unwrap() {
            Outbound::Notification(frame) => {
                let mut message: Value = serde_json::from_slice(&frame).unwrap();
                assert_eq!(message["method"], "notifications/message");
                told.push(message["params"].take());
            }
            Outbound::Response(frame, _) => {
                let response: Value = serde_json::from_slice(&frame).unwrap();
                assert_eq!(response["result"]["content"][0]["text"], "done");
                return told;
            }
            other => panic!("{other:?}"),
        }
    }
}

fn messages(told: &[Value]) -> Vec<&str> {
    told.iter().map(|message| message["data"]["message"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_event_of_a_handler_is_a_log_message_of_its_request() {
    let _guard = listening();
    let server = server(|_| async {
        let cause = std::io::Error::other("full");
        warn!(target: "app::disk", bytes = 7_u64, late = true, name = "a", cause = &cause as &dyn Error, "no {}", "room");
        info!(target: "app", kind = ?Some(1));
    });
    let fields = json!({ "bytes": 7, "late": true, "name": "a", "cause": "full" });
    let expected = [
        json!({ "level": "warning", "logger": "app::disk", "data": { "message": "no room", "fields": fields } }),
        json!({ "level": "info", "logger": "app", "data": { "fields": { "kind": "Some(1)" } } }),
    ];
    assert_eq!(told(call(&server, Some("debug"))).await, expected);
}

#[tokio::test]
async fn a_client_hears_the_levels_it_asked_for() {
    let _guard = listening();
    let server = server(|_| async {
        trace!(target: "app", "1");
        debug!(target: "app", "2");
        info!(target: "app", "3");
        warn!(target: "app", "4");
        error!(target: "app", "5");
    });
    assert_eq!(messages(&told(call(&server, Some("debug"))).await), ["1", "2", "3", "4", "5"]);
    assert_eq!(messages(&told(call(&server, Some("warning"))).await), ["4", "5"]);
    assert!(told(call(&server, None)).await.is_empty());
}

#[tokio::test]
async fn targets_that_were_not_named_and_the_engines_own_are_not_told() {
    let _guard = listening();
    let server = server(|_| async {
        info!(target: "apple", "1");
        info!(target: "mcp_core", "2");
        info!(target: "mcp_core::engine", "3");
        info!(target: "mcp_core_of_mine", "4");
        info!(target: "app", "5");
    });
    assert_eq!(messages(&told(call(&server, Some("debug"))).await), ["5"]);
}

#[tokio::test]
async fn each_client_hears_of_its_own_request_alone() {
    let _guard = listening();
    let waiting = Arc::new(tokio::sync::Barrier::new(2));
    let server = server(move |context| {
        let waiting = Arc::clone(&waiting);
        async move {
            info!(target: "app", "before");
            waiting.wait().await;
            let mine = context.0.hears(LoggingLevel::Debug);
            // Spans of the handler's own are within the call's.
            async { info!(target: "app", "{mine}") }.instrument(info_span!("inner")).await;
        }
    });
    info!(target: "app", "outside");
    let (one, other) = tokio::join!(told(call(&server, Some("debug"))), told(call(&server, Some("info"))));
    assert_eq!(messages(&one), ["before", "true"]);
    assert_eq!(messages(&other), ["before", "false"]);
}

#[tokio::test]
async fn what_is_said_after_the_call_goes_nowhere_and_holds_nothing() {
    let _guard = listening();
    let kept = Arc::new(std::sync::Mutex::new(None));
    let keep = Arc::clone(&kept);
    let server = server(move |context| {
        *keep.lock().unwrap() = Some((Span::current(), Arc::downgrade(&context.0)));
        std::future::ready(())
    });
    assert!(told(call(&server, Some("debug"))).await.is_empty());
    let (span, state) = kept.lock().unwrap().take().unwrap();
    assert!(!span.is_disabled());
    span.in_scope(|| info!(target: "app", "late"));
    assert!(state.upgrade().is_none());
}

#[cfg(feature = "schemars")]
#[tokio::test]
async fn a_blocking_tool_is_heard_too() {
    let _guard = listening();
    let subscriber = get_default(Clone::clone);
    let tool = Tool::blocking("work", move |_: crate::NoArguments, _| {
        with_default(&subscriber, || info!(target: "app", "from a thread"));
        "done"
    });
    let server = Server::builder("s", "1").tool(tool).build().unwrap();
    assert_eq!(messages(&told(call(&server, Some("debug"))).await), ["from a thread"]);
}

#[tokio::test]
async fn nothing_is_told_where_the_span_is_filtered_or_the_layer_is_missing() {
    let server = server(|_| async { info!(target: "app", "1") });
    let layer = LogForwarding::of(["app"]);
    let filtered = layer.clone().with_filter(filter_fn(|metadata| metadata.target() != "mcp_core"));
    {
        let _guard = set_default(tracing_subscriber::registry().with(filtered));
        assert!(told(call(&server, Some("debug"))).await.is_empty());
    }
    {
        let _guard = set_default(tracing_subscriber::registry());
        assert!(told(call(&server, Some("debug"))).await.is_empty());
    }
    let passing = layer.with_filter(filter_fn(|_| true));
    let _guard = set_default(tracing_subscriber::registry().with(passing));
    assert_eq!(messages(&told(call(&server, Some("debug"))).await), ["1"]);
}
