//! The load of the benchmarks: sends like requests over kept-alive connections and checks every answer.
//!
//! Why here: a count per request is worth something only when each answer was seen and right.
//! Invariants: one request in flight per connection; an answer counts only with status 200, its own id and its text.
//! Spec: 2026-07-28 basic/transports, "Streamable HTTP"; 2025-11-25 basic/transports, "Session Management".

mod http;

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;

use http::Connection;
use serde_json::{Value, json};

const USAGE: &str = "\
usage: bench-load http://HOST:PORT/PATH [OPTIONS]
  --requests N         requests to send and check (default 1000)
  --connections N      connections, each with one request in flight (default 1)
  --text BYTES         length of the text to echo (default 64)
  --list TOOLS         tools/list instead of tools/call; the answer must hold so many tools
  --era modern|legacy  revision 2026-07-28, or 2025-11-25 with a session per connection (default modern)
Prints how many answers were right and the bytes of the last one's body.";

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
/// Ids start here so that all have the same number of digits, which keeps the requests of one length.
const FIRST_ID: u64 = 1_000_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let finished = Options::parse(&arguments).and_then(|options| run(&options));
    let told = match &finished {
        Ok(summary) => writeln!(io::stdout(), "{summary}"),
        Err(problem) => writeln!(io::stderr(), "bench-load: {problem}"),
    };
    if finished.is_ok() && told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(options: &Options) -> Outcome<String> {
    let question = Question::of(options);
    let mut lanes = Vec::new();
    for _ in 0..options.connections.min(options.requests) {
        lanes.push(Lane::open(options, &question)?);
    }
    let mut body_bytes = 0;
    // In turn: the answer awaited is always the oldest, so with several connections the server never idles.
    for index in 0..options.requests {
        let lane_index = index % lanes.len();
        let Some(lane) = lanes.get_mut(lane_index) else { break };
        if let Some(length) = lane.settle(&question)? {
            body_bytes = length;
        }
        lane.ask(&question, FIRST_ID + u64::try_from(index)?)?;
    }
    for lane in &mut lanes {
        if let Some(length) = lane.settle(&question)? {
            body_bytes = length;
        }
    }
    Ok(format!("answers {} body_bytes {body_bytes}", options.requests))
}

/// A connection, the head that goes before each of its requests, and the id whose answer it owes.
struct Lane {
    connection: Connection,
    head: String,
    owed: Option<u64>,
}

impl Lane {
    /// Connects, and in the legacy era opens a session.
    fn open(options: &Options, question: &Question) -> Outcome<Self> {
        let mut connection = Connection::open(&options.authority)?;
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n",
            options.path, options.authority
        );
        match options.era {
            Era::Modern => {
                head.push_str(&format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {}\r\n", question.method));
                if question.method == "tools/call" {
                    head.push_str("Mcp-Name: echo\r\n");
                }
            }
            Era::Legacy => {
                let session = open_session(&mut connection, &head)?;
                head.push_str(&legacy_headers(&session));
            }
        }
        Ok(Self { connection, head, owed: None })
    }

    fn ask(&mut self, question: &Question, id: u64) -> Outcome<()> {
        self.owed = Some(id);
        self.connection.send(&self.head, &question.body(id))
    }

    /// Reads and checks the answer that is owed; gives the length of its body, or nothing if none is owed.
    fn settle(&mut self, question: &Question) -> Outcome<Option<usize>> {
        let Some(id) = self.owed.take() else { return Ok(None) };
        let answer = self.connection.receive()?;
        question.check(id, answer.status, &answer.message(id)?)?;
        Ok(Some(answer.body.len()))
    }
}

/// The 2025-11-25 handshake: `initialize`, then the notification that it is done. Gives the session's id.
fn open_session(connection: &mut Connection, head: &str) -> Outcome<String> {
    let initialize = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": { "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client_info() },
    });
    connection.send(head, &initialize.to_string())?;
    let answer = connection.receive()?;
    let agreed = answer.message(1)?;
    if answer.status != 200 || agreed["result"]["protocolVersion"] != LEGACY {
        return Err(format!("initialize was answered {}: {agreed}", answer.status).into());
    }
    let Some(session) = answer.session else { return Err("initialize opened no session".into()) };
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    connection.send(&format!("{head}{}", legacy_headers(&session)), &initialized.to_string())?;
    match connection.receive()?.status {
        202 => Ok(session),
        status => Err(format!("notifications/initialized was answered {status}").into()),
    }
}

fn legacy_headers(session: &str) -> String {
    format!("MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {session}\r\n")
}

fn client_info() -> Value {
    json!({ "name": "bench-load", "version": "1.0.0" })
}

