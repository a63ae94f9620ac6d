//! What the server says in reply to one message, as one owned stream.
//!
//! Why here: ownership is the request's life. Whoever holds an exchange may put it in a response body, a task or a loop;
//! dropping it cancels the request, in every transport and era.
//! Invariants: notices come before the response, the response is last; a call that was withdrawn yields nothing more; a
//! panic of the handler is -32603 for this call alone.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use mcp_wire::{ErrorCode, RpcError, encode_error};
use tokio_util::sync::CancellationToken;

use super::hub::Listening;
use super::peer::InFlight;
use super::worker::{self, BoxFuture, drop_caught, panic_text, poll_caught};
use crate::context::CallState;
use crate::protocol::rejection::Hint;
use crate::telemetry::{Observed, Outcome};

/// One thing the server says. Frames are encoded JSON without raw line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outbound {
    /// A notification that belongs to the request.
    Notification(Bytes),
    /// A request to the client (legacy only), whose answer comes as another message.
    Request(Bytes),
    /// The client may be let go: it will poll for the rest, not sooner than this (legacy only).
    Release {
        /// The shortest time until it comes back.
        retry: Duration,
    },
    /// The response, last.
    Response(Bytes, Hint),
}

/// The answer to one message: nothing, a response, or notices and requests before a response.
///
/// Dropping an exchange cancels what it stands for; a handler then has a short grace to notice.
pub struct Exchange {
    kind: Kind,
    /// The place in the peer's table of requests under way.
    in_flight: Option<InFlight>,
    /// Whoever is told what becomes of it.
    observed: Option<Box<Observed>>,
}

enum Kind {
    Done,
    Ready(Outbound, Outcome),
    Call(Call),
    Listen(Listening),
}

/// A finished call: its frame and what it means for a status.
pub(crate) type Finished = (Bytes, Hint);

struct Call {
    /// Taken when it is finished or dropped.
    running: Option<BoxFuture<Finished>>,
    polled: bool,
    state: Arc<CallState>,
    /// Rendered when the handler panics.
    on_panic: fn(&CallState) -> Finished,
    response: Option<Finished>,
}

impl Exchange {
    /// Nothing is said in reply (notifications, responses).
    pub(crate) fn silent() -> Self {
        Self::of(Kind::Done, None)
    }

    pub(crate) fn ready(frame: Bytes, hint: Hint) -> Self {
        Self::of(Kind::Ready(Outbound::Response(frame, hint), Outcome::Ok), None)
    }

    /// As [`Self::ready`], with the frame of an error.
    pub(crate) fn failed(frame: Bytes, hint: Hint, code: ErrorCode) -> Self {
        Self::of(Kind::Ready(Outbound::Response(frame, hint), Outcome::Error(code)), None)
    }

    fn of(kind: Kind, in_flight: Option<InFlight>) -> Self {
        Self { kind, in_flight, observed: None }
    }

    /// Tells whoever listens what becomes of it.
    pub(crate) fn observed(mut self, observed: Option<Box<Observed>>) -> Self {
        self.observed = observed;
        self
    }

    pub(crate) fn call(
        running: BoxFuture<Finished>,
        state: Arc<CallState>,
        on_panic: fn(&CallState) -> Finished,
        in_flight: Option<InFlight>,
    ) -> Self {
        let call = Call { running: Some(running), polled: false, state, on_panic, response: None };
        Self::of(Kind::Call(call), in_flight)
    }

    pub(crate) fn listen(listening: Listening, in_flight: Option<InFlight>) -> Self {
        Self::of(Kind::Listen(listening), in_flight)
    }

    /// Whether nothing more will be said. Over from the start is the exchange of a message that is owed no answer: a
    /// notification or a response.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.kind, Kind::Done)
    }

    /// The next item; `None` when the exchange is over. Cancel-safe.
    pub async fn next(&mut self) -> Option<Outbound> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// The response, if nothing else is left to say and it is at hand.
    pub(crate) fn take_response(&mut self) -> Option<Bytes> {
        if !matches!(self.kind, Kind::Ready(Outbound::Response(..), _)) {
            return None;
        }
        match std::mem::replace(&mut self.kind, Kind::Done) {
            Kind::Ready(Outbound::Response(frame, _), outcome) => {
                self.came_to(outcome);
                Some(frame)
            }
            _ => None,
        }
    }

    /// Whether a handler runs when this is polled: it then needs a place among those that run.
    pub(crate) fn runs_handler(&self) -> bool {
        matches!(self.kind, Kind::Call(_))
    }

    /// The response that refuses this request instead of serving it; `None` when none is owed.
    pub(crate) fn refuse(mut self, error: &RpcError) -> Option<Bytes> {
        let id = match &self.kind {
            Kind::Call(call) => &call.state.id,
            Kind::Listen(listening) => listening.id(),
            Kind::Done | Kind::Ready(..) => return None,
        };
        let frame = encode_error(Some(id), error, false);
        self.came_to(Outcome::Error(error.code));
        Some(frame)
    }

    /// Is cancelled with the call, so that whoever waits for something else on its behalf can stop.
    pub(crate) fn cancellation(&self) -> Option<CancellationToken> {
        match &self.kind {
            Kind::Call(call) => Some(call.state.cancellation.token().clone()),
            Kind::Listen(_) | Kind::Done | Kind::Ready(..) => None,
        }
    }

    fn end(&mut self) {
        // A withdrawn call ends before its handler does.
        if let Kind::Call(call) = &mut self.kind {
            call.abandon(self.in_flight.take());
        }
        self.kind = Kind::Done;
        self.in_flight = None;
        self.observed = None;
    }

    fn came_to(&mut self, outcome: Outcome) {
        if let Some(mut observed) = self.observed.take() {
            observed.end(outcome);
        }
    }
}

