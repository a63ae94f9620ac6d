//! A server with tools that take their time, and a client that speaks to it in lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcp_core::{Connection, Form, HandlerError, Limits, RequestContext, Server, ServerBuilder, Tool};
use mcp_stdio::{MemoryPipe, PipeReader, PipeWriter, pair};
use mcp_wire::{MessageReader as _, MessageWriter as _, Transport as _, TransportError};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What the tools of a test have done.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    started: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
    cancelled: AtomicUsize,
}

impl Seen {
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub(crate) fn most_at_a_time(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Amount {
    amount: usize,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// A server with a tool for each way of taking time.
pub(crate) fn builder(seen: &Arc<Seen>) -> ServerBuilder {
    Server::builder("test", "1.0.0")
        .tool(Tool::typed("sleep", {
            // Sleeps this many milliseconds; notices its cancellation.
            let seen = Arc::clone(seen);
            move |milliseconds: Amount, context: RequestContext| {
                let seen = Arc::clone(&seen);
                async move {
                    seen.started.fetch_add(1, Ordering::SeqCst);
                    let running = seen.running.fetch_add(1, Ordering::SeqCst) + 1;
                    seen.most.fetch_max(running, Ordering::SeqCst);
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(milliseconds.amount as u64)) => {}
                        () = context.cancelled() => {
                            seen.cancelled.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                    seen.running.fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, HandlerError>("slept".to_owned())
                }
            }
        }))
        .tool(Tool::plain("text", |bytes: Amount| Ok::<_, HandlerError>("x".repeat(bytes.amount))))
        .tool(Tool::typed("count", |steps: Amount, context: RequestContext| async move {
            for step in (1..=steps.amount).take_while(|_| !context.is_cancelled()) {
                context.progress(step as f64, None, None);
                tokio::task::yield_now().await;
            }
            Ok::<_, HandlerError>("counted".to_owned())
        }))
        .tool(Tool::typed("greet", |_: Amount, context: RequestContext| async move {
            let name = context.ask("name", Form::<Name>::new("Who are you?"))?.accepted();
            Ok::<_, HandlerError>(name.map_or_else(|| "Hello!".to_owned(), |form| format!("Hello, {}!", form.name)))
        }))
        .tool(Tool::typed("grow", |_: Amount, context: RequestContext| async move {
            let tool = Tool::plain("grown", |_: Amount| Ok::<_, HandlerError>(String::new()));
            context.server().add_tool(tool).map_err(HandlerError::internal)?;
            Ok::<_, HandlerError>("grown".to_owned())
        }))
}

pub(crate) fn server(seen: &Arc<Seen>) -> Server {
    builder(seen).build().unwrap()
}

pub(crate) fn small_server(seen: &Arc<Seen>, running: usize, waiting: usize) -> Server {
    let mut limits = Limits::default();
    limits.in_flight_per_peer = running;
    limits.waiting_per_peer = waiting;
    builder(seen).limits(limits).build().unwrap()
}

/// A client that speaks in lines, and the server's end of the pipe at work.
pub(crate) struct Client {
    reader: PipeReader<ReadHalf<DuplexStream>>,
    writer: Option<PipeWriter<WriteHalf<DuplexStream>>>,
    serving: JoinHandle<Result<(), TransportError>>,
}

impl Client {
    pub(crate) fn connect(server: &Server) -> Self {
        Self::with_pipe(server, 64 * 1024)
    }

    /// Over a pipe that holds this many bytes.
    pub(crate) fn with_pipe(server: &Server, capacity: usize) -> Self {
        let (near, far) = pair(capacity);
        Self::over(server, near, far)
    }

    pub(crate) fn over(server: &Server, near: MemoryPipe, far: MemoryPipe) -> Self {
        #[expect(clippy::disallowed_methods, reason = "ends with the connection that the test ends")]
        let serving = tokio::spawn(Connection::new(server.clone()).serve(far));
        let (reader, writer) = near.split();
        Self { reader, writer: Some(writer), serving }
    }

    /// As [`Self::connect`], with the handshake for a revision done.
    pub(crate) async fn legacy(server: &Server, revision: &str) -> Self {
        let mut client = Self::connect(server);
        client.shake_hands(revision).await;
        client
    }

    pub(crate) async fn shake_hands(&mut self, revision: &str) {
        self.say(initialize(revision)).await;
        assert_eq!(self.hear().await["result"]["protocolVersion"], revision);
        self.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.say_line(&message.to_string()).await;
    }

    pub(crate) async fn say_line(&mut self, line: &str) {
        self.say_bytes(line.as_bytes()).await;
    }

    pub(crate) async fn say_bytes(&mut self, line: &[u8]) {
        let writer = self.writer.as_mut().unwrap();
        writer.send(Bytes::copy_from_slice(line)).await.unwrap();
        writer.flush().await.unwrap();
    }

    pub(crate) async fn hear_line(&mut self) -> Option<Bytes> {
        self.reader.next().await.unwrap()
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let line = self.hear_line().await.expect("the server has ended the connection");
        serde_json::from_slice(&line).expect("a line is JSON")
    }

    /// Everything up to the end of the connection.
    pub(crate) async fn hear_all(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(line) = self.hear_line().await {
            all.push(serde_json::from_slice(&line).expect("a line is JSON"));
        }
        all
    }

    /// Nothing is on its way: a ping is answered first.
    pub(crate) async fn hear_nothing(&mut self) {
        self.say(json!({"jsonrpc": "2.0", "id": "nothing else", "method": "ping"})).await;
        assert_eq!(self.hear().await["id"], "nothing else");
    }

    /// Closes the client's writing side.
    pub(crate) async fn end(&mut self) {
        self.writer.take().unwrap().close().await.unwrap();
    }

    /// How serving ended, and how long that took from here on.
    pub(crate) async fn served(self) -> (Result<(), TransportError>, Duration) {
        let started = Instant::now();
        let outcome = self.serving.await.unwrap();
        (outcome, started.elapsed())
    }

    /// Goes away, both sides at once.
    pub(crate) fn vanish(self) -> JoinHandle<Result<(), TransportError>> {
        self.serving
    }
}

pub(crate) fn initialize(revision: &str) -> Value {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
}

/// A tool call of a session.
pub(crate) fn call(id: impl Into<Value>, tool: &str, amount: usize) -> Value {
    let params = json!({"name": tool, "arguments": {"amount": amount}});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params})
}

/// The same message with all that a modern one needs.
pub(crate) fn modern(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    message
}

pub(crate) fn cancel(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id.into()}})
}

pub(crate) fn listen(id: impl Into<Value>) -> Value {
    let params = json!({"notifications": {"toolsListChanged": true}});
    modern(json!({"jsonrpc": "2.0", "id": id.into(), "method": "subscriptions/listen", "params": params}))
}

/// Lets everything run that can.
pub(crate) async fn settle() {
    // On a paused clock this ends when nobody has anything to do any more.
    tokio::time::sleep(Duration::from_millis(1)).await;
}
