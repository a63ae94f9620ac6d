//! The program as it is run: with a collector that the environment names, asked over HTTP, ended by SIGTERM.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const TRACE: [u8; 16] = *b"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36";
/// How long anything may take before the test has failed.
const LONG: Duration = Duration::from_secs(60);

/// The caller's span, in its own words.
fn parent(span: u8, flags: u8) -> String {
    format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{span:016x}-{flags:02x}")
}

#[test]
fn spans_reach_the_collector_within_the_trace_of_their_caller() -> Outcome<()> {
    let collector = TcpListener::bind("127.0.0.1:0")?;
    let server = Server::start(&format!("http://{}", collector.local_addr()?))?;
    #[expect(clippy::disallowed_methods, reason = "joined below, once the program has ended")]
    let collected = thread::spawn(move || collect(&collector).map_err(|error| error.to_string()));
    server.call("said", json!({ "traceparent": parent(1, 1), "tracestate": "a=1" }), "")?;
    server.call("carried", json!({}), &format!("traceparent: {}\r\n", parent(2, 1)))?;
    server.call("alone", json!({}), "")?;
    server.call("unsampled", json!({ "traceparent": parent(3, 0) }), "")?;
    server.end()?;
    let (service, spans) = collected.join().map_err(|_| "the collector panicked")??;
    assert_eq!(service, "StringValue(\"greeter\")");

    let requests: Vec<&Span> = spans.iter().filter(|span| span.name == "tools/call greet").collect();
    let [said, carried, alone] = requests[..] else {
        return Err(format!("{} requests were sent", requests.len()).into());
    };
    for (request, caller) in [(said, 1), (carried, 2)] {
        assert_eq!(request.trace_id, TRACE, "it is part of its caller's trace");
        assert_eq!(request.parent_span_id, [0, 0, 0, 0, 0, 0, 0, caller], "and its caller's span its parent");
    }
    assert_eq!(said.trace_state, "a=1");
    assert_ne!(alone.trace_id, TRACE);
    assert_eq!((alone.trace_id.len(), alone.kind), (16, 2), "a trace of its own, of a server");
    for request in requests {
        let child = |parent: &Span, name: &str| {
            let mut children = spans.iter().filter(|span| span.parent_span_id == parent.span_id && span.name == name);
            children.next().cloned().ok_or_else(|| format!("no {name} within {}", parent.name))
        };
        let words = child(&child(request, "mcp.call")?, "choose words")?;
        assert_eq!(words.trace_id, request.trace_id);
    }
    Ok(())
}

/// The program, ended with its test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(collector: &str) -> Outcome<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_otlp"));
        command.arg("127.0.0.1:0").env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
        // Nothing is sent before the end: what arrives was flushed.
        command.env("OTEL_BSP_SCHEDULE_DELAY", "3600000").env("NO_PROXY", "127.0.0.1");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://").and_then(|url| url.strip_suffix("/mcp"));
        let address = address.ok_or_else(|| format!("it said: {line}"))?.to_owned();
        Ok(Self { child, address })
    }

    /// Calls the tool, with more of `_meta` and more headers.
    fn call(&self, name: &str, mut meta: Value, headers: &str) -> Outcome<()> {
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let params = json!({ "name": "greet", "arguments": { "name": name }, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let mut connection = TcpStream::connect(&self.address)?;
        connection.set_read_timeout(Some(LONG))?;
        write!(
            connection,
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
             mcp-name: greet\r\n{headers}content-length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        if answer.contains(&format!("Hello, {name}!")) { Ok(()) } else { Err(answer.into()) }
    }

    fn end(mut self) -> Outcome<()> {
        let asked =
            Command::new("sh").args(["-c", "kill -TERM \"$1\"", "kill", &self.child.id().to_string()]).status()?;
        let status = self.child.wait()?;
        if asked.success() && status.success() { Ok(()) } else { Err(format!("it ended with {status}").into()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a server that has ended.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Takes one export: the name of the service, and its spans in the order of their beginning.
fn collect(collector: &TcpListener) -> Outcome<(String, Vec<Span>)> {
    let (connection, _) = collector.accept()?;
    connection.set_read_timeout(Some(LONG))?;
    let mut reader = BufReader::new(connection);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    assert_eq!(first.trim_end(), "POST /v1/traces HTTP/1.1");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    reader
        .get_mut()
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")?;
    let export = ExportTraceServiceRequest::decode(&body[..])?;
    let mut spans = Vec::new();
    let mut service = String::new();
    for sent in export.resource_spans {
        let attributes = sent.resource.unwrap_or_default().attributes;
        let named = attributes.into_iter().find(|attribute| attribute.key == "service.name");
        service =
            named.and_then(|attribute| attribute.value?.value).map(|value| format!("{value:?}")).unwrap_or_default();
        spans.extend(sent.scope_spans.into_iter().flat_map(|scope| scope.spans));
    }
    spans.sort_by_key(|span| span.start_time_unix_nano);
    Ok((service, spans))
}
