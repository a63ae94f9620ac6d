//! Serves the sample server.
//!
//! Why here: flags, the log, signals and the choice of a transport are a program's business, not a server's.
//! Invariants: stdout carries the protocol or the line that says where the server listens, and nothing else; the log
//! goes to stderr.

use std::error::Error;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use mcp_core::Limits;
use mcp_http::server::{HttpConfig, HttpService, Listener};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

const USAGE: &str = "\
usage: everything-server [--http ADDRESS | --stdio] [--page-size N]
  --http ADDRESS   address and port to listen on; port 0 picks one (default 127.0.0.1:3000)
  --stdio          one client on stdin and stdout, until its input ends
  --page-size N    at most N tools, resources or prompts on a page of a list (default 50)
The log goes to stderr; RUST_LOG chooses what, for example RUST_LOG=info,mcp_core=debug.";

#[derive(Debug, PartialEq, Eq)]
enum Carrier {
    Http(SocketAddr),
    Stdio,
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    carrier: Carrier,
    page_size: usize,
}

fn main() -> ExitCode {
    let wanted = match wanted_from(std::env::args().skip(1)) {
        Ok(wanted) => wanted,
        Err(problem) => return fail(2, &format!("{problem}\n{USAGE}")),
    };
    write_log_to_stderr();
    let mut limits = Limits::default();
    limits.page = wanted.page_size;
    let served = match wanted.carrier {
        Carrier::Http(address) => serve_http(address, limits),
        Carrier::Stdio => serve_stdio(limits),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(1, &problem.to_string()),
    }
}

fn serve_stdio(limits: Limits) -> Result<(), Box<dyn Error>> {
    Ok(mcp_stdio::run(everything_server::server(limits)?)?)
}

/// Serves until a signal ends it; calls under way get time to finish, unless a second signal comes.
#[tokio::main]
async fn serve_http(address: SocketAddr, limits: Limits) -> Result<(), Box<dyn Error>> {
    // Before anybody can know that the server is there, so that no signal is missed.
    let (mut ended, mut cut) = (EndSignals::new()?, EndSignals::new()?);
    // The pair of endpoints is for clients of the first revision.
    let config = HttpConfig::new(mcp_auth::Anonymous).sse_pair("/sse", "/messages");
    let service = HttpService::new(everything_server::server(limits)?, config);
    let listener = Listener::bind(address, service).await?;
    writeln!(io::stdout(), "listening on http://{}/mcp", listener.local_addr()?)?;
    let twice = async {
        cut.next().await;
        cut.next().await;
    };
    listener.run_until(ended.next(), twice).await;
    Ok(())
}

fn wanted_from(mut arguments: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut wanted =
        Wanted { carrier: Carrier::Http(SocketAddr::from(([127, 0, 0, 1], 3000))), page_size: Limits::default().page };
    while let Some(flag) = arguments.next() {
        match flag.as_str() {
            "--stdio" => wanted.carrier = Carrier::Stdio,
            "--http" => {
                let given = arguments.next().ok_or("--http needs an address")?;
                let address = given.parse().map_err(|_| format!("{given} is no address such as 127.0.0.1:3000"))?;
                wanted.carrier = Carrier::Http(address);
            }
            "--page-size" => {
                let given = arguments.next().ok_or("--page-size needs a number")?;
                wanted.page_size = match given.parse() {
                    Ok(size) if size > 0 => size,
                    _ => return Err(format!("{given} is no number of entries such as 10")),
                };
            }
            _ => return Err(format!("there is no flag {flag}")),
        }
    }
    Ok(wanted)
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

/// SIGTERM and Ctrl-C, one after the other.
#[cfg(unix)]
struct EndSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl EndSignals {
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

/// Ctrl-C, one after the other.
#[cfg(not(unix))]
struct EndSignals(tokio::signal::windows::CtrlC);

#[cfg(not(unix))]
impl EndSignals {
    fn new() -> io::Result<Self> {
        Ok(Self(tokio::signal::windows::ctrl_c()?))
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

fn fail(status: u8, problem: &str) -> ExitCode {
    // Where even stderr is closed there is nobody left to tell.
    let _unheard = writeln!(io::stderr(), "everything-server: {problem}");
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(arguments: &[&str]) -> Result<Wanted, String> {
        wanted_from(arguments.iter().map(|&argument| argument.to_owned()))
    }

    #[test]
    fn without_flags_it_listens_on_loopback() {
        let carrier = |arguments| wanted(arguments).unwrap().carrier;
        assert_eq!(carrier(&[]), Carrier::Http(SocketAddr::from(([127, 0, 0, 1], 3000))));
        assert_eq!(carrier(&["--http", "[::1]:0"]), Carrier::Http("[::1]:0".parse().unwrap()));
        assert_eq!(carrier(&["--stdio"]), Carrier::Stdio);
    }

    #[test]
    fn the_size_of_a_page_is_the_engines_unless_it_is_given() {
        assert_eq!(wanted(&[]).unwrap().page_size, Limits::default().page);
        assert_eq!(wanted(&["--stdio", "--page-size", "10"]), Ok(Wanted { carrier: Carrier::Stdio, page_size: 10 }));
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        let bad = [&["--tcp"][..], &["--http"], &["--http", "localhost"], &["3000"], &["--page-size"]];
        for bad in bad.into_iter().chain([&["--page-size", "0"][..], &["--page-size", "many"]]) {
            assert!(wanted(bad).is_err(), "{bad:?}");
        }
    }
}
