//! Serves the sample server.
//!
//! Why here: flags, the log, signals and the choice of a transport are a program's business, not a server's.
//! Invariants: stdout carries the protocol or the line that says where the server listens, and nothing else; the log
//! goes to stderr.

use std::error::Error;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use mcp_http::server::{HttpConfig, HttpService, Listener};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

const USAGE: &str = "\
usage: everything-server [--http ADDRESS | --stdio]
  --http ADDRESS   address and port to listen on; port 0 picks one (default 127.0.0.1:3000)
  --stdio          one client on stdin and stdout, until its input ends
The log goes to stderr; RUST_LOG chooses what, for example RUST_LOG=info,mcp_core=debug.";

#[derive(Debug, PartialEq, Eq)]
enum Carrier {
    Http(SocketAddr),
    Stdio,
}

fn main() -> ExitCode {
    let carrier = match carrier_from(std::env::args().skip(1)) {
        Ok(carrier) => carrier,
        Err(problem) => return fail(2, &format!("{problem}\n{USAGE}")),
    };
    write_log_to_stderr();
    let served = match carrier {
        Carrier::Http(address) => serve_http(address),
        Carrier::Stdio => serve_stdio(),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(1, &problem.to_string()),
    }
}

fn serve_stdio() -> Result<(), Box<dyn Error>> {
    Ok(mcp_stdio::run(everything_server::server()?)?)
}

/// Serves until a signal ends it; calls under way get time to finish.
#[tokio::main]
async fn serve_http(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    // Before anybody can know that the server is there, so that no signal is missed.
    let ended = end_signal()?;
    let service = HttpService::new(everything_server::server()?, HttpConfig::new(mcp_auth::Anonymous));
    let listener = Listener::bind(address, service).await?;
    writeln!(io::stdout(), "listening on http://{}/mcp", listener.local_addr()?)?;
    listener.run(ended).await;
    Ok(())
}

fn carrier_from(mut arguments: impl Iterator<Item = String>) -> Result<Carrier, String> {
    let mut carrier = Carrier::Http(SocketAddr::from(([127, 0, 0, 1], 3000)));
    while let Some(flag) = arguments.next() {
        carrier = match flag.as_str() {
            "--stdio" => Carrier::Stdio,
            "--http" => {
                let given = arguments.next().ok_or("--http needs an address")?;
                Carrier::Http(given.parse().map_err(|_| format!("{given} is no address such as 127.0.0.1:3000"))?)
            }
            _ => return Err(format!("there is no flag {flag}")),
        };
    }
    Ok(carrier)
}

fn write_log_to_stderr() {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = wanted.parse().unwrap_or_else(|_| Targets::new());
    let filter = if wanted.is_empty() { filter.with_default(tracing::Level::WARN) } else { filter };
    tracing_subscriber::registry()
        .with(tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false))
        .with(filter)
        .init();
}

/// Completes on SIGTERM or Ctrl-C.
#[cfg(unix)]
fn end_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Completes on Ctrl-C.
#[cfg(not(unix))]
fn end_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

fn fail(status: u8, problem: &str) -> ExitCode {
    // Where even stderr is closed there is nobody left to tell.
    let _unheard = writeln!(io::stderr(), "everything-server: {problem}");
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carrier(arguments: &[&str]) -> Result<Carrier, String> {
        carrier_from(arguments.iter().map(|&argument| argument.to_owned()))
    }

    #[test]
    fn without_flags_it_listens_on_loopback() {
        assert_eq!(carrier(&[]), Ok(Carrier::Http(SocketAddr::from(([127, 0, 0, 1], 3000)))));
        assert_eq!(carrier(&["--http", "[::1]:0"]), Ok(Carrier::Http("[::1]:0".parse().unwrap())));
        assert_eq!(carrier(&["--stdio"]), Ok(Carrier::Stdio));
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        for bad in [&["--tcp"][..], &["--http"], &["--http", "localhost"], &["3000"]] {
            assert!(carrier(bad).is_err(), "{bad:?}");
        }
    }
}