/// What is asked again and again, and what must come back.
struct Question {
    method: &'static str,
    /// The request's JSON before and after its id.
    body: (String, String),
    text: String,
    tools: Option<usize>,
}

impl Question {
    fn of(options: &Options) -> Self {
        let method = if options.tools.is_some() { "tools/list" } else { "tools/call" };
        let text: String = ('a'..='z').cycle().take(options.text).collect();
        let mut members = Vec::new();
        if options.era == Era::Modern {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": client_info(),
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            members.push(format!(r#""_meta":{meta}"#));
        }
        if options.tools.is_none() {
            members.push(format!(r#""name":"echo","arguments":{{"text":"{text}"}}"#));
        }
        let before = r#"{"jsonrpc":"2.0","id":"#.to_owned();
        let after = format!(r#","method":"{method}","params":{{{}}}}}"#, members.join(","));
        Self { method, body: (before, after), text, tools: options.tools }
    }

    fn body(&self, id: u64) -> String {
        format!("{}{id}{}", self.body.0, self.body.1)
    }

    fn check(&self, id: u64, status: u16, answer: &Value) -> Outcome<()> {
        let result = &answer["result"];
        let right = match self.tools {
            Some(count) => result["tools"].as_array().is_some_and(|tools| tools.len() == count),
            None => result["content"][0]["text"] == self.text.as_str(),
        };
        if status == 200 && answer["id"] == id && right {
            return Ok(());
        }
        let shown: String = answer.to_string().chars().take(2_000).collect();
        Err(format!("request {id} was answered {status}: {shown}").into())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Era {
    Modern,
    Legacy,
}

struct Options {
    authority: String,
    path: String,
    requests: usize,
    connections: usize,
    text: usize,
    tools: Option<usize>,
    era: Era,
}

impl Options {
    fn parse(arguments: &[String]) -> Outcome<Self> {
        let Some((url, mut rest)) = arguments.split_first() else { return Err(USAGE.into()) };
        let Some((authority, path)) = url.strip_prefix("http://").and_then(|url| url.split_once('/')) else {
            return Err(USAGE.into());
        };
        let mut options = Self {
            authority: authority.to_owned(),
            path: format!("/{path}"),
            requests: 1_000,
            connections: 1,
            text: 64,
            tools: None,
            era: Era::Modern,
        };
        while let [name, value, after @ ..] = rest {
            match (name.as_str(), value.as_str()) {
                ("--requests", number) => options.requests = number.parse()?,
                ("--connections", number) => options.connections = number.parse()?,
                ("--text", number) => options.text = number.parse()?,
                ("--list", number) => options.tools = Some(number.parse()?),
                ("--era", "modern") => options.era = Era::Modern,
                ("--era", "legacy") => options.era = Era::Legacy,
                _ => return Err(USAGE.into()),
            }
            rest = after;
        }
        if !rest.is_empty() || options.requests == 0 || options.connections == 0 {
            return Err(USAGE.into());
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(rest: &[&str]) -> Outcome<Options> {
        let arguments: Vec<String> =
            ["http://127.0.0.1:1/mcp"].iter().chain(rest).map(|&word| word.to_owned()).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn the_body_is_the_json_that_its_era_asks_for() {
        for (era, modern) in [("modern", true), ("legacy", false)] {
            let question = Question::of(&options(&["--era", era, "--text", "3"]).unwrap());
            let body: Value = serde_json::from_str(&question.body(7)).unwrap();
            assert_eq!(body["id"], 7);
            assert_eq!(body["params"]["arguments"]["text"], "abc");
            assert_eq!(body["params"].get("_meta").is_some(), modern);
        }
    }

    #[test]
    fn an_answer_counts_only_with_its_status_id_and_text() {
        let question = Question::of(&options(&["--text", "3"]).unwrap());
        let answer = |text| json!({ "id": 7, "result": { "content": [{ "type": "text", "text": text }] } });
        assert!(question.check(7, 200, &answer("abc")).is_ok());
        assert!(question.check(8, 200, &answer("abc")).is_err());
        assert!(question.check(7, 400, &answer("abc")).is_err());
        assert!(question.check(7, 200, &answer("abd")).is_err());
    }

    #[test]
    fn a_list_counts_only_with_its_number_of_tools() {
        let question = Question::of(&options(&["--list", "2"]).unwrap());
        assert!(question.check(7, 200, &json!({ "id": 7, "result": { "tools": [{}, {}] } })).is_ok());
        assert!(question.check(7, 200, &json!({ "id": 7, "result": { "tools": [{}] } })).is_err());
    }

    #[test]
    fn an_option_without_its_value_is_refused() {
        assert!(options(&["--text"]).is_err());
        assert!(options(&["--requests", "0"]).is_err());
    }
}
