//! A client that speaks whichever era its lane has.
//!
//! Why here: everything that differs between eras before a request leaves is written here, once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use mcp_core::Server;
use mcp_wire::{Revision, params};
use serde_json::{Value, json};

use crate::call::{Call, Reply, Running};
use crate::http::{ENDPOINT, Events, Http, HttpAnswer};
use crate::lane::{Host, Lane, Profile};
use crate::memory::Memory;
use crate::stdio::Stdio;
use crate::wire::{Checked, decoded};
use crate::within;

/// How frames get to the server.
#[derive(Debug)]
pub(crate) enum Link {
    Memory(Memory),
    Http(Http),
    Stdio(Stdio),
}

impl Link {
    fn send(&self, frame: Bytes, checked: Checked) -> Running {
        match self {
            Self::Memory(link) => link.send(frame, checked),
            Self::Http(link) => link.send(frame, checked),
            Self::Stdio(link) => link.send(frame, checked),
        }
    }
}

/// A client, connected to a server.
#[derive(Debug)]
pub struct Client {
    lane: Lane,
    link: Link,
    server: Server,
    profile: Profile,
    next_id: AtomicI64,
    /// The log level that modern requests ask for.
    level: Mutex<Option<&'static str>>,
}

impl Client {
    pub(crate) fn new(lane: Lane, link: Link, server: Server, profile: Profile) -> Self {
        Self { lane, link, server, profile, next_id: AtomicI64::new(1), level: Mutex::new(None) }
    }

    /// The same client at another host of the lane, in the same session: as a balancer has it. Lanes of HTTP only.
    ///
    /// # Panics
    /// In the others.
    #[must_use]
    pub fn at(&self, host: &Host) -> Self {
        let link = match (&self.link, host.endpoint()) {
            (Link::Http(link), Some(endpoint)) => Link::Http(link.at(endpoint)),
            _ => panic!("there is no HTTP here"),
        };
        Self::new(self.lane, link, host.server().clone(), self.profile.clone())
    }

