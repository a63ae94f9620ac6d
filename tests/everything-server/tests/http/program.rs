//! The sample server as a child process, and a client of few words.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const PROGRAM: &str = env!("CARGO_BIN_EXE_everything-server");

fn command(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env_remove("RUST_LOG").envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Exit status, stdout and stderr of a program that ends by itself.
pub(crate) fn finished(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let output = command(arguments, environment).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A certificate for `localhost` and its key.
pub(crate) fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// A program that runs, killed with the test should it fail.
pub(crate) struct Program {
    process: std::process::Child,
    place: String,
    output: Receiver<String>,
    log: Receiver<String>,
    read: String,
}

impl Program {
    /// Starts it and waits for its line.
    pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut process = command(arguments, environment).spawn().unwrap();
        let output = lines(process.stdout.take().unwrap());
        let log = lines(process.stderr.take().unwrap());
        let Ok(first) = output.recv() else {
            let log: Vec<_> = log.iter().collect();
            panic!("it said nothing: {log:?}");
        };
        let place = first.strip_prefix("listening on ").unwrap().trim().to_owned();
        Self { process, place, output, log, read: String::new() }
    }

    /// Where it says that it listens.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn address(&self) -> String {
        self.place.split('/').nth(2).unwrap().to_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until the log has a line with this in it.
    pub(crate) fn logs(&mut self, text: &str, limit: Duration) {
        while !self.read.contains(text) {
            match self.log.recv_timeout(limit) {
                Ok(line) => self.read.push_str(&line),
                Err(_) => panic!("{text:?} is not logged: {}", self.read),
            }
        }
    }

    /// Waits for its end and returns what it logged.
    pub(crate) fn ended_within(&mut self, limit: Duration, well: bool) -> String {
        self.ended(limit, well).1
    }

    /// As [`Self::ended_within`], with what it wrote to stdout after its line.
    pub(crate) fn ended(&mut self, limit: Duration, well: bool) -> (String, String) {
        // Both end with the process.
        while let Ok(line) = self.log.recv_timeout(limit) {
            self.read.push_str(&line);
        }
        let output = self.output.iter().collect();
        let status = self.process.wait().unwrap();
        assert_eq!(status.success(), well, "{status}: {}", self.read);
        (output, self.read.clone())
    }

    /// Sends a request and returns status and body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{body}").unwrap();
        if body.is_empty() {
            stream.write_all(b"\r\n").unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    /// Calls a tool, modern.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> (u16, String) {
        self.ask("POST", "/mcp", &post(tool, arguments))
    }

    /// Calls a tool and reads up to the first event with this in it.
    pub(crate) fn begin_call(&self, tool: &str, arguments: &Value, until: &str) -> Waiting {
        let mut stream = self.connect();
        write!(stream, "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{}", post(tool, arguments)).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while !line.contains(until) {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "the answer ends without {until}");
        }
        Waiting(reader)
    }

    /// A connection that is kept between requests.
    pub(crate) fn kept(&self) -> Kept {
        Kept(BufReader::new(self.connect()))
    }

    /// The memory that it has, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address()).unwrap()
    }

    /// Whether it shows this certificate, and no other.
    pub(crate) fn shows(&self, certificate: &str) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        let mut stream = StreamOwned::new(connection, self.connect());
        let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut head = [0; 12];
        asked.and_then(|()| stream.read_exact(&mut head)).is_ok_and(|()| head.ends_with(b" 200"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A connection that is kept between requests.
pub(crate) struct Kept(BufReader<TcpStream>);

impl Kept {
    /// Sends a request and returns the answer's status, and its session if it names one.
    pub(crate) fn ask(&mut self, method: &str, session: Option<&str>, body: &str) -> (u16, Option<String>) {
        let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let length = body.len();
        let head = "Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream";
        let request = format!("{method} /mcp HTTP/1.1\r\n{head}\r\n{session}Content-Length: {length}\r\n\r\n{body}");
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut status, mut opened, mut left) = (None, None, 0);
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the connection is closed");
            if line.trim().is_empty() {
                break;
            }
            status = status.or_else(|| line.split(' ').nth(1)?.parse().ok());
            let (name, value) = line.split_once(':').unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => left = value.trim().parse().unwrap(),
                "mcp-session-id" => opened = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; left];
        self.0.read_exact(&mut body).unwrap();
        (status.unwrap(), opened)
    }
}

/// A call under way.
pub(crate) struct Waiting(BufReader<TcpStream>);

impl Waiting {
    /// What is said until the connection ends, however it ends.
    pub(crate) fn rest(mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// The lines of a stream, read by a thread that ends with it.
fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    let reading = std::thread::Builder::new().spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(format!("{line}\n")).is_err() {
                break;
            }
        }
    });
    drop(reading.unwrap());
    receiver
}

/// The rest of a head, and a body.
fn post(tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let length = body.len();
    format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}
