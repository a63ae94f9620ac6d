//! Moves what an exchange says into its stream, whether or not a client is there to read it.
//!
//! Why here: in the legacy era a lost connection is no cancellation; something has to own the exchange meanwhile.
//! Invariants: one task per exchange that was not ready at once; it ends with the exchange or with the session.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_core::Stream as _;
use mcp_core::{Exchange, Outbound, Session};

use super::stream::{EventStream, Streams};

/// The first item, if it is there without waiting.
pub(super) async fn at_once(exchange: &mut Exchange) -> Option<Outbound> {
    poll_fn(|context| match Pin::new(&mut *exchange).poll_next(context) {
        Poll::Ready(item) => Poll::Ready(item),
        // The task that takes over polls again and leaves its own waker.
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Starts moving; `first` was taken already.
pub(super) fn start(
    mut exchange: Exchange,
    first: Option<Outbound>,
    session: &Session,
    streams: &Arc<Streams>,
    stream: &Arc<EventStream>,
) {
    let (ended, streams, stream) = (session.ended(), Arc::clone(streams), Arc::clone(stream));
    #[expect(clippy::disallowed_methods, reason = "ends with the exchange or the session, whichever is first")]
    tokio::spawn(async move {
        let moving = async {
            if let Some(item) = first {
                stream.push(item).await;
            }
            while let Some(item) = exchange.next().await {
                stream.push(item).await;
            }
        };
        // At the end of the session the exchange is dropped, which cancels its call.
        ended.run_until_cancelled(moving).await;
        stream.finish();
        streams.finished();
    });
}
