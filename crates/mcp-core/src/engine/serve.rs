//! Drives any transport: one connection, both eras, from its first frame to its end in order.
//!
//! Why here: what a pipe owes its peer (reading waits for nobody, one writer, answers after the last question) is written
//! once for every carrier of whole frames.
//! Invariants: reading waits for no handler, and for the peer only once it has left more than `Limits` allow untaken;
//! frames are written whole and one after the other; what runs, waits and is queued is bounded; no handler outlives the
//! connection by more than `Limits::cancel_grace`.
//! Spec: 2026-07-28 basic/transports/stdio; 2025-03-26 basic, "Batching"

use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use mcp_wire::{
    DecodeError, DecodeLimits, ErrorCode, Frame, Message, MessageReader, MessageWriter, RpcError, Transport,
    TransportError, join_batch,
};
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::exchange::{Exchange, Outbound};
use super::peer::Peer;
use super::sessions::Session;
use crate::protocol::admit::{Classified, Pipe};
use crate::telemetry;
use crate::{Principal, Server};

/// Serves an anonymous client over a transport until either side ends it: see [`Connection::serve`].
///
/// # Errors
/// As [`Connection::serve`].
pub async fn serve<T: Transport>(server: Server, transport: T) -> Result<(), TransportError> {
    Connection::new(server).serve(transport).await
}

/// As [`serve`], for a client that the carrier knows.
///
/// # Errors
/// As [`Connection::serve`].
pub async fn serve_as<T: Transport>(server: Server, principal: Principal, transport: T) -> Result<(), TransportError> {
    Connection::new(server).principal(principal).serve(transport).await
}

/// A conversation with one client over one transport.
#[derive(Debug)]
#[must_use = "nothing is served before `serve`"]
pub struct Connection {
    server: Server,
    principal: Principal,
    client: Option<IpAddr>,
    grace: Duration,
}

/// Frames that wait for the writer. One for each request that runs may wait for its turn beside them.
const QUEUE: usize = 64;

impl Connection {
    /// With an anonymous client, and five seconds for the end.
    pub fn new(server: Server) -> Self {
        Self { server, principal: Principal::anonymous(), client: None, grace: Duration::from_secs(5) }
    }

    /// Where the client is, as far as the transport vouches for it; told to audits and traces alone. Default: unknown.
    pub fn client(mut self, address: IpAddr) -> Self {
        self.client = Some(address);
        self
    }

    /// Who the client is. Default: the anonymous caller.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = principal;
        self
    }

    /// How long everything may take from the end of input on. Default 5 seconds. The last part of it,
    /// [`Limits::cancel_grace`](crate::Limits::cancel_grace) but at most half, is for handlers that are cancelled by then.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Serves until the input ends, the server shuts down, or the transport fails. Needs a tokio runtime with time.
    ///
    /// Messages of both eras may come in any order. Requests run beside each other, at most
    /// [`Limits::in_flight_per_peer`](crate::Limits::in_flight_per_peer) at a time; more wait. After the end of input, or
    /// once [`Server::shutdown`] has begun, nothing more is read; what was read before is answered within the grace, and
    /// subscriptions get their closing result. Dropping the future cancels everything.
    ///
    /// # Errors
    /// When the transport failed. If it was writing that failed, everything was cancelled at once.
    pub async fn serve<T: Transport>(self, transport: T) -> Result<(), TransportError> {
        let _counted = self.server.meter().opened(telemetry::Open::Connection);
        let span = tracing::info_span!(target: "mcp_core", "mcp.connection", network.transport = "pipe");
        self.serve_until_end(transport).instrument(span).await
    }

    async fn serve_until_end<T: Transport>(self, transport: T) -> Result<(), TransportError> {
        let (reader, writer) = transport.split();
        let (outbound, queue) = mpsc::channel(QUEUE);
        let mut writing = pin!(write(writer, queue));
        let stopped = self.server.stopped();
        let cancel_grace = self.server.limits().cancel_grace.min(self.grace / 2);
        let mut open = Open::new(&self.server, self.principal, Pipe::from_client(self.client), outbound);

        let closing = self.server.closing().clone();
        let ending = first_of(closing.cancelled(), stopped.cancelled());
        let read = match first_of(writing.as_mut(), first_of(open.read(reader), ending)).await {
            Either::First(failed) => return failed,
            Either::Second(Either::First(read)) => read,
            Either::Second(Either::Second(_)) => Ok(()),
        };

        open.peer.input_ended();
        let late = first_of(stopped.cancelled(), tokio::time::sleep(self.grace.saturating_sub(cancel_grace)));
        let answered = first_of(open.answered(), late);
        if let Either::First(failed) = first_of(writing.as_mut(), answered).await {
            return failed;
        }

        let Open { peer, running, notices, outbound, .. } = open;
        // Each exchange is dropped with its task, which cancels it.
        drop((running, notices, outbound));
        let told = async {
            let written = writing.await;
            peer.idle().await;
            written
        };
        let written = match first_of(told, tokio::time::sleep(cancel_grace)).await {
            Either::First(written) => written,
            // Nobody takes what is written, or a handler does not stop: they had their time.
            Either::Second(()) => Ok(()),
        };
        read.and(written)
    }
}

