//! Starts a server under an instrument, loads it, and ends it so that the instrument writes its file.
//!
//! Why here: every instrument needs the same start, line, load and end.
//! Invariants: a fixed environment; the server is ended by its own handle and never outlives its `Running`.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, ensure};

/// What a server is run under.
pub(super) enum Instrument {
    /// Counts instructions and calls.
    Callgrind(PathBuf),
    /// Counts system calls.
    Strace(PathBuf),
}

/// One run: which server, offering how many tools, asked what.
pub(super) struct Run<'a> {
    pub(super) server: &'a Path,
    pub(super) tools: &'a str,
    /// What the server finds in its environment besides.
    pub(super) environment: &'a [(&'static str, &'static str)],
    /// Whether it is asked on pipes, not over HTTP.
    pub(super) is_piped: bool,
    pub(super) load: &'a Path,
    pub(super) load_arguments: &'a [&'a str],
    pub(super) requests: u32,
}

/// What came of a run.
pub(super) struct Counted {
    /// The instrument's file.
    pub(super) text: String,
    /// The length of the last answer's body.
    pub(super) body_bytes: u64,
}

/// The server ended before it said where it listens.
#[derive(Debug)]
pub(super) struct NeverListened;

impl std::fmt::Display for NeverListened {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("it ended before it listened")
    }
}

impl std::error::Error for NeverListened {}

impl NeverListened {
    /// Whether this is what lies under `problem`.
    pub(super) fn caused(problem: &anyhow::Error) -> bool {
        problem.chain().any(|cause| cause.is::<Self>())
    }
}

impl Instrument {
    /// Runs the server under this instrument, sends it the load, and gives what the instrument writes to `file`.
    ///
    /// # Errors
    ///
    /// [`NeverListened`] if the server ended first; others if the load saw a wrong answer or no file was written.
    pub(super) fn run(&self, run: &Run<'_>, file: &Path) -> anyhow::Result<Counted> {
        if file.exists() {
            fs::remove_file(file)?;
        }
        let requests = run.requests.to_string();
        let mut load = Command::new(run.load);
        let load = if run.is_piped {
            let server = self.command(run.server, file);
            load.arg("stdio-count").args(["--requests", &requests]).args(run.load_arguments);
            load.arg("--").arg(server.get_program()).args(server.get_args());
            load.env_clear().envs(environment("stdio", run.tools)).output()
        } else {
            let mut running = Running::start(self.command(run.server, file), run.tools, run.environment)?;
            let told = load.arg(&running.url).args(["--requests", &requests]).args(run.load_arguments).output();
            running.end()?;
            told
        };
        let load = load.context("bench-load did not start")?;
        ensure!(load.status.success(), "{}", String::from_utf8_lossy(&load.stderr).trim());
        let text = fs::read_to_string(file).with_context(|| format!("no counts were written to {}", file.display()))?;
        let summary = String::from_utf8_lossy(&load.stdout);
        let body_bytes = summary.trim().rsplit_once(' ').and_then(|(_, bytes)| bytes.parse().ok());
        Ok(Counted { text, body_bytes: body_bytes.with_context(|| format!("bench-load said: {summary}"))? })
    }

    fn command(&self, server: &Path, file: &Path) -> Command {
        let mut command;
        match self {
            Self::Callgrind(program) => {
                command = Command::new(program);
                let mut out = OsString::from("--callgrind-out-file=");
                out.push(file);
                command.args(["--quiet", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]).arg(out);
            }
            Self::Strace(program) => {
                command = Command::new(program);
                // -D: the server is our child, and strace its grandchild, so that SIGTERM reaches the server.
                // The server's errors go into a pipe that strace holds too, until it has written its file.
                command.args(["-D", "-f", "-c", "-o"]).arg(file).stderr(Stdio::piped());
            }
        }
        command.arg(server);
        command
    }
}

/// What every server is told.
fn environment<'a>(mode: &'a str, tools: &'a str) -> [(&'static str, &'a str); 4] {
    [("PORT", "0"), ("WORKERS", "1"), ("MODE", mode), ("TOOLS", tools)]
}

/// The first program of this name on the search path.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A server that listens.
pub(super) struct Running {
    child: Child,
    pub(super) url: String,
    /// Held so that the server may go on writing to it.
    _output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts a server on one worker and waits for the line that says where it listens.
    ///
    /// # Errors
    ///
    /// [`NeverListened`] if it ended first.
    pub(super) fn start(mut command: Command, tools: &str, besides: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut child = command
            .env_clear()
            .envs(environment("http", tools))
            .envs(besides.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} did not start", command.get_program().display()))?;
        let mut output = BufReader::new(child.stdout.take().context("the server has no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").unwrap_or_default().to_owned();
        let running = Self { child, url, _output: output };
        if running.url.is_empty() { Err(NeverListened.into()) } else { Ok(running) }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server to end and waits until it and its instrument have.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let asked =
            Command::new("sh").args(["-c", "kill -TERM \"$1\"", "kill", &self.child.id().to_string()]).status()?;
        ensure!(asked.success(), "the server ended before it was asked to");
        self.child.wait()?;
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_end(&mut Vec::new())?;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a server that has already ended.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}
