//! Serves a client over the process's own stdin and stdout, and ends when the client or a signal says so.
//!
//! Why here: on stdio the pipe is the process's lifetime, so its end has to be certain.
//! Invariants: after the end of input the process can leave `main` within five seconds, whatever handlers do.
//! Spec: 2026-07-28 basic/transports/stdio; 2025-11-25 basic/lifecycle, "Shutdown"

use std::io;
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use mcp_core::{Connection, Server};
use mcp_wire::TransportError;

use crate::threads::Stdio;

/// From the end of input on, for answers and cancelled handlers; the rest of the five seconds is for the process.
const GRACE: Duration = Duration::from_millis(4500);
/// From the end of input on, for everything.
const LAST: Duration = Duration::from_secs(5);
/// From a signal on, for answers: whoever sends one waits for two seconds, mostly, before it kills.
const SIGNAL_GRACE: Duration = Duration::from_secs(1);

/// Why a server on stdio did not end as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipeError {
    /// The process has no thread, runtime or signal for it.
    #[error("serving stdio could not be started")]
    Start(#[source] io::Error),
    /// Reading or writing failed; [`TransportError::Closed`] if the client stopped reading.
    #[error("{0}")]
    Transport(#[from] TransportError),
    /// Handlers that block the runtime's threads were left behind five seconds after the end of input.
    #[error("handlers still blocked the runtime five seconds after the end of input")]
    Blocked,
}

/// Serves stdin and stdout with a runtime of its own: all that the `main` of a server has to do. Call it from outside
/// any runtime, and leave `main` after it.
///
/// Ends as [`serve_stdio`] does, and also when handlers block every thread of the runtime or the blocking pool: they are
/// left behind and end with the process.
///
/// # Errors
/// When serving could not be started, or failed.
pub fn run(server: Server) -> Result<(), PipeError> {
    let (report, reports) = sync_channel(2);
    let input_ended = report.clone();
    let serving = thread::Builder::new().name("mcp-stdio".to_owned());
    serving.spawn(move || serve_in_runtime(server, &report, input_ended)).map_err(PipeError::Start)?;
    let first = reports.recv().unwrap_or(Report::Ended(Err(PipeError::Blocked)));
    match first {
        Report::Ended(outcome) => outcome,
        Report::InputEnded => match reports.recv_timeout(LAST) {
            Ok(Report::Ended(outcome)) => outcome,
            Ok(Report::InputEnded) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Err(PipeError::Blocked)
            }
        },
    }
}

enum Report {
    InputEnded,
    Ended(Result<(), PipeError>),
}

fn serve_in_runtime(server: Server, report: &SyncSender<Report>, input_ended: SyncSender<Report>) {
    let outcome = match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let outcome = runtime.block_on(serve(server, move || {
                let _ = input_ended.send(Report::InputEnded);
            }));
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(PipeError::Start(error)),
    };
    // The receiver is gone if this took too long.
    let _ = report.send(Report::Ended(outcome));
}

/// Serves stdin and stdout until the input ends or, on Unix, SIGTERM or SIGINT comes (elsewhere: Ctrl-C).
///
/// At the end of input what was read is answered, for about two and a half seconds; then handlers are cancelled and have
/// [`Limits::cancel_grace`](mcp_core::Limits::cancel_grace) to stop; all in all it takes less than five seconds. A
/// signal shuts the server down and leaves answers one second; a second signal leaves them none.
///
/// Needs a tokio runtime with all drivers. A runtime that is dropped waits for what blocks its threads: end it with
/// `shutdown_background`, or use [`run`]. Call this once in a process, and write nothing else to stdout.
///
/// # Errors
/// When serving could not be started, or failed.
pub async fn serve_stdio(server: Server) -> Result<(), PipeError> {
    serve(server, || {}).await
}

async fn serve(server: Server, input_ended: impl FnOnce() + Send + 'static) -> Result<(), PipeError> {
    let mut signals = Signals::new().map_err(PipeError::Start)?;
    let stdio = Stdio::open(input_ended).map_err(PipeError::Start)?;
    let mut serving = pin!(Connection::new(server.clone()).grace(GRACE).serve(stdio));
    tokio::select! {
        outcome = serving.as_mut() => return Ok(outcome?),
        () = signals.next() => {}
    }
    // Stops reading; the connection ends when all is answered, at the latest when the server has stopped.
    let shut_down = async {
        tokio::select! {
            () = server.shutdown(SIGNAL_GRACE) => {}
            () = signals.next() => server.shutdown(Duration::ZERO).await,
        }
    };
    tokio::select! {
        outcome = serving.as_mut() => return Ok(outcome?),
        () = shut_down => {}
    }
    Ok(serving.await?)
}

/// The signals that ask a process to end.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The signal that asks a process to end.
#[cfg(not(unix))]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
