//! The carrier of lines: one pipe in memory for everything, served as stdin and stdout are.
//!
//! Why here: a pipe says of no message which call it belongs to, so that a client sorts what comes; so does this one.
//! Invariants: what belongs to no call is never passed over: it fails the test at the latest when its client is dropped.
//! Requests and log messages of a server name no call; they count as those of the call that was begun last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcp_core::{Connection, Principal, Server};
use mcp_wire::{MessageReader, MessageWriter, Transport as _, params};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::call::{Item, Running};
use crate::wire::{Checked, decoded};

/// One connection to a server.
#[derive(Debug)]
pub(crate) struct Stdio {
    outgoing: mpsc::Sender<Bytes>,
    sorted: Arc<Mutex<Sorted>>,
    notices: tokio::sync::Mutex<mpsc::Receiver<Value>>,
    serial: AtomicU64,
    /// What reads and what writes; the pipe is theirs.
    tasks: [AbortHandle; 2],
}

impl Stdio {
    pub(crate) fn new(server: &Server, principal: Principal) -> Self {
        let (near, far) = mcp_stdio::pair(64 * 1024);
        let connection = Connection::new(server.clone()).principal(principal);
        #[expect(clippy::disallowed_methods, reason = "ends when the client's side is dropped")]
        tokio::spawn(async move {
            // A client that goes away is an error to the server and none to us.
            let _ = connection.serve(far).await;
        });
        let (reader, writer) = near.split();
        let (outgoing, queue) = mpsc::channel(1024);
        let (told, notices) = mpsc::channel(1024);
        let sorted = Arc::<Mutex<Sorted>>::default();
        #[expect(clippy::disallowed_methods, reason = "aborted with the connection")]
        let tasks = [
            tokio::spawn(write(writer, queue)).abort_handle(),
            tokio::spawn(read(reader, Arc::clone(&sorted), told)).abort_handle(),
        ];
        Self { outgoing, sorted, notices: notices.into(), serial: AtomicU64::new(0), tasks }
    }

    /// Writes a frame and reads what is said in reply, in the background.
    pub(crate) fn send(&self, frame: Bytes, checked: Checked) -> Running {
        let message: Value = serde_json::from_slice(&frame).unwrap_or_default();
        let is_request = message["method"].is_string() && (message["id"].is_string() || message["id"].is_number());
        let withdrawn =
            (message["method"] == "notifications/cancelled").then(|| message["params"]["requestId"].clone());
        let token = message["params"]["_meta"].get("progressToken").cloned();
        let id = is_request.then(|| message["id"].clone());
        let (serial, frames) = self.open(id, token, checked.id.is_none());
        self.write(frame);
        // To what is no request there may be an answer or none. None has come when what was sent after it is answered.
        let barrier = (!is_request).then(|| self.barrier());
        let sorted = Arc::clone(&self.sorted);
        Running::new(|items| async move {
            pump(frames, barrier, &checked, &items).await;
            let mut sorted = sorted.lock().unwrap();
            sorted.open.retain(|route| route.serial != serial);
            if let Some(id) = withdrawn {
                sorted.open.retain(|route| route.id.as_ref() != Some(&id));
            }
        })
    }

    /// The next message that no request caused; `None` when the server has ended.
    pub(crate) async fn unsolicited(&self) -> Option<Value> {
        self.notices.lock().await.recv().await
    }

    fn write(&self, frame: Bytes) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.outgoing.try_send(frame) {
            panic!("a test writes more than it lets the server read");
        }
    }

    fn open(&self, id: Option<Value>, token: Option<Value>, raw: bool) -> (u64, mpsc::Receiver<Bytes>) {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let (frames, receiver) = mpsc::channel(1024);
        let mut sorted = self.sorted.lock().unwrap();
        if !sorted.ended {
            sorted.open.push(Route { serial, id, token, raw, frames });
        }
        (serial, receiver)
    }

    /// A ping, which every revision answers at once, be it with an error.
    fn barrier(&self) -> mpsc::Receiver<Bytes> {
        let id = json!(format!("barrier {}", self.serial.load(Ordering::Relaxed)));
        let (_, answer) = self.open(Some(id.clone()), None, false);
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string().into());
        answer
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        if !std::thread::panicking() {
            let stray = std::mem::take(&mut self.sorted.lock().unwrap().stray);
            assert!(stray.is_empty(), "what belongs to no call was said: {stray:?}");
        }
    }
}

