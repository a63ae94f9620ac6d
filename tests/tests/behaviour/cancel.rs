//! Cancelling: a request that is taken back is not answered, and its handler is told.
//!
//! Spec: 2026-07-28 basic/patterns/cancellation; 2025-11-25 basic/utilities/cancellation

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_core::{HandlerError, Limits, NoArguments, RequestContext, Server, ServerBuilder, Tool};
use mcp_tests::{Lane, Profile, idle, lanes};
use mcp_wire::types::LoggingLevel;
use serde_json::{Value, json};

lanes! {
    everywhere {
        a_cancelled_call_says_nothing_more_and_its_handler_is_told,
        a_handler_that_does_not_listen_is_dropped_after_the_grace,
        a_cancelled_call_leaves_its_place_to_the_next,
        a_cancelled_call_that_waits_its_turn_never_runs,
        what_blocks_runs_on_and_is_not_heard,
        a_panic_on_the_way_out_stays_there,
    }
    connection "over modern HTTP a request is taken back by closing its stream" {
        every_id_can_be_cancelled,
        ids_that_are_not_under_way_are_ignored,
        an_id_is_free_again_when_its_handler_is_gone,
    }
    http_legacy "over modern HTTP a request is taken back by closing its stream" {
        every_id_can_be_cancelled,
        ids_that_are_not_under_way_are_ignored,
        an_id_is_free_again_when_its_handler_is_gone,
    }
    connection_legacy "over HTTP nothing can be taken back before there is a session" {
        a_handshake_cannot_be_taken_back,
    }
    http_modern "elsewhere the notification does what closing the stream does here" {
        a_notification_takes_nothing_back_where_streams_are_closed,
    }
    legacy "a modern request stands alone" {
        nobody_cancels_the_request_of_another,
    }
    memory_modern "a legacy call outlives its connection; who leaves a pipe leaves all calls" {
        going_away_cancels,
    }
    http_modern "a legacy call outlives its connection; who leaves a pipe leaves all calls" {
        going_away_cancels,
    }
    stdio "elsewhere each call can be left alone" {
        leaving_the_pipe_cancels_every_call,
    }
    http_legacy "a modern call does not outlive its connection" {
        going_away_does_not_cancel,
    }
}

/// Counts what happens to the handlers of a test.
#[derive(Clone, Default)]
struct Seen(Arc<Counts>);

#[derive(Default)]
struct Counts {
    started: AtomicUsize,
    told: AtomicUsize,
    dropped: AtomicUsize,
}

struct Alive(Seen);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Seen {
    fn counts(&self) -> (usize, usize, usize) {
        let get = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (get(&self.0.started), get(&self.0.told), get(&self.0.dropped))
    }

    /// A tool that ends when it is cancelled, not without trying to have the last word.
    fn waits(&self) -> Tool {
        let seen = self.clone();
        Tool::typed("waits", move |_: NoArguments, context: RequestContext| {
            let seen = seen.clone();
            async move {
                seen.0.started.fetch_add(1, Ordering::Relaxed);
                let _alive = Alive(seen.clone());
                context.progress(1.0, None, None);
                context.cancelled().await;
                seen.0.told.fetch_add(1, Ordering::Relaxed);
                context.progress(2.0, None, None);
                context.log(LoggingLevel::Emergency, "too late");
                Ok::<_, HandlerError>("too late")
            }
        })
        .timeout(None)
    }

    /// A tool that never ends by itself.
    fn deaf(&self) -> Tool {
        let seen = self.clone();
        Tool::typed("deaf", move |_: NoArguments, _context: RequestContext| {
            let seen = seen.clone();
            async move {
                seen.0.started.fetch_add(1, Ordering::Relaxed);
                let _alive = Alive(seen);
                std::future::pending::<()>().await;
                Ok::<_, HandlerError>("never")
            }
        })
        .timeout(None)
    }

    fn server(&self) -> ServerBuilder {
        Server::builder("s", "1").tool(self.waits()).tool(self.deaf())
    }
}

