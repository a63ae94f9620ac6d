//! Just enough of an HTTP/1.1 client: sends a POST, reads one answer, chunked or not, JSON or event stream.
//!
//! Why here: no library, so that what goes over the wire does not change under the figures.
//! Invariants: each request is one write; a read that waits longer than `PATIENCE` fails.
//! Spec: RFC 9112, "Message Body Length"; WHATWG HTML, "Server-sent events".

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::Outcome;

/// Servers under an instrument are some fifty times slower than by themselves.
const PATIENCE: Duration = Duration::from_secs(120);

/// A kept-alive connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    /// The line that was read last.
    line: Vec<u8>,
}

/// An answer as it came, its body unchunked.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
    is_event_stream: bool,
}

impl Connection {
    pub(crate) fn open(authority: &str) -> Outcome<Self> {
        let stream = TcpStream::connect(authority)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), line: Vec::new() })
    }

    /// Sends `head`, whose lines all end in CRLF, the length, and the body.
    pub(crate) fn send(&mut self, head: &str, body: &str) -> Outcome<()> {
        self.write(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
    }

    /// Sends a whole request.
    pub(crate) fn write(&mut self, request: &[u8]) -> Outcome<()> {
        Ok(self.stream.get_mut().write_all(request)?)
    }

    /// Reads one whole answer in place of the one in `answer`.
    pub(crate) fn receive(&mut self, answer: &mut Answer) -> Outcome<()> {
        let (length, mut chunked) = self.receive_head(answer)?;
        while chunked {
            let size = usize::from_str_radix(std::str::from_utf8(self.line()?)?, 16)?;
            self.read_into(&mut answer.body, size)?;
            self.line()?;
            chunked = size > 0;
        }
        self.read_into(&mut answer.body, length)
    }

    /// Reads the head of an answer whose body stays open: a stream.
    pub(crate) fn receive_opening(&mut self, answer: &mut Answer) -> Outcome<()> {
        let (_, chunked) = self.receive_head(answer)?;
        answer.expect_success()?;
        if chunked { Ok(()) } else { Err("no stream was answered".into()) }
    }

    /// Whether nothing has come and the other side has not closed.
    pub(crate) fn is_open(&self) -> Outcome<bool> {
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true)?;
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false)?;
        Ok(match peeked {
            Ok(bytes) => bytes > 0,
            Err(problem) => problem.kind() == ErrorKind::WouldBlock,
        })
    }

    /// Reads to the end of the head; gives the body's length and whether it is chunked.
    fn receive_head(&mut self, answer: &mut Answer) -> Outcome<(usize, bool)> {
        answer.body.clear();
        answer.session = None;
        answer.is_event_stream = false;
        let status = self.line()?.splitn(3, |byte| *byte == b' ').nth(1).unwrap_or_default();
        answer.status = std::str::from_utf8(status)?.parse()?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = std::str::from_utf8(self.line()?)?;
            if line.is_empty() {
                return Ok((length, chunked));
            }
            let (name, value) = line.split_once(':').ok_or("a header without a colon was answered")?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse()?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("content-type") {
                answer.is_event_stream = value.starts_with("text/event-stream");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                answer.session = Some(value.to_owned());
            }
        }
    }

    fn read_into(&mut self, body: &mut Vec<u8>, length: usize) -> Outcome<()> {
        let read = self.stream.by_ref().take(u64::try_from(length)?).read_to_end(body)?;
        if read == length { Ok(()) } else { Err("the server closed the connection inside a body".into()) }
    }

    /// One line, without its CRLF.
    fn line(&mut self) -> Outcome<&[u8]> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        match self.line.strip_suffix(b"\r\n") {
            Some(text) => Ok(text),
            None => Err("the server closed the connection".into()),
        }
    }
}

impl Answer {
    pub(crate) fn expect_success(&self) -> Outcome<()> {
        if self.status == 200 {
            return Ok(());
        }
        let shown: String = String::from_utf8_lossy(&self.body).chars().take(2_000).collect();
        Err(format!("status {} was answered: {shown}", self.status).into())
    }

    /// The message with this id: the whole body, or one of an event stream's events.
    pub(crate) fn message(&self, id: u64) -> Outcome<Value> {
        let body = std::str::from_utf8(&self.body)?;
        if !self.is_event_stream {
            return serde_json::from_str(body)
                .map_err(|_| format!("no JSON was answered: {} {body}", self.status).into());
        }
        let events = body
            .split("\n\n")
            .map(|event| event.lines().filter_map(|line| line.strip_prefix("data:")).collect::<Vec<_>>().join("\n"));
        events
            .filter_map(|data| serde_json::from_str::<Value>(&data).ok())
            .find(|message| message["id"] == id)
            .ok_or_else(|| format!("no event answers request {id}").into())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// What the client reads when the server sends these bytes and closes.
    fn received(sent: &str) -> Outcome<Answer> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = Connection::open(&listener.local_addr().unwrap().to_string()).unwrap();
        listener.accept().unwrap().0.write_all(sent.as_bytes()).unwrap();
        let mut answer = Answer::default();
        connection.receive(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn a_json_body_is_read_by_its_length() {
        let answer = received("HTTP/1.1 200 OK\r\ncontent-length: 8\r\nMcp-Session-Id: s1\r\n\r\n{\"id\":7}").unwrap();
        assert_eq!((answer.status, answer.session.as_deref()), (200, Some("s1")));
        assert_eq!(answer.message(7).unwrap()["id"], 7);
    }

    #[test]
    fn a_chunked_event_stream_is_searched_for_the_answer() {
        let answer = received(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
             a\r\nid: 1\ndata\r\n1b\r\n: \n\nevent: message\ndata: {\"\r\n8\r\nid\":7}\n\n\r\n0\r\n\r\n",
        )
        .unwrap();
        assert_eq!(answer.message(7).unwrap()["id"], 7);
        assert!(answer.message(8).is_err());
    }

    #[test]
    fn a_body_that_ends_early_is_refused() {
        assert!(received("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"id\":7}").is_err());
        assert!(received("HTTP/1.1 200 OK\r\ncontent-le").is_err());
    }
}
