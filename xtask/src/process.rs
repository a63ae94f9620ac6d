//! Ends every child process this program starts, and limits how long it waits for one.
//!
//! Why here: a suite or server that outlives its run would hold a port and a core of the machine.
//! Invariants: a child is signalled by its handle, never by name; a dropped `Guarded` has no running child.

use std::io::{self, BufRead as _, BufReader};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use shared_child::SharedChild;

/// How long a child may take to end after the request to do so.
const GRACE: Duration = Duration::from_secs(5);

/// A child process that ends with its guard, whichever way that is left.
pub(crate) struct Guarded {
    child: SharedChild,
    name: &'static str,
}

impl Guarded {
    /// Starts `command`; `name` is what messages call it.
    pub(crate) fn spawn(name: &'static str, command: &mut Command) -> anyhow::Result<Self> {
        let child = SharedChild::spawn(command).with_context(|| format!("cannot start the {name}"))?;
        Ok(Self { child, name })
    }

    /// Waits until the child has ended; `None` if it has not within `limit`.
    pub(crate) fn wait_at_most(&self, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
        self.child.wait_timeout(limit).with_context(|| format!("cannot wait for the {}", self.name))
    }

    /// The first line of the child's standard output, which must be piped, without its end. The rest is not kept.
    ///
    /// # Errors
    /// No line within `limit`, or the output ended before one.
    pub(crate) fn first_line(&self, limit: Duration) -> anyhow::Result<String> {
        match self.lines()?.recv_timeout(limit) {
            Ok(line) => line.with_context(|| format!("cannot read what the {} prints", self.name)),
            Err(RecvTimeoutError::Timeout) => bail!("the {} printed no line within {limit:?}", self.name),
            Err(RecvTimeoutError::Disconnected) => bail!("the {} ended without printing a line", self.name),
        }
    }

    /// The lines of the child's standard output, which must be piped, without their ends. Dropping the receiver lets
    /// the child print on, to nowhere.
    pub(crate) fn lines(&self) -> anyhow::Result<Receiver<io::Result<String>>> {
        let output = self.child.take_stdout().context("the output is not piped or was taken before")?;
        Ok(lines_of(output))
    }

    /// The child's standard input, which must be piped.
    pub(crate) fn input(&self) -> anyhow::Result<ChildStdin> {
        self.child.take_stdin().context("the input is not piped or was taken before")
    }

    /// Ends the child at once, which it cannot prevent, and waits until it has.
    pub(crate) fn kill(&self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Asks the child to end, and kills it if it has not after a grace period.
    pub(crate) fn end(&self) -> io::Result<ExitStatus> {
        self.end_within(GRACE)
    }

    fn end_within(&self, grace: Duration) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        ask_to_end(&self.child)?;
        if let Some(status) = self.child.wait_timeout(grace)? {
            return Ok(status);
        }
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("cannot end the {}: {error}", self.name);
        }
    }
}

/// Now. Only run times of commands are measured here.
#[expect(clippy::disallowed_methods, reason = "tokio's clock is for the library; this program has no runtime")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A pipe for the standard output of a child that is to be waited for by its first line.
pub(crate) fn piped(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped())
}

#[cfg(unix)]
fn ask_to_end(child: &SharedChild) -> io::Result<()> {
    use shared_child::unix::SharedChildExt as _;
    /// SIGTERM: POSIX fixes the number.
    const TERMINATE: i32 = 15;
    child.send_signal(TERMINATE)
}

#[cfg(not(unix))]
fn ask_to_end(child: &SharedChild) -> io::Result<()> {
    child.kill()
}

/// Passes on lines as long as somebody takes them, and then reads on to nowhere, so that a talkative child never blocks
/// on a full pipe.
#[expect(clippy::disallowed_methods, reason = "owned by the child: the thread ends when the child's output does")]
fn lines_of(output: ChildStdout) -> Receiver<io::Result<String>> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = String::new();
            let read = output.read_line(&mut line);
            let (ended, failed) = (matches!(read, Ok(0)), read.is_err());
            if ended || sender.send(read.map(|_| line.trim_end().to_owned())).is_err() || failed {
                break;
            }
        }
        drop(sender);
        drop(io::copy(&mut output, &mut io::sink()));
    });
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    const AMPLE: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        piped(&mut command);
        command
    }

    #[test]
    fn a_child_that_heeds_the_request_ends_by_it() {
        let child = Guarded::spawn("test child", &mut shell("echo up; exec sleep 600")).unwrap();
        assert_eq!(child.first_line(AMPLE).unwrap(), "up");
        assert_eq!(child.end().unwrap().signal(), Some(15));
    }

    #[test]
    fn a_child_that_ignores_the_request_is_killed() {
        let script = "trap '' TERM; echo up; while :; do sleep 0.05; done";
        let child = Guarded::spawn("test child", &mut shell(script)).unwrap();
        assert_eq!(child.first_line(AMPLE).unwrap(), "up");
        assert_eq!(child.end_within(Duration::from_millis(100)).unwrap().signal(), Some(9));
    }

    #[test]
    fn a_child_can_be_killed() {
        let child = Guarded::spawn("test child", &mut shell("trap '' TERM; echo up; exec sleep 600")).unwrap();
        assert_eq!(child.first_line(AMPLE).unwrap(), "up");
        child.kill().unwrap();
        assert_eq!(child.end().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_panic_ends_the_child() {
        let (mut reader, writer) = io::pipe().unwrap();
        let started = now();
        let panicked = std::panic::catch_unwind(move || {
            let mut command = Command::new("sleep");
            command.arg("600").stdout(writer);
            let _child = Guarded::spawn("test child", &mut command).unwrap();
            drop(command);
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        // The pipe ends with the last process that holds its other side.
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        assert!(started.elapsed() < AMPLE);
    }

    #[test]
    fn a_child_that_prints_nothing_is_reported() {
        let silent = Guarded::spawn("test child", &mut shell("exec sleep 600")).unwrap();
        let error = silent.first_line(Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("printed no line"), "{error}");
        let gone = Guarded::spawn("test child", &mut shell("exit 0")).unwrap();
        let error = gone.first_line(AMPLE).unwrap_err();
        assert!(error.to_string().contains("ended without"), "{error}");
    }

    #[test]
    fn a_child_can_be_talked_with() {
        let mut command = shell("echo up; read word; echo \"$word\"; echo; echo last");
        let child = Guarded::spawn("test child", command.stdin(Stdio::piped())).unwrap();
        let mut lines = child.lines().unwrap().into_iter().map(Result::unwrap);
        assert_eq!(lines.next().as_deref(), Some("up"));
        io::Write::write_all(&mut child.input().unwrap(), b"word\n").unwrap();
        assert_eq!(lines.collect::<Vec<_>>(), ["word", "", "last"]);
    }

    #[test]
    fn waiting_stops_at_the_limit() {
        let child = Guarded::spawn("test child", &mut shell("exec sleep 600")).unwrap();
        assert!(child.wait_at_most(Duration::from_millis(50)).unwrap().is_none());
    }
}
