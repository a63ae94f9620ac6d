//! What is measured in rounds: requests over HTTP and on pipes, idle things, a cold start.
//!
//! Why here: a row is a line of this table; how it is sampled is below it.
//! Invariants: each sample has a server of its own, pinned to one processor, and the load pinned to another.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::super::server::Running;
use super::subjects::{Built, FLOOR};

pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Http {
        load: &'static [&'static str],
        tools: &'static str,
        needs_sessions: bool,
    },
    Stdio(&'static [&'static str]),
    /// What bench-load holds, whether it needs sessions or listens, and how many.
    Hold(&'static str, Need, u32),
    /// The memory for one echo of a text of so many bytes, over HTTP or on pipes.
    Peak {
        text: &'static str,
        stdio: bool,
    },
    Start,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    Sessions,
    Listens,
}

/// Things of a kind, as a rule.
const MANY: u32 = 1_000;

pub(super) static ROWS: [Row; 15] = [
    Row {
        name: "modern-echo-64",
        title: "tools/call, echo of 64 bytes, 2026-07-28, 32 connections",
        kind: Kind::Http { load: &["--connections", "32"], tools: "2", needs_sessions: false },
    },
    Row {
        name: "modern-echo-65536",
        title: "The same with 64 KiB, 8 connections",
        kind: Kind::Http { load: &["--text", "65536", "--connections", "8"], tools: "2", needs_sessions: false },
    },
    Row {
        name: "modern-echo-1048576",
        title: "The same with 1 MiB, 4 connections",
        kind: Kind::Http { load: &["--text", "1048576", "--connections", "4"], tools: "2", needs_sessions: false },
    },
    Row {
        name: "modern-list",
        title: "tools/list of 100 tools, 32 connections",
        kind: Kind::Http { load: &["--list", "100", "--connections", "32"], tools: "100", needs_sessions: false },
    },
    Row {
        name: "legacy-echo-64",
        title: "tools/call, echo of 64 bytes, in sessions of 2025-11-25, 32 of them on 32 connections",
        kind: Kind::Http { load: &["--era", "legacy", "--connections", "32"], tools: "2", needs_sessions: true },
    },
    Row {
        name: "stdio-pipelined",
        title: "Pipes, echo of 64 bytes, 64 requests in flight",
        kind: Kind::Stdio(&["--connections", "64"]),
    },
    Row { name: "stdio-ping-pong", title: "Pipes, one request in flight", kind: Kind::Stdio(&[]) },
    Row {
        name: "idle-connection",
        title: "Memory of a connection that has had one request",
        kind: Kind::Hold("connections", Need::Nothing, MANY),
    },
    Row {
        name: "idle-session",
        title: "Memory of a session of 2025-11-25, without a connection",
        kind: Kind::Hold("sessions", Need::Sessions, MANY),
    },
    Row {
        name: "memory-large",
        title: "The same with 10,000 sessions",
        kind: Kind::Hold("sessions", Need::Sessions, 10 * MANY),
    },
    Row {
        name: "open-stream",
        title: "Memory of a session's stream by GET, with its connection, without its session",
        kind: Kind::Hold("streams", Need::Sessions, MANY),
    },
    Row {
        name: "open-listen",
        title: "Memory of a subscriptions/listen of 2026-07-28, with its connection",
        kind: Kind::Hold("listens", Need::Listens, MANY),
    },
    Row {
        name: "peak-http",
        title: "Most memory for one echo of 1 MiB, by the length of request and answer together",
        kind: Kind::Peak { text: "1048576", stdio: false },
    },
    Row {
        name: "peak-stdio",
        title: "The same on pipes, with 5 MiB",
        kind: Kind::Peak { text: "5242880", stdio: true },
    },
    Row { name: "cold-start", title: "From the start of the program to its first answer", kind: Kind::Start },
];

/// Named figures of one run, as bench-load prints them.
pub(super) type Sample = BTreeMap<String, f64>;

/// What takes a sample.
pub(super) struct Sampler {
    pub(super) taskset: PathBuf,
    pub(super) load: PathBuf,
    /// Fewer things and less time, to see that it works.
    pub(super) quick: bool,
}