/// Checklist 18: closing a response stream stops the handler and nothing further is written. Checklist 37:
/// `notifications/cancelled` suppresses the response. Whichever way the lane has.
async fn a_cancelled_call_says_nothing_more_and_its_handler_is_told(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(seen.server()).await;
    client.set_log_level("debug").await;
    let mut call = client.start("tools/call", json!({ "name": "waits", "_meta": { "progressToken": "p" } }));
    assert_eq!(call.notification().await["params"]["progress"], 1.0);
    client.cancel(call).await;
    idle().await;
    assert_eq!(seen.counts(), (1, 1, 1));
}

async fn a_handler_that_does_not_listen_is_dropped_after_the_grace(lane: Lane) {
    let seen = Seen::default();
    let mut limits = Limits::default();
    limits.cancel_grace = Duration::from_secs(7);
    let client = lane.connect(seen.server().limits(limits)).await;
    let call = client.start_tool("deaf", json!({}));
    idle().await;
    client.cancel(call).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(seen.counts(), (1, 0, 0), "it still has its grace");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(seen.counts(), (1, 0, 1));
}

async fn a_cancelled_call_leaves_its_place_to_the_next(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(Server::builder("s", "1").tool(seen.waits().max_in_flight(1))).await;
    let first = client.start_tool("waits", json!({}));
    let second = client.start_tool("waits", json!({}));
    idle().await;
    assert_eq!(seen.counts().0, 1);
    client.cancel(first).await;
    idle().await;
    assert_eq!(seen.counts().0, 2);
    client.cancel(second).await;
}

async fn a_cancelled_call_that_waits_its_turn_never_runs(lane: Lane) {
    let seen = Seen::default();
    let mut limits = Limits::default();
    limits.cancel_grace = Duration::from_millis(10);
    let client = lane.connect(Server::builder("s", "1").limits(limits).tool(seen.waits().max_in_flight(1))).await;
    let first = client.start_tool("waits", json!({}));
    let second = client.start_tool("waits", json!({}));
    idle().await;
    client.cancel(second).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.cancel(first).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(seen.counts(), (1, 1, 1));
}

