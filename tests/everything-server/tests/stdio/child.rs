//! A server as a child process, and what a client does with one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A child that is killed with the test, should the test fail.
pub(crate) struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    log: String,
}

impl Child {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_with(program, arguments, Stdio::piped())
    }

    /// A child with this input.
    pub(crate) fn start_with(program: &str, arguments: &[&str], input: Stdio) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().map(BufReader::new));
        Self { process, input, output, log: String::new() }
    }

    /// A child with its handshake done.
    pub(crate) fn connected(program: &str) -> Self {
        let mut child = Self::start(program, &[]);
        child.shake_hands();
        child
    }

    pub(crate) fn shake_hands(&mut self) {
        self.say(&initialize());
        assert_eq!(self.hear()["id"], "hello");
    }

    pub(crate) fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    pub(crate) fn take_input(&mut self) -> ChildStdin {
        self.input.take().unwrap()
    }

    pub(crate) fn end_input(&mut self) {
        drop(self.take_input());
    }

    pub(crate) fn stop_reading(&mut self) {
        self.output = None;
    }

    pub(crate) fn hear_line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    pub(crate) fn hear(&mut self) -> Value {
        serde_json::from_str(&self.hear_line()).unwrap()
    }

    pub(crate) fn hear_all(&mut self) -> Vec<Value> {
        let lines = self.output.take().unwrap().lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end of the process.
    pub(crate) fn ends_within(&mut self, limit: Duration, well: bool) {
        #[expect(clippy::disallowed_methods, reason = "a process runs in real time")]
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < limit, "it still runs after {limit:?}");
            std::thread::park_timeout(Duration::from_millis(10));
        };
        // Whatever the child has started has to have ended too.
        self.process.stderr.take().unwrap().read_to_string(&mut self.log).unwrap();
        assert!(started.elapsed() < limit, "what it started ran longer than {limit:?}");
        assert_eq!(status.success(), well, "{status}: {}", self.log);
    }

    /// What the child wrote to stderr before it ended.
    pub(crate) fn log(&self) -> &str {
        &self.log
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "test", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
}

pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}
