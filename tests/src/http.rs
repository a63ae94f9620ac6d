//! HTTP without sockets: hyper's client and hyper's server, one connection per request, over pipes in memory.
//!
//! Why here: a paused clock and real sockets do not go together, so that the way through hyper is real and the wire is not.
//! Invariants: a connection ends with its call, as the connection of a client ends that goes away; the stream is read by a
//! parser of this package, not by the one that is tested.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_auth::{AuthError, AuthProvider, AuthRequest, BearerChallenge, Challenge};
use mcp_core::{Principal, Server};
use mcp_http::server::{HttpConfig, HttpService};
use mcp_wire::{Era, Revision};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::call::{Item, Reply, Running};
use crate::lane::Profile;
use crate::wire::{Checked, decoded};

/// Where requests go that say nothing else.
pub(crate) const ENDPOINT: &str = "/mcp";

/// An endpoint for a server, at which every client of a test calls.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint(HttpService);

impl Endpoint {
    pub(crate) fn new(server: &Server) -> Self {
        Self::over(server, HttpConfig::new(ByName).sse_pair("/sse", "/messages"))
    }

    pub(crate) fn over(server: &Server, config: HttpConfig) -> Self {
        Self(HttpService::new(server.clone(), config))
    }

    pub(crate) fn service(&self) -> &HttpService {
        &self.0
    }

    /// Opens a connection, sends a request over it and returns the head of the answer. The connection ends with the
    /// returned guard.
    async fn send(&self, request: Request<Full<Bytes>>) -> (Response<Incoming>, Connection) {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let service = self.0.clone();
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.respond(request).await) }
        });
        let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), answer);
        #[expect(clippy::disallowed_methods, reason = "ends when the client's side is dropped")]
        tokio::spawn(async move {
            // A client that goes away is an error to hyper and none to us.
            let _ = serving.await;
        });
        let (mut sender, sending) =
            hyper::client::conn::http1::handshake(TokioIo::new(near)).await.expect("the pipe is open");
        #[expect(clippy::disallowed_methods, reason = "aborted with the connection")]
        let connection = Connection(tokio::spawn(async move { drop(sending.await) }).abort_handle());
        let response = sender.send_request(request).await.expect("every request gets an answer");
        (response, connection)
    }
}

#[derive(Debug)]
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The configuration that clients of this harness are known under.
pub fn http_config() -> HttpConfig {
    HttpConfig::new(ByName)
}

/// Knows everybody by the name and the scopes they give as their token.
struct ByName;

#[async_trait]
impl AuthProvider for ByName {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        token.and_then(Profile::read_token).ok_or(AuthError::Missing)
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        BearerChallenge::default().answer(error)
    }
}

/// One client of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    endpoint: Endpoint,
    revision: Revision,
    token: String,
    session: Arc<Mutex<Option<String>>>,
    notices: Arc<tokio::sync::Mutex<Option<Notices>>>,
}

/// The standalone stream: what came, and what reads it.
type Notices = (mpsc::Receiver<Value>, Arc<Running>);

/// An answer of HTTP, taken as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: String,
}

impl HttpAnswer {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.body))
    }

    /// The code of the error in the body.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {:?}", self.body))
    }
}

impl Http {
    pub(crate) fn new(endpoint: Endpoint, revision: Revision, profile: &Profile) -> Self {
        Self { endpoint, revision, token: profile.token(), session: Arc::default(), notices: Arc::default() }
    }