    /// The lane that the client is in.
    #[must_use]
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// The server at the other end.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Sends a request and reads everything up to its response.
    pub async fn request(&self, method: &str, params: Value) -> Reply {
        self.start(method, params).reply().await
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Sends a request, to read item by item what is said in reply.
    pub fn start(&self, method: &str, params: Value) -> Call {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.start_as(json!(id), method, params)
    }

    /// Starts the call of a tool.
    pub fn start_tool(&self, tool: &str, arguments: Value) -> Call {
        self.start("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// As [`Self::start`], with an id of one's own.
    pub fn start_as(&self, id: Value, method: &str, params: Value) -> Call {
        let params = self.enveloped(params);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let checked = self.checked(Some(id.clone()));
        Call::new(id, self.link.send(Bytes::from(message.to_string()), checked))
    }

    /// Sends a notification; nothing may be said in reply.
    pub async fn notify(&self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.say(message).await;
    }

    /// Takes a request back, in the way that the lane has, after which the server says nothing more about it.
    ///
    /// # Panics
    /// When it does.
    pub async fn cancel(&self, call: Call) {
        if matches!(&self.link, Link::Http(link) if link.is_modern()) {
            // Closing the stream is the only way; nobody is there to hear anything more.
            drop(call);
            crate::idle().await;
            return;
        }
        self.withdraw(call.id()).await;
        call.silence().await;
    }

    /// Says that the request with this id is not wanted any more.
    pub async fn withdraw(&self, id: &Value) {
        self.notify("notifications/cancelled", json!({ "requestId": id })).await;
    }

    /// As [`Self::start`], with an id written digit for digit, with which everything said in reply is to be tagged.
    pub fn start_written(&self, id: &'static str, method: &str, params: Value) -> Call {
        let params = self.enveloped(params);
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let checked = Checked { written: Some(id), ..self.checked(None) };
        Call::new(Value::Null, self.link.send(frame.into(), checked))
    }

    /// Answers a request of the server.
    pub async fn answer(&self, request: &Value, result: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// Answers a request of the server with an error.
    pub async fn answer_error(&self, request: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    }

    /// Sends bytes as they are and reads the response to them.
    pub async fn raw(&self, frame: impl Into<Bytes>) -> Reply {
        Call::new(Value::Null, self.link.send(frame.into(), self.checked(None))).reply().await
    }

    /// As [`Self::raw`], where the answer is to be one of another revision than the lane's.
    pub async fn raw_of(&self, revision: Revision, frame: impl Into<Bytes>) -> Reply {
        let checked = Checked { id: None, rules: revision.rules(), written: None };
        Call::new(Value::Null, self.link.send(frame.into(), checked)).reply().await
    }

    /// The id of the session. Legacy HTTP only.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn session_id(&self) -> String {
        match &self.link {
            Link::Http(link) => link.session_id().expect("a session"),
            Link::Memory(_) | Link::Stdio(_) => panic!("the session of a connection has no id"),
        }
    }

    /// Sends bytes as they are, to read item by item what is said in reply.
    pub fn start_raw(&self, frame: impl Into<Bytes>) -> Call {
        Call::new(Value::Null, self.link.send(frame.into(), self.checked(None)))
    }

    /// Sends an HTTP request as a test likes it; `edit` starts from the headers of an ordinary one with this body.
    ///
    /// # Panics
    /// When the lane is not of HTTP.
    pub async fn http(
        &self,
        method: ::http::Method,
        body: impl Into<Bytes>,
        edit: impl FnOnce(&mut ::http::HeaderMap),
    ) -> HttpAnswer {
        self.http_at(ENDPOINT, method, body, edit).await
    }

    /// As [`Self::http`], at another path.
    ///
    /// # Panics
    /// When the lane is not of HTTP.
    pub async fn http_at(
        &self,
        path: &str,
        method: ::http::Method,
        body: impl Into<Bytes>,
        edit: impl FnOnce(&mut ::http::HeaderMap),
    ) -> HttpAnswer {
        match &self.link {
            Link::Http(link) => within("an answer of HTTP", link.exchange(path, method, body.into(), edit)).await,
            Link::Memory(_) | Link::Stdio(_) => panic!("there is no HTTP here"),
        }
    }

    /// As [`Self::http`], for an answer that has to be a stream.
    ///
    /// # Panics
    /// When it is none, or the lane is not of HTTP.
    pub async fn stream(
        &self,
        method: ::http::Method,
        body: impl Into<Bytes>,
        edit: impl FnOnce(&mut ::http::HeaderMap),
    ) -> Events {
        self.stream_at(ENDPOINT, method, body, edit).await
    }

    /// As [`Self::stream`], at another path.
    ///
    /// # Panics
    /// When the answer is no stream, or the lane is not of HTTP.
    pub async fn stream_at(
        &self,
        path: &str,
        method: ::http::Method,
        body: impl Into<Bytes>,
        edit: impl FnOnce(&mut ::http::HeaderMap),
    ) -> Events {
        match &self.link {
            Link::Http(link) => within("the head of a stream", link.stream(path, method, body.into(), edit)).await,
            Link::Memory(_) | Link::Stdio(_) => panic!("there is no HTTP here"),
        }
    }

    /// Asks for log messages of this level and above: for the session, or with each request from now on.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn set_log_level(&self, level: &'static str) {
        if self.lane.is_modern() {
            *self.level.lock().unwrap() = Some(level);
        } else {
            assert_eq!(*self.request("logging/setLevel", json!({ "level": level })).await.result(), json!({}));
        }
    }

    /// Asks to be told of changes. `filter` is that of `subscriptions/listen`; legacy clients are told of lists unasked
    /// and subscribe to each resource.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn watch(&self, filter: Value) -> Watch<'_> {
        if self.lane.is_modern() {
            let mut call = self.start("subscriptions/listen", json!({ "notifications": filter }));
            let granted = call.notification().await;
            assert_eq!(granted["method"], "notifications/subscriptions/acknowledged");
            assert_eq!(granted["params"]["notifications"], filter, "not all of the wish was granted");
            return Watch { client: self, call: Some(call) };
        }
        for uri in filter["resourceSubscriptions"].as_array().into_iter().flatten() {
            let reply = self.request("resources/subscribe", json!({ "uri": uri })).await;
            assert_eq!(*reply.result(), json!({}));
        }
        Watch { client: self, call: None }
    }

    /// The next message that no request caused. Legacy sessions only.
    ///
    /// # Panics
    /// When the session has ended.
    pub async fn unsolicited(&self) -> Value {
        let notice = within("a notice", async {
            match &self.link {
                Link::Memory(link) => link.unsolicited().await.map(|frame| decoded(&frame)),
                Link::Http(link) => link.unsolicited().await,
                Link::Stdio(link) => link.unsolicited().await,
            }
        });
        notice.await.expect("the session has ended")
    }

    pub(crate) async fn shake_hands(&self) {
        let reply = self
            .request(
                "initialize",
                json!({
                    "protocolVersion": self.lane.revision().as_str(),
                    "capabilities": self.profile.capabilities,
                    "clientInfo": { "name": self.profile.name, "version": "1" },
                }),
            )
            .await;
        assert_eq!(reply.result()["protocolVersion"], self.lane.revision().as_str(), "not what was offered");
        self.notify("notifications/initialized", json!({})).await;
    }

    /// The parameters with what the lane's era wants in every request.
    ///
    /// # Panics
    /// Never, but for another test that panicked.
    #[must_use]
    pub fn enveloped(&self, mut params: Value) -> Value {
        if !self.lane.is_modern() {
            return params;
        }
        let Some(members) = params.as_object_mut() else { return params };
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        let Some(meta) = meta.as_object_mut() else { return params };
        let mut put = |key: &str, value: Value| {
            meta.entry(key).or_insert(value);
        };
        put(params::PROTOCOL_VERSION, self.lane.revision().as_str().into());
        put(params::CLIENT_CAPABILITIES, self.profile.capabilities.clone());
        put(params::CLIENT_INFO, json!({ "name": self.profile.name, "version": "1" }));
        if let Some(level) = *self.level.lock().unwrap() {
            put(params::LOG_LEVEL, level.into());
        }
        params
    }

    fn checked(&self, id: Option<Value>) -> Checked {
        Checked { id, rules: self.lane.revision().rules(), written: None }
    }

    async fn say(&self, message: Value) {
        let sent = self.link.send(Bytes::from(message.to_string()), self.checked(None));
        Call::new(Value::Null, sent).silence().await;
    }
}

/// Change notices, as they come.
#[derive(Debug)]
pub struct Watch<'a> {
    client: &'a Client,
    call: Option<Call>,
}

