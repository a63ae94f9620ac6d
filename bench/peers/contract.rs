//! What the servers of a comparison have in common: their settings, their runtime, the line they print, their end.
//!
//! Why here: each peer includes this file, so that a difference between two of them is one of their libraries.
//! Invariants: settings come from the environment, as in `bench/server`: `PORT` (0, the default, picks one), `WORKERS`
//! (1 or 2), `TOOLS` (2 or more), `MODE` (`http` or `stdio`).

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::str::FromStr;

use axum::Router;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Runs the server that `MODE` asks for; each is given the number of tools.
pub(crate) fn run<H, S>(http: impl FnOnce(usize) -> H, stdio: impl FnOnce(usize) -> S) -> ExitCode
where
    H: Future<Output = Outcome<()>>,
    S: Future<Output = Outcome<()>>,
{
    match start(http, stdio) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // Where even stderr is closed there is nobody left to tell.
            let _unheard = writeln!(io::stderr(), "{problem}");
            ExitCode::FAILURE
        }
    }
}

fn start<H, S>(http: impl FnOnce(usize) -> H, stdio: impl FnOnce(usize) -> S) -> Outcome<()>
where
    H: Future<Output = Outcome<()>>,
    S: Future<Output = Outcome<()>>,
{
    let tools = number_from("TOOLS", 2)?;
    let runtime = match number_from("WORKERS", 1)? {
        0 | 1 => Builder::new_current_thread().enable_all().build()?,
        workers => Builder::new_multi_thread().worker_threads(workers).enable_all().build()?,
    };
    let served = if env::var_os("MODE").is_some_and(|mode| mode == "stdio") {
        runtime.block_on(stdio(tools))
    } else {
        runtime.block_on(http(tools))
    };
    // A thread that waits for input may never return.
    runtime.shutdown_background();
    served
}

/// Listens at `PORT`, says where, and serves until SIGTERM what `router` makes of the address.
pub(crate) async fn serve(router: impl FnOnce(SocketAddr) -> Outcome<Router>) -> Outcome<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number_from("PORT", 0)?));
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let router = router(address)?;
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on http://{address}/mcp")?;
    stdout.flush()?;
    let listener = listener.tap_io(|stream| {
        // A connection that refuses it is only slower.
        let _slower = stream.set_nodelay(true);
    });
    // Not the graceful end, which waits for clients that keep their connections.
    tokio::select! {
        served = axum::serve(listener, router) => Ok(served?),
        _ = terminate.recv() => Ok(()),
    }
}

fn number_from<N: FromStr>(variable: &str, otherwise: N) -> Outcome<N> {
    let Ok(text) = env::var(variable) else { return Ok(otherwise) };
    text.parse().map_err(|_| format!("{variable} is no number it can take: {text}").into())
}
