//! A tool that waits for its cancellation, and a resource that counts how often one came.
//!
//! Why here: whether a cancellation reaches a handler can be seen from outside only if the handler leaves a trace.
//! Invariants: the count belongs to one server; two in a process share nothing.
//! Spec: 2026-07-28 basic/patterns/cancellation

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_core::{HandlerError, NoArguments, ReadRequest, RequestContext, Resource, Tool};

/// Where the count is read, and who reads it may subscribe to it.
const COUNT: &str = "test://cancelled-calls";
/// How long the tool waits at most, for whoever calls it without an intention to cancel.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tool, and the resource with its count.
pub(crate) fn tool_and_count() -> (Tool, Resource) {
    let cancelled = Arc::new(AtomicU64::new(0));
    let tool = Tool::typed_with("test_wait_for_cancellation", Arc::clone(&cancelled), wait)
        .description("Says that it waits, by a progress message, and waits until its call is cancelled.");
    let count = Resource::new(COUNT, "cancelled-calls", move |request: ReadRequest, _context| {
        let text = cancelled.load(Ordering::Relaxed).to_string();
        async move { Ok(request.text(text)) }
    });
    (tool, count.mime_type("text/plain").description("How many calls were cancelled while they waited."))
}

async fn wait(
    cancelled: Arc<AtomicU64>,
    _: NoArguments,
    context: RequestContext,
) -> Result<&'static str, HandlerError> {
    context.progress(0.0, None, Some("waiting"));
    tokio::select! {
        () = context.cancelled() => {}
        () = tokio::time::sleep(PATIENCE) => return Ok("Nobody cancelled the call."),
    }
    cancelled.fetch_add(1, Ordering::Relaxed);
    context.server().resource_updated(COUNT);
    Ok("This answer reaches nobody.")
}