impl Watch<'_> {
    /// The next notice, without the tag of its subscription: method and parameters.
    ///
    /// # Panics
    /// When the tag is wrong, or something else comes.
    pub async fn next(&mut self) -> (String, Value) {
        let mut notice = match &mut self.call {
            None => self.client.unsolicited().await,
            Some(call) => {
                let mut notice = call.notification().await;
                let meta = notice["params"]["_meta"].take();
                assert_eq!(meta, json!({ (params::SUBSCRIPTION_ID): call.id() }), "not tagged: {notice}");
                if let Some(members) = notice["params"].as_object_mut() {
                    members.remove("_meta");
                }
                notice
            }
        };
        let method = notice["method"].as_str().expect("a notice has a method").to_owned();
        let params = match notice["params"].take() {
            Value::Null => json!({}),
            params => params,
        };
        (method, params)
    }

    /// Nothing is due.
    ///
    /// # Panics
    /// When something is.
    pub async fn is_quiet(&mut self) {
        match &mut self.call {
            Some(call) => call.is_quiet().await,
            None => {
                let waiting = tokio::time::timeout(std::time::Duration::from_millis(1), self.client.unsolicited());
                if let Ok(notice) = waiting.await {
                    panic!("not quiet: {notice}");
                }
            }
        }
    }
}
