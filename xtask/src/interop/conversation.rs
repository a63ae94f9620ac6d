//! Runs one client to its end, and starts the sample server anew when the client asks for it.
//!
//! Why here: a client script knows its SDK; processes that have to end for certain are this program's.
//! Invariants: client and server end with their guards; a new server listens where the old one did.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::PAGE_SIZE;
use crate::process::{Guarded, now, piped};

/// How long the sample server may take to listen.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long one client may take for all its steps.
const CLIENT_LIMIT: Duration = Duration::from_secs(180);
/// The line with which a client asks for a new server.
const RESTART: &str = "restart-server";

/// What a client printed.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) lines: Vec<String>,
    /// It ended by itself and reported no failure.
    pub(super) ended_well: bool,
}

/// The sample server on a port of its own.
pub(super) struct Server {
    program: PathBuf,
    log: PathBuf,
    url: String,
    child: Guarded,
}

impl Server {
    pub(super) fn start(program: &Path, log: &Path) -> anyhow::Result<Self> {
        File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
        let (child, url) = listen(program, "127.0.0.1:0", log)?;
        Ok(Self { program: program.to_owned(), log: log.to_owned(), url, child })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Where the pair of endpoints begins.
    pub(super) fn pair_url(&self) -> String {
        self.url.trim_end_matches("/mcp").to_owned() + "/sse"
    }

    /// Another process, without any memory of the first, at the same address.
    fn restart(&mut self) -> anyhow::Result<()> {
        self.end()?;
        let address = self.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        (self.child, self.url) = listen(&self.program, &address, &self.log)?;
        Ok(())
    }

    /// Ends the server, which must have got this far.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        let status = self.child.end().context("cannot end the server")?;
        ensure!(status.success(), "the server ended with {status}; see {}", self.log.display());
        Ok(())
    }
}

fn listen(program: &Path, address: &str, log: &Path) -> anyhow::Result<(Guarded, String)> {
    let mut command = Command::new(program);
    command.args(["--http", address, "--page-size", PAGE_SIZE]);
    piped(&mut command).stderr(OpenOptions::new().append(true).open(log)?);
    let child = Guarded::spawn("server", &mut command)?;
    let line = child.first_line(START_LIMIT)?;
    let url = line.strip_prefix("listening on ").with_context(|| format!("the server said `{line}`"))?;
    Ok((child, url.to_owned()))
}

/// Runs the client; what it prints beside its lines goes to `log`.
pub(super) fn hold(client: &mut Command, server: &mut Server, log: &Path) -> anyhow::Result<Said> {
    let log = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
    let child = Guarded::spawn("client", client)?;
    let (mut input, lines) = (child.input()?, child.lines()?);
    let started = now();
    let left = || CLIENT_LIMIT.saturating_sub(started.elapsed());
    let mut said = Said::default();
    loop {
        match lines.recv_timeout(left()) {
            Ok(line) => match line.context("cannot read what the client prints")? {
                line if line == RESTART => {
                    server.restart()?;
                    input.write_all(b"restarted\n").context("the client asked for a restart and left")?;
                }
                line => said.lines.push(line),
            },
            Err(RecvTimeoutError::Timeout) => return Ok(said),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    said.ended_well = child.wait_at_most(left())?.is_some_and(|status| status.success());
    Ok(said)
}