    /// The same client at another endpoint, in the same session.
    pub(crate) fn at(&self, endpoint: Endpoint) -> Self {
        Self { endpoint, notices: Arc::default(), ..self.clone() }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    pub(crate) fn session_id(&self) -> Option<String> {
        self.session.lock().unwrap().clone()
    }

    /// Sends a frame and reads what is said in reply, in the background.
    pub(crate) fn send(&self, frame: Bytes, checked: Checked) -> Running {
        let (this, headers) = (self.clone(), self.headers(&frame));
        Running::new(|items| async move {
            let (response, _connection) = this.endpoint.send(request(Method::POST, &headers, frame)).await;
            if let Some(session) = response.headers().get("mcp-session-id") {
                assert!(!this.is_modern(), "a modern response carries a session id");
                *this.session.lock().unwrap() = Some(session.to_str().expect("ids are ASCII").to_owned());
            }
            read(response, &checked, &items).await;
        })
    }

    /// Sends whatever a test likes; `edit` starts from the headers of an ordinary request with this body.
    pub(crate) async fn exchange(
        &self,
        path: &str,
        method: Method,
        body: Bytes,
        edit: impl FnOnce(&mut HeaderMap),
    ) -> HttpAnswer {
        let mut headers = self.headers(&body);
        edit(&mut headers);
        let (response, _connection) = self.endpoint.send(request_at(path, method, &headers, body)).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("the body ends in order").to_bytes();
        let body = String::from_utf8(body.to_vec()).expect("bodies are UTF-8");
        HttpAnswer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// As [`Self::exchange`], for an answer that is a stream.
    pub(crate) async fn stream(
        &self,
        path: &str,
        method: Method,
        body: Bytes,
        edit: impl FnOnce(&mut HeaderMap),
    ) -> Events {
        let mut headers = self.headers(&body);
        edit(&mut headers);
        let (response, connection) = self.endpoint.send(request_at(path, method, &headers, body)).await;
        assert_eq!(response.status(), 200, "no stream");
        assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
        Events { _connection: Some(connection), ..Events::new(response.into_body()) }
    }

    /// The next message of the standalone stream, which is opened when it is first read.
    pub(crate) async fn unsolicited(&self) -> Option<Value> {
        let mut notices = self.notices.lock().await;
        if notices.is_none() {
            *notices = Some(self.open_notices().await);
        }
        notices.as_mut()?.0.recv().await
    }

    async fn open_notices(&self) -> Notices {
        let headers = self.headers(&Bytes::new());
        let (response, connection) = self.endpoint.send(request(Method::GET, &headers, Bytes::new())).await;
        assert_eq!(response.status(), 200, "there is a standalone stream");
        let (sender, receiver) = mpsc::channel(1024);
        let reading = Running::new(|_| async move {
            let _connection = connection;
            let mut events = Events::new(response.into_body());
            while let Some(event) = events.next().await {
                if event.data.is_empty() {
                    continue;
                }
                if sender.send(decoded(event.data.as_bytes())).await.is_err() {
                    return;
                }
            }
        });
        (receiver, Arc::new(reading))
    }

    /// The headers of an ordinary request with this body.
    fn headers(&self, body: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut put = |name: HeaderName, value: &str| {
            headers.insert(name, HeaderValue::from_str(value).expect("a header of a test is printable"));
        };
        put(HOST, "localhost:3000");
        put(AUTHORIZATION, &format!("Bearer {}", self.token));
        put(CONTENT_TYPE, "application/json");
        put(ACCEPT, "application/json, text/event-stream");
        if !self.is_modern() {
            if let Some(session) = &*self.session.lock().unwrap() {
                put(HeaderName::from_static("mcp-session-id"), session);
                put(HeaderName::from_static("mcp-protocol-version"), self.revision.as_str());
            }
            return headers;
        }
        let mirrored: Mirrored = serde_json::from_slice(body).unwrap_or_default();
        let params = mirrored.params.unwrap_or_default();
        let text = |member: Option<Value>| member.as_ref().and_then(Value::as_str).map(header_text);
        let claim = text(params.meta.unwrap_or_default().protocol_version);
        put(HeaderName::from_static("mcp-protocol-version"), claim.as_deref().unwrap_or(self.revision.as_str()));
        let Some(method) = mirrored.method.as_ref().and_then(Value::as_str) else { return headers };
        put(HeaderName::from_static("mcp-method"), &header_text(method));
        let target = match method {
            "tools/call" | "prompts/get" => text(params.name),
            "resources/read" => text(params.uri),
            "tasks/get" | "tasks/update" | "tasks/cancel" => text(params.task_id),
            _ => None,
        };
        if let Some(target) = target {
            put(HeaderName::from_static("mcp-name"), &target);
        }
        headers
    }
}

/// What headers repeat of a body; the rest of the body may be anything.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Mirrored {
    method: Option<Value>,
    params: Option<MirroredParams>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MirroredParams {
    #[serde(rename = "_meta")]
    meta: Option<MirroredMeta>,
    name: Option<Value>,
    uri: Option<Value>,
    task_id: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MirroredMeta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<Value>,
}

/// A text as it stands in a mirrored header: as it is, or in base64 where a header could not hold it.
fn header_text(text: &str) -> String {
    use base64::Engine as _;
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}

fn request(method: Method, headers: &HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    request_at(ENDPOINT, method, headers, body)
}

fn request_at(path: &str, method: Method, headers: &HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("a path of a test is one");
    *request.headers_mut() = headers.clone();
    request
}

async fn read(response: Response<Incoming>, checked: &Checked, items: &mpsc::Sender<Item>) {
    let status = response.status().as_u16();
    let headers: Vec<(String, String)> = response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let kind = response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec());
    let finished = |frame: &[u8]| Item::Response(Reply { headers, ..checked.response(frame, Some(status)) });
    match kind.as_deref() {
        Some(b"text/event-stream") => {
            assert_eq!(status, 200, "a stream is a success");
            let mut finished = Some(finished);
            let mut events = Events::new(response.into_body());
            while let Some(event) = events.next().await {
                let frame = event.data.as_bytes();
                if frame.is_empty() {
                    continue;
                }
                let message = decoded(frame);
                let item = match (message.get("method"), message.get("id")) {
                    (Some(_), None) => Item::Notification(checked.notification(frame)),
                    (Some(_), Some(_)) => Item::Request(checked.request(frame)),
                    (None, _) => finished.take().expect("one response to a request")(frame),
                };
                if items.send(item).await.is_err() {
                    return;
                }
            }
        }
        Some(b"application/json") => {
            let body = response.into_body().collect().await.expect("the body ends in order").to_bytes();
            let _ = items.send(finished(&body)).await;
        }
        None => {
            let body = response.into_body().collect().await.expect("the body ends in order").to_bytes();
            assert!(body.is_empty() && status == 202, "status {status} with {body:?} and no Content-Type");
        }
        Some(other) => panic!("an answer of the kind {:?}", String::from_utf8_lossy(other)),
    }
}

/// The events of a stream, as they come. Its connection ends when this is dropped.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    text: String,
    /// Comments that came so far.
    comments: usize,
    _connection: Option<Connection>,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `id`
    pub id: Option<String>,
    /// `retry`, in milliseconds.
    pub retry: Option<u64>,
    /// `event`
    pub name: Option<String>,
    /// The lines of `data`, joined.
    pub data: String,
}

