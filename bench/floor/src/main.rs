//! The floor of the benchmarks: bare hyper that parses a request and answers the bytes a conforming server would.
//!
//! Why here: what our server costs is judged against the least that HTTP and JSON cost.
//! Invariants: checks nothing (no header, no version, no tool name); one thread; never used outside benchmarks. On pipes
//! (`MODE=stdio`) it reads lines instead. `SCHEMAS=ordinary` lists the tools that other servers list; without it the
//! list is shorter, as the kept counts have it.

#[path = "../../server/src/listed.rs"]
mod listed;

use std::borrow::Cow;
use std::convert::Infallible;
use std::env;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// As much as a pipe holds.
const PIPE: usize = 64 * 1_024;

const SERVER: Implementation<'static> = Implementation { name: "bench", version: "1.0.0" };

fn main() -> io::Result<()> {
    let tools = Arc::from(tool_list(number_from("TOOLS", 2)?)?);
    if env::var_os("MODE").is_some_and(|mode| mode == "stdio") {
        return serve_lines(&tools);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(serve(number_from("PORT", 0)?, tools))
}

/// Serves until SIGTERM. `tools` is the `tools` member of a `tools/list` result.
async fn serve(port: u16, tools: Arc<RawValue>) -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on http://{}/mcp", listener.local_addr()?)?;
    stdout.flush()?;
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = terminate.recv() => return Ok(()),
        };
        stream.set_nodelay(true)?;
        let tools = Arc::clone(&tools);
        let service = service_fn(move |request| answer(request, Arc::clone(&tools)));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        #[expect(
            clippy::disallowed_methods,
            reason = "a task per connection, ended with the runtime when `main` returns"
        )]
        tokio::spawn(async move {
            // A connection that breaks is the load's business: it counts its answers.
            let _ended = connection.await;
        });
    }
}

/// Answers each line by a line until the input ends; writes when nothing more has come.
fn serve_lines(tools: &RawValue) -> io::Result<()> {
    let mut input = BufReader::with_capacity(PIPE, io::stdin());
    let mut output = BufWriter::with_capacity(PIPE, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let answer = answer_body(&line, tools).ok_or_else(|| io::Error::other("a line was no request"))?;
        output.write_all(&answer)?;
        output.write_all(b"\n")?;
        line.clear();
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}

async fn answer(request: Request<Incoming>, tools: Arc<RawValue>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answered = match request.into_body().collect().await {
        Ok(body) => answer_body(&body.to_bytes(), &tools),
        Err(_) => None,
    };
    let Some(body) = answered else {
        let mut refusal = Response::new(Full::default());
        *refusal.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(refusal);
    };
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// The answer to `tools/call` (an echo of its `text`) or, for parameters that call nothing, to `tools/list`.
fn answer_body(request: &[u8], tools: &RawValue) -> Option<Bytes> {
    let request: Call<'_> = serde_json::from_slice(request).ok()?;
    let server_info = Meta { server_info: SERVER };
    let result = match request.params.arguments {
        Some(arguments) if request.method == "tools/call" => Answer::Call {
            result_type: "complete",
            content: [Text { kind: "text", text: arguments.text }],
            meta: server_info,
        },
        _ => Answer::List { result_type: "complete", tools, ttl_ms: 0, cache_scope: "private", meta: server_info },
    };
    // Room for an answer that needs no escapes, so that it is allocated once.
    let room = 256
        + match &result {
            Answer::Call { content: [text], .. } => text.text.len(),
            Answer::List { tools, .. } => tools.get().len(),
        };
    let mut body = Vec::with_capacity(room);
    serde_json::to_writer(&mut body, &Envelope { jsonrpc: "2.0", id: request.id, result }).ok()?;
    Some(Bytes::from(body))
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: Answer<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    #[serde(rename_all = "camelCase")]
    Call {
        result_type: &'static str,
        content: [Text<'a>; 1],
        #[serde(rename = "_meta")]
        meta: Meta,
    },
    #[serde(rename_all = "camelCase")]
    List {
        result_type: &'static str,
        tools: &'a RawValue,
        ttl_ms: u32,
        cache_scope: &'static str,
        #[serde(rename = "_meta")]
        meta: Meta,
    },
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Implementation<'static>,
}

#[derive(Serialize)]
struct Implementation<'a> {
    name: &'a str,
    version: &'a str,
}

/// The `tools` member of a `tools/list` result, written once: `echo` and others, of the same shape or ordinary ones.
fn tool_list(count: usize) -> io::Result<Box<RawValue>> {
    let is_ordinary = env::var_os("SCHEMAS").is_some_and(|schemas| schemas == "ordinary");
    let tools: Vec<_> = if is_ordinary {
        let called = ["echo", "add"].map(echo_like);
        let listed = listed::listed(count.saturating_sub(called.len())).map(|listed::Listed { name, description, schema }| {
            json!({ "name": name, "description": description, "inputSchema": schema })
        });
        called.into_iter().chain(listed).collect()
    } else {
        let names = (0..count).map(|index| if index == 0 { "echo".to_owned() } else { format!("tool-{index:03}") });
        names.map(|name| echo_like(&name)).collect()
    };
    Ok(serde_json::value::to_raw_value(&tools)?)
}

fn echo_like(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Answers the text it was given.",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "text": { "type": "string", "description": "The text to answer." } },
            "required": ["text"],
        },
    })
}

fn number_from<N: std::str::FromStr>(variable: &str, otherwise: N) -> io::Result<N> {
    let Ok(text) = env::var(variable) else { return Ok(otherwise) };
    text.parse().map_err(|_| io::Error::other(format!("{variable} is no number it can take: {text}")))
}
