//! Just enough of a client: one request of the newest revision at a time, and its answer as JSON.
//!
//! Why here: what an answer means is judged by the bytes that came, and a connection that dies is an answer as well.
//! Invariants: an answer counts when all of it has come.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

/// A disk that is busy takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The owners of the server, each with a token.
pub(super) const OWNERS: [&str; 4] = ["ann", "bob", "cat", "dan"];

/// A kept-alive connection.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Connection {
    pub(super) fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), address: address.to_owned() })
    }

    /// Calls a tool; the id of the task that it became.
    pub(super) fn create(&mut self, owner: &str, tool: &str, marker: &str) -> anyhow::Result<String> {
        let answer = self.ask(owner, "tools/call", tool, json!({ "name": tool, "arguments": { "marker": marker } }))?;
        let id = answer["result"]["taskId"].as_str().filter(|_| answer["result"]["resultType"] == "task");
        Ok(id.with_context(|| format!("a call was answered {answer}"))?.to_owned())
    }

    /// Asks about a task, or tells it something: a whole answer, whatever it is.
    pub(super) fn about(&mut self, owner: &str, method: &str, id: &str, rest: Value) -> anyhow::Result<Value> {
        let mut params = rest;
        params["taskId"] = id.into();
        self.ask(owner, method, id, params)
    }

    fn ask(&mut self, owner: &str, method: &str, name: &str, mut params: Value) -> anyhow::Result<Value> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": super::trace::REVISION,
            "io.modelcontextprotocol/clientInfo": { "name": "kill-tasks", "version": "1.0.0" },
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": { "form": {} },
                "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer token-of-{owner}-{owner}-{owner}\r\n\
             Accept: application/json\r\nContent-Type: application/json\r\nMCP-Protocol-Version: {}\r\n\
             Mcp-Method: {method}\r\nMcp-Name: {name}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            super::trace::REVISION,
            body.len()
        );
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        let mut length = None;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.strip_suffix("\r\n").context("the connection ended")?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
        let mut body = vec![0; length.context("an answer without a length")?];
        self.stream.read_exact(&mut body)?;
        let answer: Value = serde_json::from_slice(&body).context("an answer that is no JSON")?;
        ensure!(answer["id"] == 1, "{method} was answered {answer}");
        Ok(answer)
    }
}