impl Events {
    fn new(body: Incoming) -> Self {
        Self { body, text: String::new(), comments: 0, _connection: None }
    }

    /// How many comments came so far; they are signs of life.
    #[must_use]
    pub fn comments(&self) -> usize {
        self.comments
    }

    /// The first `bytes` bytes of the stream as they are, or all of it; then its connection is cut.
    ///
    /// # Panics
    /// When the stream is none.
    pub async fn cut_after(mut self, bytes: usize) -> Vec<u8> {
        let mut read = std::mem::take(&mut self.text).into_bytes();
        while read.len() < bytes {
            let Some(frame) = self.body.frame().await else { break };
            if let Ok(data) = frame.expect("the stream ends in order").into_data() {
                read.extend_from_slice(&data);
            }
        }
        read.truncate(bytes);
        read
    }

    /// What came first of what was not read yet, comment or event, as it is.
    ///
    /// # Panics
    /// When the stream ends before that.
    pub async fn first_byte(&mut self) -> &str {
        while self.text.is_empty() {
            let frame = crate::within("a byte of a stream", self.body.frame()).await;
            let frame = frame.expect("the stream goes on").expect("the stream ends in order");
            if let Ok(data) = frame.into_data() {
                self.text.push_str(std::str::from_utf8(&data).expect("events are written whole"));
            }
        }
        &self.text
    }

    /// The next event, comments left out; `None` at the end of the stream.
    ///
    /// # Panics
    /// When the stream is none, or ends within an event.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let fields: Vec<&str> = block.lines().filter(|line| !line.is_empty()).collect();
                if fields.iter().all(|field| field.starts_with(':')) {
                    self.comments += 1;
                    continue;
                }
                let mut event = Event::default();
                let mut data = Vec::new();
                for field in fields {
                    let (name, value) = field.split_once(':').unwrap_or((field, ""));
                    let value = value.strip_prefix(' ').unwrap_or(value);
                    match name {
                        "id" => event.id = Some(value.to_owned()),
                        "retry" => event.retry = Some(value.parse().expect("a time to wait is a number")),
                        "event" => event.name = Some(value.to_owned()),
                        "data" => data.push(value),
                        _ => panic!("a field that is not needed: {field}"),
                    }
                }
                event.data = data.join("\n");
                return Some(event);
            }
            let frame = match self.body.frame().await {
                Some(frame) => frame.expect("the stream ends in order"),
                None => {
                    assert!(self.text.is_empty(), "the stream ends within an event: {:?}", self.text);
                    return None;
                }
            };
            if let Ok(data) = frame.into_data() {
                self.text.push_str(std::str::from_utf8(&data).expect("events are written whole"));
            }
        }
    }
}
