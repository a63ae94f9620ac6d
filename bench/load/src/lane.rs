//! A connection that asks one question again and again, in its era's way.
//!
//! Why here: counted and timed runs send the same bytes.
//! Invariants: one request in flight; a request is written into place before it is sent, so sending is one write.
//! Spec: 2026-07-28 basic/transports, "Streamable HTTP"; 2025-11-25 basic/transports, "Session Management".

use std::io::Write as _;

use crate::Outcome;
use crate::http::{Answer, Connection};
use crate::options::{Options, Target};
use crate::question::{FIRST_ID, LEGACY, MODERN, Question, check_handshake, initialize, initialized};

pub(crate) struct Lane {
    connection: Connection,
    /// The whole request, with the id that was asked last.
    request: Vec<u8>,
    id_offset: usize,
    /// The last answer, kept for its buffer.
    answer: Answer,
    /// The id whose answer is owed.
    owed: Option<u64>,
}

impl Lane {
    /// Connects, and in the legacy era opens a session.
    pub(crate) fn open(options: &Options, target: &Target, question: &Question) -> Outcome<Self> {
        let mut connection = Connection::open(&target.authority)?;
        let mut head = post(target);
        head.push_str(&options.header);
        if options.era.shakes_hands() {
            let session = open_session(&mut connection, &head)?;
            head.push_str(&legacy_headers(&session));
        } else {
            head.push_str(&modern_headers(question.method));
            if question.method == "tools/call" {
                head.push_str("Mcp-Name: echo\r\n");
            }
        }
        let body = question.body(FIRST_ID);
        let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
        let id_offset = head.len() + question.id_offset();
        let request = format!("{head}{body}").into_bytes();
        Ok(Self { connection, request, id_offset, answer: Answer::default(), owed: None })
    }

    pub(crate) fn ask(&mut self, id: u64) -> Outcome<()> {
        // Ids are of one length, so this only ever replaces digits by digits.
        let mut digits = self.request.get_mut(self.id_offset..).ok_or("the request has no id")?;
        write!(digits, "{id}")?;
        self.owed = Some(id);
        self.connection.write(&self.request)
    }

    /// Reads and checks the answer that is owed; gives the length of its body, or nothing if none is owed.
    pub(crate) fn settle(&mut self, question: &Question) -> Outcome<Option<usize>> {
        let Some(id) = self.read()? else { return Ok(None) };
        self.answer.expect_success()?;
        question.check(id, &self.answer.message(id)?)?;
        Ok(Some(self.answer.body.len()))
    }

    /// As [`Self::settle`], with a glance at the answer instead; `length` is that of an answer that was checked.
    pub(crate) fn settle_quickly(&mut self, question: &Question, length: usize) -> Outcome<()> {
        let Some(id) = self.read()? else { return Ok(()) };
        self.answer.expect_success()?;
        question.glance(id, &self.answer.body, length)
    }

    fn read(&mut self) -> Outcome<Option<u64>> {
        let owed = self.owed.take();
        if owed.is_some() {
            self.connection.receive(&mut self.answer)?;
        }
        Ok(owed)
    }
}

/// The lines that begin every POST.
pub(crate) fn post(target: &Target) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n",
        target.path, target.authority
    )
}

/// The 2025-11-25 handshake: `initialize`, then the notification that it is done. Gives the session's id.
pub(crate) fn open_session(connection: &mut Connection, head: &str) -> Outcome<String> {
    let mut answer = Answer::default();
    connection.send(head, &initialize().to_string())?;
    connection.receive(&mut answer)?;
    answer.expect_success()?;
    check_handshake(&answer.message(1)?)?;
    let Some(session) = answer.session.take() else { return Err("initialize opened no session".into()) };
    connection.send(&format!("{head}{}", legacy_headers(&session)), &initialized().to_string())?;
    connection.receive(&mut answer)?;
    match answer.status {
        202 => Ok(session),
        status => Err(format!("notifications/initialized was answered {status}").into()),
    }
}

pub(crate) fn legacy_headers(session: &str) -> String {
    format!("MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {session}\r\n")
}

pub(crate) fn modern_headers(method: &str) -> String {
    format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n")
}
