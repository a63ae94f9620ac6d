//! Moves what an exchange says into its stream, whether or not a client is there to read it.
//!
//! Why here: in the legacy era a lost connection is no cancellation; something has to own the exchange meanwhile.
//! Invariants: one task per request whose exchanges were not ready at once; it ends with them (and with what a store takes
//! of them) or with the session.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream as _;
use mcp_core::{Exchange, Hint, Outbound, Session};

use super::stored::Keeper;
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

/// An exchange that is not over, and what was taken from it already.
pub(super) struct Started {
    pub(super) exchange: Exchange,
    pub(super) first: Option<Outbound>,
}

/// Starts moving: what was `ready` before, then what the exchanges say, until all of them are over.
pub(super) fn start(
    ready: Vec<Bytes>,
    mut open: Vec<Started>,
    session: &Session,
    streams: &Arc<Streams>,
    stream: &Arc<EventStream>,
    keeper: Option<Arc<Keeper>>,
) {
    let (ended, streams, stream) = (session.ended(), Arc::clone(streams), Arc::clone(stream));
    #[expect(clippy::disallowed_methods, reason = "ends with the exchanges or the session, whichever is first")]
    tokio::spawn(async move {
        let moving = async {
            let first: Vec<_> = open.iter_mut().filter_map(|started| started.first.take()).collect();
            for item in ready.into_iter().map(|frame| Outbound::Response(frame, Hint::Ok)).chain(first) {
                stream.push(item).await;
            }
            while let Some(item) = poll_fn(|context| poll_any(&mut open, context)).await {
                stream.push(item).await;
            }
        };
        let moved = async {
            // At the end of the session the exchanges are dropped, which cancels their calls.
            ended.run_until_cancelled(moving).await;
            stream.finish();
        };
        match keeper {
            None => moved.await,
            // What has ended with its session is nobody's to come back for.
            Some(keeper) => both(moved, ended.run_until_cancelled(keeper.keep(&stream))).await,
        }
        streams.finished();
    });
}

async fn both(one: impl Future, other: impl Future) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let mut over = [false; 2];
    poll_fn(|context| {
        over[0] = over[0] || one.as_mut().poll(context).is_ready();
        over[1] = over[1] || other.as_mut().poll(context).is_ready();
        if over == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// The next item of any exchange; `None` when all are over. Whoever spoke is asked last the next time.
fn poll_any(open: &mut Vec<Started>, context: &mut Context<'_>) -> Poll<Option<Outbound>> {
    let mut index = 0;
    while let Some(started) = open.get_mut(index) {
        match Pin::new(&mut started.exchange).poll_next(context) {
            Poll::Ready(Some(item)) => {
                open.rotate_left(index + 1);
                return Poll::Ready(Some(item));
            }
            Poll::Ready(None) => drop(open.remove(index)),
            Poll::Pending => index += 1,
        }
    }
    if open.is_empty() { Poll::Ready(None) } else { Poll::Pending }
}
