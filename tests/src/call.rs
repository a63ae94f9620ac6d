//! A request under way, and what came of it.
//!
//! Why here: tests read items one by one, or all of them, in the same way over every carrier.

use std::future::Future;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::{idle, within};

/// One thing that the server says in reply to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A notification that belongs to the request.
    Notification(Value),
    /// A request of the server to the client.
    Request(Value),
    /// The client is let go and polls for the rest.
    Release(Duration),
    /// The response.
    Response(Reply),
}

/// A response, with everything that came before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Notifications and requests of the server, in order.
    pub before: Vec<Value>,
    /// The response, decoded.
    pub response: Value,
    /// The response as it was written.
    pub text: String,
    /// The HTTP status; in memory, the one that the engine's hint stands for; none over a pipe.
    pub status: Option<u16>,
    /// The HTTP headers, names in lower case; none elsewhere.
    pub headers: Vec<(String, String)>,
}

impl Reply {
    /// The result.
    ///
    /// # Panics
    /// When there is an error instead.
    #[must_use]
    pub fn result(&self) -> &Value {
        self.response.get("result").unwrap_or_else(|| panic!("no result: {}", self.text))
    }

    /// The error.
    ///
    /// # Panics
    /// When there is a result instead.
    #[must_use]
    pub fn error(&self) -> &Value {
        self.response.get("error").unwrap_or_else(|| panic!("no error: {}", self.text))
    }

    /// The code of the error.
    ///
    /// # Panics
    /// When there is a result instead.
    #[must_use]
    pub fn code(&self) -> i64 {
        self.error()["code"].as_i64().expect("a code is an integer")
    }

    /// The code of an error that comes with this status, where there are statuses.
    ///
    /// # Panics
    /// When the status is another, or there is a result instead.
    #[must_use]
    pub fn code_at(&self, status: u16) -> i64 {
        assert!(self.has_status(status), "status {:?} and not {status}: {}", self.status, self.text);
        self.code()
    }

    /// Whether the status is this one, where there are statuses.
    #[must_use]
    pub fn has_status(&self, status: u16) -> bool {
        self.status.is_none_or(|it| it == status)
    }

    /// The message of the error.
    ///
    /// # Panics
    /// When there is a result instead.
    #[must_use]
    pub fn message(&self) -> &str {
        self.error()["message"].as_str().expect("a message is a string")
    }

    /// The text of a tool's first content block.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn tool_text(&self) -> &str {
        self.result()["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {}", self.text))
    }

    /// Whether a tool says that it failed.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        self.result()["isError"] == true
    }

    /// The methods of what came before the response.
    #[must_use]
    pub fn methods_before(&self) -> Vec<&str> {
        self.before.iter().filter_map(|message| message["method"].as_str()).collect()
    }
}

/// What reads the items of one request in the background; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    items: mpsc::Receiver<Item>,
    task: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn new<W>(reader: impl FnOnce(mpsc::Sender<Item>) -> W) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let (sender, items) = mpsc::channel(1024);
        #[expect(clippy::disallowed_methods, reason = "aborted when the call is dropped")]
        let task = tokio::spawn(reader(sender));
        Self { items, task: Some(task) }
    }

    pub(crate) async fn next(&mut self) -> Option<Item> {
        let item = self.items.recv().await;
        // What the reader found wrong is the test's to fail of.
        if item.is_none()
            && let Some(task) = self.task.take()
            && let Err(error) = task.await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
        item
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// A request under way. Dropping it is what a client does that goes away.
#[derive(Debug)]
pub struct Call {
    id: Value,
    running: Running,
}

impl Call {
    pub(crate) fn new(id: Value, running: Running) -> Self {
        Self { id, running }
    }

    /// The id of the request.
    #[must_use]
    pub fn id(&self) -> &Value {
        &self.id
    }

    /// The next thing that the server says; `None` when it will say nothing more.
    pub async fn next(&mut self) -> Option<Item> {
        within("an item of a call", self.running.next()).await
    }

    /// The next thing, which has to be a notification.
    ///
    /// # Panics
    /// When it is something else.
    pub async fn notification(&mut self) -> Value {
        match self.next().await {
            Some(Item::Notification(notification)) => notification,
            other => panic!("no notification: {other:?}"),
        }
    }

    /// The next thing, which has to be a request of the server.
    ///
    /// # Panics
    /// When it is something else.
    pub async fn server_request(&mut self) -> Value {
        match self.next().await {
            Some(Item::Request(request)) => request,
            other => panic!("no request: {other:?}"),
        }
    }

    /// Everything up to the response, after which nothing may follow.
    ///
    /// # Panics
    /// When there is no response.
    pub async fn reply(mut self) -> Reply {
        let mut before = Vec::new();
        loop {
            match self.next().await {
                Some(Item::Notification(message) | Item::Request(message)) => before.push(message),
                Some(Item::Release(_)) => {}
                Some(Item::Response(mut reply)) => {
                    assert_eq!(self.next().await, None, "something follows the response");
                    reply.before = before;
                    return reply;
                }
                None => panic!("request {} ended without a response, after {before:?}", self.id),
            }
        }
    }

    /// The server ends the call without another word.
    ///
    /// # Panics
    /// When it says anything.
    pub async fn silence(mut self) {
        assert_eq!(self.next().await, None, "something was said about request {}", self.id);
    }

    /// The call is still under way and there is nothing to read.
    ///
    /// # Panics
    /// When there is something to read, or the call has ended.
    pub async fn is_quiet(&mut self) {
        idle().await;
        match self.running.items.try_recv() {
            Err(mpsc::error::TryRecvError::Empty) => {}
            other => panic!("not quiet: {other:?}"),
        }
    }
}