/// The only writer. Buffered frames are handed over whenever nothing more waits.
async fn write(mut writer: impl MessageWriter, mut queue: mpsc::Receiver<Bytes>) -> Result<(), TransportError> {
    loop {
        let frame = match queue.try_recv() {
            Ok(frame) => frame,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                writer.flush().await?;
                match queue.recv().await {
                    Some(frame) => frame,
                    None => break,
                }
            }
        };
        writer.send(frame).await?;
    }
    writer.close().await
}

/// A connection while it lasts.
struct Open {
    server: Server,
    peer: Peer,
    pipe: Pipe,
    decode: DecodeLimits,
    /// A task for each exchange that has no response at hand. A task each, not a set polled by the loop, because a
    /// handler that computes for a while in one poll must hold up neither reading nor the others.
    running: JoinSet<()>,
    /// The change notices of the session.
    notices: JoinSet<()>,
    outbound: mpsc::Sender<Bytes>,
    /// For handlers that run.
    places: Arc<Semaphore>,
    /// For whatever has a task.
    room: Arc<Semaphore>,
    /// For the frames that those hold.
    bytes: Arc<Semaphore>,
    most_bytes: usize,
}

impl Open {
    fn new(server: &Server, principal: Principal, pipe: Pipe, outbound: mpsc::Sender<Bytes>) -> Self {
        let limits = server.limits();
        let places = limits.in_flight_per_peer.clamp(1, Semaphore::MAX_PERMITS / 2);
        let room = places.saturating_add(limits.waiting_per_peer).min(Semaphore::MAX_PERMITS);
        let most_bytes = limits.received_bytes_per_peer.clamp(1, u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        Self {
            peer: Peer::connection(server.clone(), principal, room),
            pipe,
            decode: limits.decode(),
            running: JoinSet::new(),
            notices: JoinSet::new(),
            outbound,
            places: Arc::new(Semaphore::new(places)),
            room: Arc::new(Semaphore::new(room)),
            bytes: Arc::new(Semaphore::new(most_bytes)),
            most_bytes,
            server: server.clone(),
        }
    }

    /// Takes every message until the input ends.
    async fn read(&mut self, mut reader: impl MessageReader) -> Result<(), TransportError> {
        loop {
            // A reader that always has a frame would keep everyone else waiting.
            tokio::task::coop::consume_budget().await;
            match reader.next().await {
                Ok(Some(frame)) => self.take(&frame).await,
                Ok(None) | Err(TransportError::Closed) => return Ok(()),
                Err(TransportError::FrameTooLong { limit }) => {
                    let reason = format!("a message has at most {limit} bytes");
                    self.take_malformed(&DecodeError::Invalid { reason, id: None }).await;
                }
                Err(error) => return Err(error),
            }
            while self.running.try_join_next().is_some() {}
        }
    }

    /// Completes when everything that was read is answered.
    async fn answered(&mut self) {
        while self.running.join_next().await.is_some() {}
    }

    async fn take(&mut self, frame: &Bytes) {
        match Frame::decode(frame, self.decode) {
            Frame::One(message) => self.take_one(message, frame.len()).await,
            Frame::Batch(elements) => self.take_batch(elements, frame.len()).await,
            Frame::Malformed(error) => self.take_malformed(&error).await,
        }
    }

    async fn take_malformed(&mut self, error: &DecodeError) {
        if let Some(frame) = self.peer.receive(Classified::malformed(error)).take_response() {
            self.say(frame).await;
        }
    }

    async fn take_one(&mut self, message: Message, bytes: usize) {
        let held = self.hold(bytes);
        let had_session = self.peer.session().is_some();
        let exchange = self.peer.receive_from(self.server.classify(message, None), &self.pipe);
        let Some(frame) = self.start(exchange, Reply::Alone(held)) else { return };
        match self.peer.session() {
            Some(session) if !had_session => {
                let notices = tell(session.clone(), self.outbound.clone());
                // The result of the handshake comes before anything else that the session brings.
                let _ = self.outbound.send(frame).await;
                #[expect(clippy::disallowed_methods, reason = "ends with its session; the set aborts it when dropped")]
                self.notices.spawn(notices);
            }
            _ => self.say(frame).await,
        }
    }

    /// A batch is received by the one revision that has them, and answered by one frame.
    async fn take_batch(&mut self, elements: Vec<Result<Message, DecodeError>>, bytes: usize) {
        if !self.peer.session().is_some_and(|session| session.rules().batches) {
            let text = "a batch is not accepted here: send one message per frame";
            return self.take_malformed(&DecodeError::Batch(text.to_owned())).await;
        }
        let batch = Arc::new(Batch { responses: Mutex::default(), held: self.hold(bytes) });
        for element in elements {
            let message = match element {
                Ok(message) => self.server.classify(message, None).in_batch(),
                Err(error) => Classified::malformed(&error),
            };
            let exchange = self.peer.receive_from(message, &self.pipe);
            if let Some(frame) = self.start(exchange, Reply::In(Arc::clone(&batch))) {
                batch.add(frame);
            }
        }
        if let Some(frame) = Batch::joined(batch) {
            self.say(frame).await;
        }
    }

    fn hold(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(self.most_bytes)).unwrap_or(u32::MAX);
        Arc::clone(&self.bytes).try_acquire_many_owned(bytes).ok()
    }

