//! Running what others wrote: panics caught at each poll, deadlines, cancelled calls polled to their end, blocking code.
//!
//! Why here: the engine's only spawns, each with an owner and an end.
//! Invariants: a panic is one call's error; a cancelled call lives at most `cancel_grace` longer.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// A boxed future that owns everything it needs.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The text of a panic, for the log.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Polls a future once; a panic is returned as its payload. The future must not be polled again after one.
pub(crate) fn poll_caught<F: Future + ?Sized>(
    future: Pin<&mut F>,
    context: &mut Context<'_>,
) -> Poll<Result<F::Output, Box<dyn Any + Send>>> {
    // What the future touched is dropped with it, so nothing half-changed is seen by anyone.
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(payload) => Poll::Ready(Err(payload)),
    }
}

/// Drops what a handler left behind; a panic in a destructor ends there.
pub(crate) fn drop_caught<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        tracing::error!(panic = panic_text(&*payload), "dropping a handler's future panicked");
    }
}

/// Polls a cancelled call until it ends, for at most `grace`, so that its handler sees the cancellation; then drops it.
///
/// `held` lives as long: permits and places in tables are given back only when the handler is really gone.
pub(crate) fn reap<T: Send + 'static>(future: BoxFuture<T>, grace: Duration, held: impl Send + 'static) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        // Without a runtime nothing can be polled any more.
        drop_caught(future);
        return;
    };
    #[expect(clippy::disallowed_methods, reason = "ends by itself after the grace period")]
    runtime.spawn(async move {
        let mut future = Some(future);
        let ended = std::future::poll_fn(|context| match &mut future {
            Some(running) => poll_caught(running.as_mut(), context).map(drop),
            None => Poll::Ready(()),
        });
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::warn!("a cancelled handler did not stop within its grace period and was dropped");
        }
        drop_caught(future);
        drop(held);
    });
}

/// A future with a deadline whose timer is only started when the future is not ready at once.
pub(crate) struct Deadline<F, E = fn() -> bool> {
    future: F,
    limit: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    excused: Option<E>,
}

/// The future was not ready in time.
#[derive(Debug)]
pub(crate) struct Elapsed;

impl<F: Future + Unpin> Deadline<F> {
    pub(crate) fn new(future: F, limit: Option<Duration>) -> Self {
        Self { future, limit, timer: None, excused: None }
    }

    /// The deadline does not count if this holds when it comes.
    pub(crate) fn unless<E: Fn() -> bool>(self, excused: E) -> Deadline<F, E> {
        Deadline { future: self.future, limit: self.limit, timer: self.timer, excused: Some(excused) }
    }
}

impl<F: Future + Unpin, E: Fn() -> bool + Unpin> Future for Deadline<F, E> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = Pin::new(&mut self.future).poll(context) {
            return Poll::Ready(Ok(output));
        }
        let Some(limit) = self.limit else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        std::task::ready!(timer.as_mut().poll(context));
        if self.excused.as_ref().is_some_and(|excused| excused()) {
            self.limit = None;
            self.timer = None;
            return Poll::Pending;
        }
        Poll::Ready(Err(Elapsed))
    }
}

/// Runs blocking code on tokio's blocking pool, in the span of whoever waits for it. It cannot be aborted: a cancelled call leaves it running.
///
/// # Errors
/// When the code panicked.
#[cfg(feature = "schemars")]
pub(crate) async fn block<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Box<dyn Any + Send>> {
    let span = tracing::Span::current();
    #[expect(clippy::disallowed_methods, reason = "the one way to the blocking pool; callers hold a permit meanwhile")]
    let handle = tokio::task::spawn_blocking(move || span.in_scope(work));
    handle.await.map_err(|error| match error.try_into_panic() {
        Ok(payload) => payload,
        Err(_) => Box::new("the runtime shut down"),
    })
}