impl Stream for Exchange {
    type Item = Outbound;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Outbound>> {
        let this = &mut *self;
        let item = match &mut this.kind {
            Kind::Done => return Poll::Ready(None),
            Kind::Ready(..) => match std::mem::replace(&mut this.kind, Kind::Done) {
                Kind::Ready(item, outcome) => {
                    this.came_to(outcome);
                    Some(item)
                }
                _ => None,
            },
            Kind::Call(call) => {
                std::task::ready!(Observed::within(this.observed.as_deref(), || call.poll_next(context)))
            }
            Kind::Listen(listening) => std::task::ready!(listening.poll_next(context)),
        };
        if matches!(item, None | Some(Outbound::Response(..))) {
            if item.is_some() && this.observed.is_some() {
                let outcome = match &this.kind {
                    Kind::Call(call) => call.state.attempt().outcome,
                    Kind::Done | Kind::Ready(..) | Kind::Listen(_) => Outcome::Ok,
                };
                this.came_to(outcome);
            }
            this.end();
        }
        Poll::Ready(item)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Kind::Call(call) = &mut self.kind {
            call.abandon(self.in_flight.take());
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Done => "over",
            Kind::Ready(..) => "ready",
            Kind::Call(_) => "call",
            Kind::Listen(_) => "listen",
        };
        f.debug_tuple("Exchange").field(&kind).finish()
    }
}

impl Call {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Outbound>> {
        loop {
            match self.state.outbox.pop() {
                Popped::Item(item) => return Poll::Ready(Some(item)),
                Popped::Withdrawn => return Poll::Ready(None),
                Popped::Empty => {}
            }
            if let Some((frame, hint)) = self.response.take() {
                return Poll::Ready(Some(Outbound::Response(frame, hint)));
            }
            let Some(running) = &mut self.running else { return Poll::Ready(None) };
            self.polled = true;
            match poll_caught(running.as_mut(), context) {
                Poll::Ready(outcome) => {
                    if let Some(running) = self.running.take() {
                        drop_caught(running);
                    }
                    // A clone of the context in a spawned task must not speak after the response.
                    self.state.outbox.close();
                    self.response = Some(outcome.unwrap_or_else(|payload| {
                        tracing::error!(panic = panic_text(&*payload), "a handler panicked");
                        (self.on_panic)(&self.state)
                    }));
                }
                Poll::Pending => {
                    if !self.state.outbox.wait(context.waker()) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Cancels a call that is still running and lets it see that for a while.
    fn abandon(&mut self, in_flight: Option<InFlight>) {
        self.state.outbox.close();
        if let Some(running) = self.running.take() {
            self.state.cancellation.cancel();
            if self.polled {
                worker::reap(running, self.state.server.limits().cancel_grace, in_flight);
            } else {
                drop_caught(running);
            }
        } else if self.response.is_some() {
            // Nobody takes the response: what goes on behind it learns that its client is gone.
            self.state.cancellation.cancel();
        }
    }
}

/// Notices of one call that wait to be written: bounded, filled without waiting.
pub(crate) struct Outbox {
    limit: usize,
    state: Mutex<OutboxState>,
}

#[derive(Default)]
struct OutboxState {
    queue: VecDeque<Outbound>,
    /// The newest progress that found the queue full.
    latest_progress: Option<Bytes>,
    dropped: usize,
    closed: bool,
    withdrawn: bool,
    waker: Option<Waker>,
}

pub(crate) enum Popped {
    Item(Outbound),
    Empty,
    Withdrawn,
}

impl Outbox {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an item; a notification that finds the queue full is dropped.
    pub(crate) fn push(&self, item: Outbound) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        // Questions are bounded by their own limit, and without them the call would wait for nothing.
        if state.queue.len() >= self.limit && matches!(item, Outbound::Notification(_)) {
            state.dropped += 1;
            return;
        }
        state.queue.push_back(item);
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }

    /// Queues progress; when the queue is full it replaces the progress that also found it full.
    pub(crate) fn push_progress(&self, frame: Bytes) {
        {
            let mut state = self.state();
            if !state.closed && state.queue.len() >= self.limit {
                state.latest_progress = Some(frame);
                return;
            }
        }
        self.push(Outbound::Notification(frame));
    }

    pub(crate) fn pop(&self) -> Popped {
        let mut state = self.state();
        if state.withdrawn {
            return Popped::Withdrawn;
        }
        if let Some(item) = state.queue.pop_front() {
            return Popped::Item(item);
        }
        if state.dropped > 0 {
            tracing::warn!(dropped = state.dropped, "log messages found their queue full");
            state.dropped = 0;
        }
        state.latest_progress.take().map_or(Popped::Empty, |frame| Popped::Item(Outbound::Notification(frame)))
    }

    /// Remembers whom to wake; returns whether there is something to pop already.
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        let mut state = self.state();
        if state.withdrawn || !state.queue.is_empty() || state.latest_progress.is_some() {
            return true;
        }
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            state.waker = Some(waker.clone());
        }
        false
    }

    /// Nothing is taken any more; what is queued is still written.
    pub(crate) fn close(&self) {
        self.state().closed = true;
    }

    /// Nothing more is written: the peer took its request back.
    pub(crate) fn withdraw(&self) {
        let mut state = self.state();
        state.closed = true;
        state.withdrawn = true;
        state.queue.clear();
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }
}
