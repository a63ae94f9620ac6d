//! Just enough of an HTTP/1.1 client: sends a POST, reads one answer, chunked or not, JSON or event stream.
//!
//! Why here: no library, so that what goes over the wire does not change under the figures.
//! Invariants: each request is one write; a read that waits longer than `PATIENCE` fails.
//! Spec: RFC 9112, "Message Body Length"; WHATWG HTML, "Server-sent events".

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::Outcome;

/// Servers under an instrument are some fifty times slower than by themselves.
const PATIENCE: Duration = Duration::from_secs(120);

/// A kept-alive connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

/// An answer as it came, its body unchunked.
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
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends `head`, whose lines all end in CRLF, the length, and the body.
    pub(crate) fn send(&mut self, head: &str, body: &str) -> Outcome<()> {
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    /// Reads one whole answer.
    pub(crate) fn receive(&mut self) -> Outcome<Answer> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).unwrap_or_default().parse()?;
        let mut answer = Answer { status, session: None, body: Vec::new(), is_event_stream: false };
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or("a header without a colon was answered")?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse()?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "content-type" => answer.is_event_stream = value.starts_with("text/event-stream"),
                "mcp-session-id" => answer.session = Some(value.to_owned()),
                _ => {}
            }
        }
        while chunked {
            let size = usize::from_str_radix(&self.line()?, 16)?;
            self.read_into(&mut answer.body, size)?;
            self.line()?;
            chunked = size > 0;
        }
        self.read_into(&mut answer.body, length)?;
        Ok(answer)
    }

    fn read_into(&mut self, body: &mut Vec<u8>, length: usize) -> Outcome<()> {
        let read = self.stream.by_ref().take(u64::try_from(length)?).read_to_end(body)?;
        if read == length { Ok(()) } else { Err("the server closed the connection inside a body".into()) }
    }

    /// One line, without its CRLF.
    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(text) => Ok(text.to_owned()),
            None => Err("the server closed the connection".into()),
        }
    }
}

impl Answer {
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
        connection.receive()
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