async fn write(mut writer: impl MessageWriter, mut queue: mpsc::Receiver<Bytes>) {
    while let Some(frame) = queue.recv().await {
        if writer.send(frame).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

async fn read(mut reader: impl MessageReader, sorted: Arc<Mutex<Sorted>>, notices: mpsc::Sender<Value>) {
    while let Ok(Some(frame)) = reader.next().await {
        let message = decoded(&frame);
        if is_unsolicited(&message) {
            // Whoever reads no notices is gone, and so is this.
            let _ = notices.send(message).await;
            continue;
        }
        let route = sorted.lock().unwrap().route(message);
        if let Some(route) = route {
            // A call that was dropped hears nothing.
            let _ = route.send(frame).await;
        }
    }
    let mut sorted = sorted.lock().unwrap();
    sorted.ended = true;
    sorted.open.clear();
}

/// A notice of a session.
fn is_unsolicited(message: &Value) -> bool {
    let method = message["method"].as_str().unwrap_or_default();
    let tells = method.ends_with("/list_changed")
        || matches!(
            method,
            "notifications/resources/updated" | "notifications/elicitation/complete" | "notifications/tasks/status"
        );
    tells && message["params"]["_meta"][params::SUBSCRIPTION_ID].is_null()
}

async fn pump(
    mut frames: mpsc::Receiver<Bytes>,
    mut barrier: Option<mpsc::Receiver<Bytes>>,
    checked: &Checked,
    items: &mpsc::Sender<Item>,
) {
    loop {
        let passed = async {
            match &mut barrier {
                Some(barrier) => barrier.recv().await,
                None => std::future::pending().await,
            }
        };
        let frame = tokio::select! {
            biased;
            frame = frames.recv() => frame,
            _ = passed => return,
        };
        let Some(frame) = frame else { return };
        let message = decoded(&frame);
        let item = match (message.get("method"), message.get("id")) {
            (Some(_), None) => Item::Notification(checked.notification(&frame)),
            (Some(_), Some(_)) => Item::Request(checked.request(&frame)),
            (None, _) => Item::Response(checked.response(&frame, None)),
        };
        let is_over = matches!(item, Item::Response(_));
        if items.send(item).await.is_err() || is_over {
            return;
        }
    }
}

/// What is under way, the oldest first, and what came without belonging to any of it.
#[derive(Debug, Default)]
struct Sorted {
    open: Vec<Route>,
    stray: Vec<Value>,
    /// The server has closed the pipe.
    ended: bool,
}

/// Where the frames of one call go.
#[derive(Debug)]
struct Route {
    serial: u64,
    /// None for what is no request.
    id: Option<Value>,
    token: Option<Value>,
    /// The test wrote the frame itself; its id may not be the one that comes back.
    raw: bool,
    frames: mpsc::Sender<Bytes>,
}

impl Sorted {
    fn route(&mut self, message: Value) -> Option<mpsc::Sender<Bytes>> {
        let is_response = message.get("method").is_none();
        let meta = &message["params"]["_meta"];
        let found = if is_response {
            let id = message.get("id");
            let named = self.last(|route| route.id.is_some() && route.id.as_ref() == id);
            named.or_else(|| self.last(|route| route.raw))
        } else if let Some(id) = meta.get(params::SUBSCRIPTION_ID) {
            self.last(|route| route.id.as_ref() == Some(id))
        } else if message["method"] == "notifications/progress" {
            self.last(|route| route.token.is_some() && route.token.as_ref() == message["params"].get("progressToken"))
        } else {
            self.last(|route| route.id.is_some() && !route.frames.is_closed())
        };
        let Some(index) = found else {
            self.stray.push(message);
            return None;
        };
        Some(if is_response { self.open.remove(index).frames } else { self.open[index].frames.clone() })
    }

    fn last(&self, is_it: impl Fn(&Route) -> bool) -> Option<usize> {
        self.open.iter().rposition(is_it)
    }
}
