//! Connections, requests and events, as every kind of client needs them.
//!
//! Why here: what a valid request looks like in each era, and what a right answer is, is written once.
//! Invariants: shares no code of the protocol with what it talks to; each kind of client has an address of its own on the
//! loopback, so that what is bounded for each caller is bounded for each kind.
//! Spec: 2026-07-28 basic/transports/streamable-http; 2025-11-25 basic/transports, "Streamable HTTP"

use std::cell::Cell;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::Outcome;
use crate::tally::Tally;

const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";
/// The revision of the pair.
pub(crate) const FIRST: &str = "2024-11-05";

/// What all clients share.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) tally: Tally,
    next: Cell<u64>,
    noise: Cell<u64>,
}

/// Who is calling, by the last number of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Well = 1,
    Slow = 2,
    Vanishing = 3,
    Hostile = 4,
    Flooding = 5,
}

impl World {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, tally: Tally::default(), next: Cell::new(1), noise: Cell::new(0x9e37_79b9_7f4a_7c15) }
    }

    /// A number that no other request has.
    pub(crate) fn id(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// The next of a series without a pattern, below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        let mut noise = self.noise.get();
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        self.noise.set(noise);
        noise % end.max(1)
    }

    pub(crate) async fn socket(&self, kind: Kind) -> Outcome<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if kind == Kind::Slow {
            // What is not read has to wait in the server, not here.
            socket.set_recv_buffer_size(64 * 1024)?;
        }
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, kind as u8), 0)))?;
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    pub(crate) async fn http1(&self, kind: Kind) -> Outcome<Client> {
        let (sender, connection) = http1::handshake(TokioIo::new(self.socket(kind).await?)).await?;
        let driven = Driven::start(async move {
            // What goes wrong with the connection is told to its requests.
            let _ = connection.await;
        });
        Ok(Client { sender: Sender::One(sender), _driven: driven })
    }

    pub(crate) async fn http2(&self, kind: Kind) -> Outcome<Client> {
        self.http2_with_window(kind, 256 * 1024).await
    }

    /// A client that lets the server send so many bytes of each answer until it asks for more.
    pub(crate) async fn http2_with_window(&self, kind: Kind, window: u32) -> Outcome<Client> {
        let stream = TokioIo::new(self.socket(kind).await?);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.initial_stream_window_size(window).handshake(stream).await?;
        let driven = Driven::start(async move {
            let _ = connection.await;
        });
        Ok(Client { sender: Sender::Two(sender), _driven: driven })
    }
}

/// A connection's own task, which ends with its client.
struct Driven(JoinHandle<()>);

