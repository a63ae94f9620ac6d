//! Opens many idle things and reads what memory the server took for them.
//!
//! Why here: what a server keeps for a client that says nothing decides how many it can have.
//! Invariants: memory is read after the answer to the last opening; what was opened is counted again at the end, so that
//! a server which drops the oldest is seen.
//! Spec: 2025-11-25 basic/transports, "Listening for Messages from the Server"; 2026-07-28 basic/subscriptions.

use serde_json::json;

use crate::Outcome;
use crate::http::{Answer, Connection};
use crate::lane::{Lane, legacy_headers, modern_headers, open_session, post};
use crate::options::{Kind, Options, Target};
use crate::question::{FIRST_ID, Question, modern_meta};
use crate::server::{Memory, Server};

/// Requests sent first, so that what the server allocates once is not counted.
const WARM_UP: u64 = 200;

/// Gives how many things were opened, how many of them lived to the end, and the bytes of memory they took.
pub(crate) fn run(options: &Options, kind: Kind, target: &Target) -> Outcome<String> {
    let server = Server(options.server.ok_or("the server's process is not named")?);
    let question = Question::of(options);
    let mut lane = Lane::open(options, target, &question)?;
    for index in 0..WARM_UP {
        lane.ask(FIRST_ID + index)?;
        lane.settle(&question)?;
    }
    let held = match kind {
        Kind::Connections => connections(options, target, &question, server)?,
        Kind::Sessions => sessions(options, target, &question, server)?,
        Kind::Streams => streams(options, target, server)?,
        Kind::Listens => listens(options, target, server)?,
    };
    let bytes = |before: u64, after: u64| (i128::from(after) - i128::from(before)) * 1_024;
    Ok(format!(
        "opened {} alive {} resident_bytes {} proportional_bytes {}",
        options.number,
        held.alive,
        bytes(held.before.resident, held.after.resident),
        bytes(held.before.proportional, held.after.proportional)
    ))
}

struct Held {
    before: Memory,
    after: Memory,
    alive: usize,
}

fn connections(options: &Options, target: &Target, question: &Question, server: Server) -> Outcome<Held> {
    let open = || -> Outcome<Lane> {
        let mut lane = Lane::open(options, target, question)?;
        lane.ask(FIRST_ID)?;
        lane.settle(question)?;
        Ok(lane)
    };
    let _first = open()?;
    let before = server.memory()?;
    let mut lanes = (0..options.number).map(|_| open()).collect::<Outcome<Vec<_>>>()?;
    let after = server.memory()?;
    let answers = lanes.iter_mut().filter_map(|lane| {
        lane.ask(FIRST_ID).ok()?;
        lane.settle(question).ok()
    });
    Ok(Held { before, after, alive: answers.count() })
}

fn sessions(options: &Options, target: &Target, question: &Question, server: Server) -> Outcome<Held> {
    let mut connection = Connection::open(&target.authority)?;
    let head = post(target);
    open_session(&mut connection, &head)?;
    let before = server.memory()?;
    let sessions = open_sessions(options, &mut connection, &head)?;
    let after = server.memory()?;
    let mut alive = 0;
    let mut answer = Answer::default();
    for session in &sessions {
        connection.send(&format!("{head}{}", legacy_headers(session)), &question.body(FIRST_ID))?;
        connection.receive(&mut answer)?;
        if answer.status == 200 && question.check(FIRST_ID, &answer.message(FIRST_ID)?).is_ok() {
            alive += 1;
        }
    }
    Ok(Held { before, after, alive })
}

fn open_sessions(options: &Options, connection: &mut Connection, head: &str) -> Outcome<Vec<String>> {
    (0..options.number).map(|_| open_session(connection, head)).collect()
}

/// The sessions are opened before memory is first read: what is counted is their streams.
fn streams(options: &Options, target: &Target, server: Server) -> Outcome<Held> {
    let mut connection = Connection::open(&target.authority)?;
    let sessions = open_sessions(options, &mut connection, &post(target))?;
    let head = format!("GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n", target.path, target.authority);
    held(server, sessions.iter().map(|session| format!("{head}{}\r\n", legacy_headers(session))), target)
}

fn listens(options: &Options, target: &Target, server: Server) -> Outcome<Held> {
    let head = format!("{}{}", post(target), modern_headers("subscriptions/listen"));
    let requests = (0..options.number).map(|_| {
        let body = json!({
            "jsonrpc": "2.0",
            "id": FIRST_ID,
            "method": "subscriptions/listen",
            "params": { "_meta": modern_meta(&json!({})), "notifications": { "toolsListChanged": true } },
        });
        let body = body.to_string();
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    });
    held(server, requests, target)
}

/// Opens a stream for each request.
fn held(server: Server, requests: impl Iterator<Item = String>, target: &Target) -> Outcome<Held> {
    let before = server.memory()?;
    let mut open = Vec::new();
    for request in requests {
        let mut connection = Connection::open(&target.authority)?;
        connection.write(request.as_bytes())?;
        connection.receive_opening(&mut Answer::default())?;
        open.push(connection);
    }
    let after = server.memory()?;
    let mut alive = 0;
    for connection in &open {
        alive += usize::from(connection.is_open()?);
    }
    Ok(Held { before, after, alive })
}