    /// Runs an exchange beside the others, or returns its response where that is at hand.
    fn start(&mut self, mut exchange: Exchange, reply: Reply) -> Option<Bytes> {
        let at_hand = exchange.take_response();
        if exchange.is_over() {
            return at_hand;
        }
        let room = Arc::clone(&self.room).try_acquire_owned();
        let (Ok(room), true) = (room, reply.is_held()) else {
            self.server.meter().refused("in_flight");
            let text = "too much is under way on this connection; send more when something has ended";
            return exchange.refuse(&RpcError::new(ErrorCode::INTERNAL_ERROR, text));
        };
        let running = run(exchange, reply, Arc::clone(&self.places), self.outbound.clone());
        self.spawn(room, running);
        None
    }

    /// Queues a frame for the writer. When the queue is full the frame waits beside it, so that reading goes on; only a
    /// peer that has left everything there may be untaken is not listened to any more.
    async fn say(&mut self, frame: Bytes) {
        let Err(TrySendError::Full(frame)) = self.outbound.try_send(frame) else {
            // Either queued or the writer has failed, which ends the connection.
            return;
        };
        match Arc::clone(&self.room).try_acquire_owned() {
            Ok(room) => {
                let outbound = self.outbound.clone();
                self.spawn(room, async move {
                    let _ = outbound.send(frame).await;
                });
            }
            Err(_) => {
                let _ = self.outbound.send(frame).await;
            }
        }
    }

    fn spawn(&mut self, room: OwnedSemaphorePermit, work: impl Future<Output = ()> + Send + 'static) {
        #[expect(clippy::disallowed_methods, reason = "bounded by the room; the set aborts what is left when dropped")]
        self.running.spawn(async move {
            work.await;
            drop(room);
        });
    }
}

/// Brings an exchange to its end, one frame at a time: while the writer is behind, the handler is not polled.
async fn run(mut exchange: Exchange, reply: Reply, places: Arc<Semaphore>, outbound: mpsc::Sender<Bytes>) {
    let cancelled = exchange.cancellation();
    let cancelled = async {
        match &cancelled {
            Some(cancelled) => cancelled.cancelled().await,
            // A subscription that is withdrawn ends by itself.
            None => std::future::pending().await,
        }
    };
    let mut cancelled = pin!(cancelled);
    let _place = if exchange.runs_handler() {
        match first_of(places.acquire(), cancelled.as_mut()).await {
            Either::First(place) => Some(place),
            Either::Second(()) => None,
        }
    } else {
        None
    };
    while let Some(item) = exchange.next().await {
        match (item, &reply) {
            (Outbound::Release { .. }, _) => {}
            (Outbound::Response(frame, _), Reply::In(batch)) => batch.add(frame),
            (Outbound::Response(frame, _), Reply::Alone(_)) => {
                let _ = outbound.send(frame).await;
            }
            (Outbound::Notification(frame) | Outbound::Request(frame), _) => {
                if let Either::Second(()) = first_of(outbound.send(frame), cancelled.as_mut()).await {
                    break;
                }
            }
        }
    }
    drop(exchange);
    if let Reply::In(batch) = reply
        && let Some(frame) = Batch::joined(batch)
    {
        let _ = outbound.send(frame).await;
    }
}

/// Writes what is due to the client of a session that no request caused.
async fn tell(session: Session, outbound: mpsc::Sender<Bytes>) {
    while let Some(frame) = std::future::poll_fn(|context| session.poll_notice(context)).await {
        if outbound.send(frame).await.is_err() {
            return;
        }
    }
}

/// Where a response goes. Holds the bytes of the frame that asked for it.
enum Reply {
    Alone(Option<OwnedSemaphorePermit>),
    In(Arc<Batch>),
}

impl Reply {
    fn is_held(&self) -> bool {
        match self {
            Self::Alone(held) => held.is_some(),
            Self::In(batch) => batch.held.is_some(),
        }
    }
}

/// The responses of a batch; whoever lets go of it last sends them.
struct Batch {
    responses: Mutex<Vec<Bytes>>,
    held: Option<OwnedSemaphorePermit>,
}

impl Batch {
    fn add(&self, response: Bytes) {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner).push(response);
    }

    /// The frame of all responses, when this was the last that was waited for and there are any.
    fn joined(batch: Arc<Self>) -> Option<Bytes> {
        let batch = Arc::into_inner(batch)?;
        let responses = batch.responses.into_inner().unwrap_or_else(PoisonError::into_inner);
        if responses.is_empty() { None } else { Some(join_batch(&responses)) }
    }
}

enum Either<A, B> {
    First(A),
    Second(B),
}

/// The first of two futures to complete; if both are ready, the first one.
async fn first_of<A: Future, B: Future>(first: A, second: B) -> Either<A::Output, B::Output> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    std::future::poll_fn(|context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(output));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}