impl Driven {
    #[expect(clippy::disallowed_methods, reason = "aborted when its owner is dropped")]
    fn start(connection: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(connection))
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection of either protocol.
pub(crate) struct Client {
    sender: Sender,
    _driven: Driven,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    /// Begins a request. Over HTTP/1.1 the answer before has to be over.
    pub(crate) fn begin(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> impl Future<Output = Result<Response<Incoming>, hyper::Error>> + use<> {
        let sent: std::pin::Pin<Box<dyn Future<Output = _>>> = match &mut self.sender {
            Sender::One(sender) => Box::pin(sender.send_request(request)),
            Sender::Two(sender) => Box::pin(sender.send_request(request)),
        };
        sent
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Outcome<Response<Incoming>> {
        if let Sender::One(sender) = &mut self.sender {
            sender.ready().await?;
        }
        Ok(self.begin(request).await?)
    }

    /// Calls a tool and checks that it says `text`; gives the time it took.
    pub(crate) async fn call(&mut self, call: Call<'_>, text: &str) -> Outcome<Duration> {
        let (request, asked) = (call.request(), now());
        let response = self.send(request).await?;
        let answer = answer(response, call.id).await?;
        let time = asked.elapsed();
        let said = &answer["result"]["content"][0]["text"];
        if said == text {
            Ok(time)
        } else {
            Err(format!("{} was answered {:.300}", call.tool, answer.to_string()).into())
        }
    }
}

/// Now. What is measured here runs in real time.
#[expect(clippy::disallowed_methods, reason = "what is measured runs in real time, in another process")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The call of a tool, of the modern era or in a session.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) id: u64,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) session: Option<&'a str>,
    /// Whether progress is asked for.
    pub(crate) progress: bool,
}

impl Call<'_> {
    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        let mut params = json!({ "name": self.tool, "arguments": self.arguments });
        let mut meta = if self.session.is_some() { json!({}) } else { meta() };
        if self.progress {
            meta["progressToken"] = json!(self.id);
        }
        params["_meta"] = meta;
        match self.session {
            None => modern(self.id, "tools/call", Some(self.tool), &params),
            Some(session) => legacy(self.id, "tools/call", &params, Some(session)),
        }
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn modern(id: u64, method: &str, name: Option<&str>, params: &Value) -> Request<Full<Bytes>> {
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
    let mut request = with_body(body);
    let headers = request.headers_mut();
    put(headers, "mcp-protocol-version", MODERN);
    put(headers, "mcp-method", method);
    if let Some(name) = name {
        put(headers, "mcp-name", name);
    }
    request
}

/// A `subscriptions/listen` for everything that changes here.
pub(crate) fn listen(id: u64) -> Request<Full<Bytes>> {
    let wish = json!({ "toolsListChanged": true, "resourceSubscriptions": [crate::serve::WATCHED] });
    modern(id, "subscriptions/listen", None, &json!({ "notifications": wish, "_meta": meta() }))
}

pub(crate) fn legacy(id: u64, method: &str, params: &Value, session: Option<&str>) -> Request<Full<Bytes>> {
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
    in_session(with_body(body), session)
}

pub(crate) fn legacy_notice(method: &str, params: &Value, session: &str) -> Request<Full<Bytes>> {
    let body = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
    in_session(with_body(body), Some(session))
}

/// A request without a body in a session: GET for its stream, DELETE for its end.
pub(crate) fn bare(method: Method, session: &str, last_seen: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = in_session(with_body(String::new()), Some(session));
    *request.method_mut() = method;
    request.headers_mut().remove(CONTENT_TYPE);
    put(request.headers_mut(), "accept", "text/event-stream");
    if let Some(id) = last_seen {
        put(request.headers_mut(), "last-event-id", id);
    }
    request
}

pub(crate) fn initialize(id: u64) -> Request<Full<Bytes>> {
    legacy(id, "initialize", &hello(LEGACY, &json!({})), None)
}

/// The parameters of a handshake.
pub(crate) fn hello(revision: &str, capabilities: &Value) -> Value {
    let info = json!({ "name": "soak", "version": "1" });
    json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": info })
}

/// A POST of this body, without any header of an era.
pub(crate) fn with_body(body: String) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static("http://localhost/mcp");
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    request
}

fn in_session(mut request: Request<Full<Bytes>>, session: Option<&str>) -> Request<Full<Bytes>> {
    if let Some(session) = session {
        put(request.headers_mut(), "mcp-session-id", session);
        put(request.headers_mut(), "mcp-protocol-version", LEGACY);
    }
    request
}

fn put(headers: &mut http::HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Opens a session and says that the handshake is done; gives its id.
pub(crate) async fn open_session(client: &mut Client, world: &World) -> Outcome<String> {
    let id = world.id();
    let response = client.send(initialize(id)).await?;
    let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
    let answer = answer(response, id).await?;
    if answer["result"]["protocolVersion"] != LEGACY {
        return Err(format!("initialize was answered {answer}").into());
    }
    let session = session.ok_or("initialize opened no session")?;
    let done = client.send(legacy_notice("notifications/initialized", &json!({}), &session)).await?;
    expect(done, StatusCode::ACCEPTED).await?;
    Ok(session)
}

/// Reads a response whole, which has to have this status.
pub(crate) async fn expect(response: Response<Incoming>, status: StatusCode) -> Outcome<Bytes> {
    let came = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if came == status {
        return Ok(body);
    }
    Err(format!("{came} instead of {status}: {:.300}", String::from_utf8_lossy(&body)).into())
}

/// The message with this id: the whole body, or one of the events of a stream.
pub(crate) async fn answer(response: Response<Incoming>, id: u64) -> Outcome<Value> {
    if response.status() != StatusCode::OK {
        return Err(match expect(response, StatusCode::OK).await {
            Ok(_) => "no answer".into(),
            Err(problem) => problem,
        });
    }
    let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    if !is_stream {
        let answer: Value = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
        return if answer["id"] == id { Ok(answer) } else { Err(format!("request {id} got {answer}").into()) };
    }
    let mut events = Events::new(response);
    while let Some(event) = events.next().await? {
        if event.message["id"] == id {
            return Ok(event.message);
        }
    }
    Err(format!("the stream of request {id} ended without its answer").into())
}

/// A stream of events that is being read.
pub(crate) struct Events {
    body: Incoming,
    text: String,
}

/// An event with data.
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    /// `null` where the data is no JSON.
    pub(crate) message: Value,
    pub(crate) data: String,
}

impl Events {
    pub(crate) fn new(response: Response<Incoming>) -> Self {
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event that has an id or data; `None` at the end.
    pub(crate) async fn next(&mut self) -> Outcome<Option<Event>> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = event.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                    lines.map(str::trim).map(ToOwned::to_owned).collect::<Vec<_>>()
                };
                let (id, data) = (field("id").pop(), field("data").join("\n"));
                self.text = rest.to_owned();
                if id.is_some() || !data.is_empty() {
                    let message = serde_json::from_str(&data).unwrap_or_default();
                    return Ok(Some(Event { id, message, data }));
                }
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            if let Ok(data) = frame?.into_data() {
                self.text.push_str(std::str::from_utf8(&data)?);
            }
        }
    }

    /// The next event with a message of this method.
    pub(crate) async fn method(&mut self, method: &str) -> Outcome<Value> {
        while let Some(event) = self.next().await? {
            if event.message["method"] == method {
                return Ok(event.message);
            }
        }
        Err(format!("the stream ended without {method}").into())
    }
}
