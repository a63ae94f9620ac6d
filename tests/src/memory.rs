//! The carrier without a carrier: frames go straight to the engine, as a pipe's shell would hand them over.
//!
//! Why here: what the engine does by itself is tested without anything around it.
//! Invariants: every exchange runs in a task of its own that ends when its call is dropped.

use std::sync::Arc;

use bytes::Bytes;
use mcp_core::{Classified, Exchange, Hint, Outbound, Peer, Principal, Scope, Server};
use mcp_wire::Frame;
use tokio::sync::mpsc;

use crate::call::{Item, Running};
use crate::wire::Checked;

/// One connection to a server.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    server: Server,
    peer: Arc<Peer>,
}

impl Memory {
    pub(crate) fn new(server: &Server, principal: Principal) -> Self {
        Self { server: server.clone(), peer: Arc::new(server.peer(principal, Scope::Connection)) }
    }

    /// Hands a frame over and reads what is said in reply, in the background.
    pub(crate) fn send(&self, frame: Bytes, checked: Checked) -> Running {
        let exchange = self.receive(&frame);
        Running::new(|items| pump(exchange, checked, items))
    }

    fn receive(&self, frame: &Bytes) -> Exchange {
        match Frame::decode(frame, self.server.limits().decode()) {
            Frame::One(message) => self.peer.receive(self.server.classify(message, None)),
            Frame::Malformed(error) => self.peer.receive(Classified::malformed(&error)),
            Frame::Batch(_) => panic!("batches are taken apart by shells"),
        }
    }

    /// The next message that no request caused; `None` when the session has ended.
    pub(crate) async fn unsolicited(&self) -> Option<Bytes> {
        let session = self.peer.session().expect("only sessions are told things unasked");
        std::future::poll_fn(|context| session.poll_notice(context)).await
    }
}

async fn pump(mut exchange: Exchange, checked: Checked, items: mpsc::Sender<Item>) {
    while let Some(outbound) = exchange.next().await {
        let item = match outbound {
            Outbound::Notification(frame) => Item::Notification(checked.notification(&frame)),
            Outbound::Request(frame) => Item::Request(checked.request(&frame)),
            Outbound::Release { retry } => Item::Release(retry),
            Outbound::Response(frame, hint) => {
                assert!(exchange.is_over(), "something follows a response");
                Item::Response(checked.response(&frame, Some(status(&hint))))
            }
            other => panic!("a new kind of item: {other:?}"),
        };
        if items.send(item).await.is_err() {
            return;
        }
    }
}

/// What a carrier with statuses makes of a hint.
fn status(hint: &Hint) -> u16 {
    match hint {
        Hint::Ok => 200,
        Hint::BadRequest => 400,
        Hint::Forbidden { .. } => 403,
        Hint::NotFound => 404,
        other => panic!("a new hint: {other:?}"),
    }
}
