//! The end of a server: what is under way gets its grace, then everything ends.
//!
//! Spec: 2025-11-25 basic/lifecycle, "Shutdown"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_core::{HandlerError, NoArguments, RequestContext, Server, Tool};
use mcp_tests::{Item, Lane, idle, lanes};
use serde_json::json;
use tokio::time::Instant;

lanes! {
    everywhere {
        calls_that_end_within_the_grace_are_answered,
        calls_that_do_not_are_told_and_end,
    }
}

fn takes(name: &str, time: Duration, told: &Arc<AtomicUsize>) -> Tool {
    let told = Arc::clone(told);
    Tool::typed(name, move |_: NoArguments, context: RequestContext| {
        let told = Arc::clone(&told);
        async move {
            let working = tokio::time::sleep(time);
            tokio::select! {
                () = working => Ok("done"),
                () = context.cancelled() => {
                    told.fetch_add(1, Ordering::Relaxed);
                    Err(HandlerError::cancelled())
                }
            }
        }
    })
    .timeout(None)
}

async fn calls_that_end_within_the_grace_are_answered(lane: Lane) {
    let told = Arc::default();
    let client = lane.connect(Server::builder("s", "1").tool(takes("short", Duration::from_secs(3), &told))).await;
    let call = client.start_tool("short", json!({}));
    idle().await;
    let server = client.server().clone();
    let (reply, ()) = tokio::join!(call.reply(), server.shutdown(Duration::from_secs(10)));
    assert_eq!(reply.tool_text(), "done");
    assert_eq!(told.load(Ordering::Relaxed), 0);
}

async fn calls_that_do_not_are_told_and_end(lane: Lane) {
    let told = Arc::default();
    let client = lane.connect(Server::builder("s", "1").tool(takes("long", Duration::from_secs(3600), &told))).await;
    let mut call = client.start_tool("long", json!({}));
    idle().await;
    let started = Instant::now();
    let server = client.server().clone();
    let (last, ()) = tokio::join!(call.next(), server.shutdown(Duration::from_secs(10)));
    assert!(started.elapsed() < Duration::from_secs(13), "it took {:?}", started.elapsed());
    assert_eq!(told.load(Ordering::Relaxed), 1);
    // An error or an end without one: whoever waits is let go.
    assert!(!matches!(&last, Some(Item::Response(reply)) if reply.response.get("result").is_some()), "{last:?}");
}