/// The processor of servers, and that of the load.
const SERVER: &str = "0";
const LOAD: &str = "1";

impl Row {
    /// Whether the server offers what this row is about.
    pub(super) fn suits(&self, server: &Built) -> bool {
        let subject = server.subject;
        // The floor has no sessions, but is what a call in one is compared with.
        let is_floor = subject.name == FLOOR;
        match self.kind {
            Kind::Http { needs_sessions, .. } => is_floor || subject.sessions || !needs_sessions,
            Kind::Hold(_, need, _) => match need {
                Need::Nothing => true,
                Need::Sessions => subject.sessions,
                Need::Listens => subject.listens.is_some(),
            },
            Kind::Stdio(_) | Kind::Peak { .. } | Kind::Start => true,
        }
    }
}

impl Sampler {
    pub(super) fn sample(&self, row: &Row, server: &Built) -> anyhow::Result<Sample> {
        let text = match row.kind {
            Kind::Http { load, tools, .. } => {
                // The floor knows one era; of two options that say one thing the later counts.
                let era: &[&str] = if server.subject.name == FLOOR { &["--era", "modern"] } else { &[] };
                let time = ["--milliseconds", self.milliseconds()];
                self.http(server, tools, &["timed"], &[load, era, &time].concat())?
            }
            Kind::Hold(what, need, most) => {
                let most = if self.quick { most / 10 } else { most };
                let number = match need {
                    Need::Listens => server.subject.listens.unwrap_or(most).min(most),
                    Need::Nothing | Need::Sessions => most,
                };
                self.http(server, "2", &["hold", what], &["--number", &number.to_string()])?
            }
            Kind::Stdio(load) => {
                self.child(server, "stdio", &[load, &["--milliseconds", self.milliseconds()]].concat())?
            }
            Kind::Peak { text, stdio: false } => self.http(server, "2", &["peak"], &["--text", text])?,
            Kind::Peak { text, stdio: true } => self.child(server, "stdio-peak", &["--text", text])?,
            Kind::Start => self.child(server, "start", &[])?,
        };
        parse(&text).with_context(|| format!("bench-load said: {text}"))
    }

    fn milliseconds(&self) -> &'static str {
        if self.quick { "300" } else { "1500" }
    }

    /// The server runs by itself, and the load is told where.
    fn http(&self, server: &Built, tools: &str, what: &[&str], options: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.taskset);
        command.args(["-c", SERVER]).arg(&server.program);
        let mut running = Running::start(command, tools, &[("SCHEMAS", "ordinary")])?;
        let id = running.id().to_string();
        let arguments = [what, &[&running.url], options, &["--server", &id]].concat();
        let told = self.load(&arguments, &[], "http");
        running.end()?;
        told
    }

    /// The load starts the server.
    fn child(&self, server: &Built, what: &str, options: &[&str]) -> anyhow::Result<String> {
        let mode = if what.starts_with("stdio") { "stdio" } else { "http" };
        let (taskset, program) = (self.taskset.as_os_str(), server.program.as_os_str());
        let child = ["--".as_ref(), taskset, "-c".as_ref(), SERVER.as_ref(), program];
        self.load(&[&[what], options].concat(), &child, mode)
    }

    /// What the load prints. Its environment is that of a child it starts.
    fn load(&self, arguments: &[&str], child: &[&OsStr], mode: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.taskset);
        command.args(["-c", LOAD]).arg(&self.load).args(arguments).args(child);
        command.env_clear().envs([("PORT", "0"), ("WORKERS", "1"), ("TOOLS", "2"), ("MODE", mode)]);
        let output = command.output().context("bench-load did not start")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// Names and numbers in turn.
fn parse(text: &str) -> Option<Sample> {
    let mut words = text.split_whitespace();
    let mut sample = Sample::new();
    while let Some(name) = words.next() {
        sample.insert(name.to_owned(), words.next()?.parse().ok()?);
    }
    Some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_their_names() {
        let sample = parse("answers 12 elapsed_ns 3400").unwrap();
        assert_eq!((sample["answers"], sample["elapsed_ns"]), (12.0, 3_400.0));
        assert!(parse("answers").is_none());
        assert!(parse("answers many").is_none());
    }
}
