//! Serves the sample server.
//!
//! Why here: flags, the log, signals and the choice of a transport are a program's business, not a server's.
//! Invariants: stdout carries the protocol or the line that says where the server listens, and nothing else; the log
//! goes to stderr; the exit status is 0 after an end in order, 1 when serving failed, 2 when it was started wrongly.

mod program;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use mcp_core::Limits;
use mcp_http::server::Listener;

use self::program::options::{Carrier, Options};
use self::program::reload::Reloadable;
use self::program::signals::{Hangups, Signals};
use self::program::{log, probe};

fn main() -> ExitCode {
    // Tells by itself what is wrong, and exits with 2.
    let options = Options::parse();
    if let Some(address) = options.probe {
        return if probe::is_healthy(address) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Err(problem) = options.check() {
        return fail(2, &format!("{problem} (see --help)"));
    }
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(1, &problem.to_string()),
    }
}

fn serve(options: &Options) -> Result<(), Box<dyn Error>> {
    let filter = log::write_to_stderr(options)?;
    let mut limits = Limits::default();
    limits.page = options.page_size;
    let server = everything_server::server(limits)?;
    let reloadable = Reloadable::load(options, server.clone(), filter)?;
    match options.carrier() {
        Carrier::Stdio => Ok(mcp_stdio::run(server)?),
        Carrier::Http(_) | Carrier::Unix(_) => serve_http(options, &reloadable),
    }
}

/// Serves until a signal ends it; calls under way get their grace to finish, unless a second signal comes.
#[tokio::main]
async fn serve_http(options: &Options, reloadable: &Reloadable) -> Result<(), Box<dyn Error>> {
    // Before anybody can know that the server is there, so that no signal is missed.
    let (mut ended, mut cut, mut hangups) = (Signals::new()?, Signals::new()?, Hangups::new()?);
    let service = options.service(reloadable.server())?;
    let mut listener = match options.carrier() {
        #[cfg(unix)]
        Carrier::Unix(path) => Listener::unix(path, service)?,
        Carrier::Http(address) => Listener::bind(address, service).await?,
        _ => return Err("there is no such way to listen on this system".into()),
    };
    listener = listener.grace(options.grace());
    if let Some(tls) = reloadable.tls() {
        listener = listener.tls(tls);
    }
    let place = match options.carrier() {
        Carrier::Unix(path) => format!("unix:{}", path.display()),
        _ if reloadable.tls().is_some() => format!("https://{}/mcp", listener.local_addr()?),
        _ => format!("http://{}/mcp", listener.local_addr()?),
    };
    writeln!(io::stdout(), "listening on {place}")?;
    tracing::info!(place, "listening");
    let twice = async {
        cut.next().await;
        cut.next().await;
    };
    let ending = async {
        ended.next().await;
        tracing::info!(grace = ?options.grace(), "ending: requests under way get their grace, a second signal cuts it short");
    };
    tokio::select! {
        () = listener.run_until(ending, twice) => {}
        () = async { loop { hangups.next().await; reloadable.reload(); } } => {}
    }
    tracing::info!("ended");
    Ok(())
}

fn fail(status: u8, problem: &str) -> ExitCode {
    // Where even stderr is closed there is nobody left to tell.
    let _unheard = writeln!(io::stderr(), "error: {problem}");
    ExitCode::from(status)
}