async fn what_blocks_runs_on_and_is_not_heard(lane: Lane) {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let (ended, end) = std::sync::mpsc::channel::<bool>();
    let wait = std::sync::Mutex::new((wait, ended));
    let tool = Tool::blocking("blocks", move |_: NoArguments, context: RequestContext| {
        let wait = wait.lock().unwrap();
        wait.0.recv().unwrap();
        wait.1.send(context.is_cancelled()).unwrap();
        "never heard"
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let call = client.start_tool("blocks", json!({}));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    match lane.is_http() && lane.is_modern() {
        true => drop(call),
        false => {
            client.withdraw(&call.id().clone()).await;
            call.silence().await;
        }
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert!(end.recv().unwrap(), "it could have noticed");
}

async fn a_panic_on_the_way_out_stays_there(lane: Lane) {
    let tool = Tool::typed("panics", |_: NoArguments, context: RequestContext| async move {
        context.cancelled().await;
        assert!(!context.is_cancelled(), "on the way out");
        Ok::<_, HandlerError>("never")
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let call = client.start_tool("panics", json!({}));
    idle().await;
    client.cancel(call).await;
    idle().await;
    assert!(client.request("tools/list", json!({})).await.response.get("result").is_some());
}

/// Field case 11: 0 and the empty string are ids like any other.
async fn every_id_can_be_cancelled(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(seen.server()).await;
    let ids =
        [json!(0), json!(""), json!(-1), json!("0"), json!("null"), json!(9_007_199_254_740_993_i64), json!("a b")];
    for (index, id) in ids.iter().enumerate() {
        let call = client.start_as(id.clone(), "tools/call", json!({ "name": "waits" }));
        idle().await;
        // The same text of another type is another id.
        let other: Value =
            id.as_str().map_or_else(|| json!(id.to_string()), |text| json!(text.parse::<i64>().unwrap_or(77)));
        client.withdraw(&other).await;
        idle().await;
        assert_eq!(seen.counts(), (index + 1, index, index), "{other} is not {id}");
        client.cancel(call).await;
        idle().await;
        assert_eq!(seen.counts(), (index + 1, index + 1, index + 1), "{id}");
    }
}

/// Checklist 37: `notifications/cancelled` for `initialize` or an unknown id is ignored. Field case 11: so is one for an
/// id that has finished.
async fn ids_that_are_not_under_way_are_ignored(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(seen.server()).await;
    let finished = client.start("tools/list", json!({}));
    let id = finished.id().clone();
    finished.reply().await;
    for id in [id, json!(1), json!(12345), json!("never"), json!(null), json!({}), json!([])] {
        client.withdraw(&id).await;
    }
    let again = client.start_as(json!(12345), "tools/list", json!({}));
    assert!(again.reply().await.response.get("result").is_some(), "a cancellation does not wait for its request");
}

/// Field case 11: the handshake may not be cancelled.
async fn a_handshake_cannot_be_taken_back(lane: Lane) {
    let server = Seen::default().server().build().unwrap();
    for id in [json!(0), json!(""), json!(1), json!("init")] {
        let client = lane.host(&server).strange(Profile::default());
        let info = json!({ "name": "c", "version": "1" });
        let hello = json!({ "protocolVersion": lane.revision().as_str(), "capabilities": {}, "clientInfo": info });
        let call = client.start_as(id.clone(), "initialize", hello);
        client.withdraw(&id).await;
        assert_eq!(call.reply().await.result()["protocolVersion"], lane.revision().as_str(), "{id}");
        client.withdraw(&id).await;
        assert_eq!(*client.request("ping", json!({})).await.result(), json!({}), "{id}");
    }
}

async fn a_notification_takes_nothing_back_where_streams_are_closed(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(seen.server()).await;
    for (index, id) in [json!(0), json!(""), json!(7)].into_iter().enumerate() {
        let mut call = client.start_as(id.clone(), "tools/call", json!({ "name": "waits" }));
        idle().await;
        client.withdraw(&id).await;
        call.is_quiet().await;
        assert_eq!(seen.counts(), (index + 1, index, index), "{id}");
        client.cancel(call).await;
        assert_eq!(seen.counts(), (index + 1, index + 1, index + 1), "{id}");
    }
}

async fn an_id_is_free_again_when_its_handler_is_gone(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(seen.server()).await;
    for round in 1..4 {
        let call = client.start_as(json!("same"), "tools/call", json!({ "name": "waits" }));
        idle().await;
        client.cancel(call).await;
        idle().await;
        assert_eq!(seen.counts(), (round, round, round));
    }
}

async fn nobody_cancels_the_request_of_another(lane: Lane) {
    let seen = Seen::default();
    let server = seen.server().build().unwrap();
    let host = lane.host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(Profile::named("bob")).await);
    let same_owner = host.connect().await;
    let mut call = ann.start_as(json!(7), "tools/call", json!({ "name": "waits" }));
    idle().await;
    bob.withdraw(&json!(7)).await;
    same_owner.withdraw(&json!(7)).await;
    call.is_quiet().await;
    assert_eq!(seen.counts(), (1, 0, 0));
    ann.cancel(call).await;
}

/// Checklist 18: closing a response stream stops the handler and nothing further is written.
async fn going_away_cancels(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(seen.server()).await;
    let before = client.start_tool("waits", json!({}));
    idle().await;
    drop(before);
    idle().await;
    assert_eq!(seen.counts(), (1, 1, 1), "before anything was said");
    let mut streaming = client.start("tools/call", json!({ "name": "waits", "_meta": { "progressToken": 1 } }));
    streaming.notification().await;
    drop(streaming);
    idle().await;
    assert_eq!(seen.counts(), (2, 2, 2), "within the stream");
}

async fn leaving_the_pipe_cancels_every_call(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(seen.server()).await;
    let calls = [client.start_tool("waits", json!({})), client.start_tool("waits", json!({}))];
    idle().await;
    assert_eq!(seen.counts(), (2, 0, 0));
    drop((calls, client));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(seen.counts(), (2, 2, 2));
}

/// Checklist 35: dropping a legacy POST stream does not cancel the call. (That its result can be fetched by resumption is
/// tested with the streams.)
async fn going_away_does_not_cancel(lane: Lane) {
    let seen = Seen::default();
    let client = lane.connect(seen.server()).await;
    let mut call = client.start("tools/call", json!({ "name": "waits", "_meta": { "progressToken": 1 } }));
    let id = call.id().clone();
    call.notification().await;
    drop(call);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(seen.counts(), (1, 0, 0));
    client.withdraw(&id).await;
    idle().await;
    assert_eq!(seen.counts(), (1, 1, 1));
}
