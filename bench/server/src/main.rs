//! Our server under the benchmarks' load, every check on.
//!
//! Why here: what is measured is what users get, so nothing is switched off and nothing is logged.
//! Invariants: settings come from the environment, so that every server of a comparison is started alike: `PORT` (0, the
//! default, picks one), `WORKERS` (1 or 2), `TOOLS` (2 or more, `echo` and `add` among them), `MODE` (`http`
//! or `stdio`), `AUTH` (`anonymous`, the default, or a provider of the feature `providers`), `TASKS` (`none`, the default, or
//! `optional`: calls of `echo` may become tasks).

#[cfg(feature = "providers")]
mod auth;
mod listed;
mod tools;

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::str::FromStr;

use mcp_core::{Limits, Server};
use mcp_http::server::{HttpConfig, HttpService, Listener};
use mcp_tasks::Tasks;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// All tools fit on one page.
const PAGE: usize = 100;
/// Those that are held, and those of the load itself.
const SESSIONS: usize = 20_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let served = match env::var("MODE").as_deref() {
        Ok("http") | Err(env::VarError::NotPresent) => run_http(),
        Ok("stdio") => run_stdio(),
        _ => return fail(2, "MODE is http or stdio"),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(1, &problem.to_string()),
    }
}

fn run_stdio() -> Outcome<()> {
    let server = server(number_from("TOOLS", 2)?)?;
    let runtime = runtime(number_from("WORKERS", 1)?)?;
    let served = runtime.block_on(mcp_stdio::serve_stdio(server));
    runtime.shutdown_background();
    Ok(served?)
}

fn run_http() -> Outcome<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number_from("PORT", 0)?));
    let server = server(number_from("TOOLS", 2)?)?;
    runtime(number_from("WORKERS", 1)?)?.block_on(serve(address, server))
}

fn server(tools: usize) -> Outcome<Server> {
    let mut limits = Limits::default();
    limits.page = PAGE;
    limits.sessions = SESSIONS;
    let mut builder = Server::builder("bench", "1.0.0").limits(limits);
    let is_offering = match env::var("TASKS").as_deref() {
        Ok("none") | Err(env::VarError::NotPresent) => false,
        Ok("optional") => true,
        _ => return Err("TASKS is none or optional".into()),
    };
    if is_offering {
        builder = builder.extension(Tasks::new());
    }
    for tool in tools::all(tools, is_offering) {
        builder = builder.tool(tool);
    }
    Ok(builder.build()?)
}

fn runtime(workers: usize) -> io::Result<Runtime> {
    match workers {
        0 | 1 => Builder::new_current_thread().enable_all().build(),
        more => Builder::new_multi_thread().worker_threads(more).enable_all().build(),
    }
}

/// Serves until SIGTERM.
async fn serve(address: SocketAddr, server: Server) -> Outcome<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let service = HttpService::new(server, config()?);
    let listener = Listener::bind(address, service).await?;
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on http://{}/mcp", listener.local_addr()?)?;
    stdout.flush()?;
    listener
        .run(async move {
            terminate.recv().await;
        })
        .await;
    Ok(())
}

/// The endpoint with the provider that `AUTH` names.
fn config() -> Outcome<HttpConfig> {
    match env::var("AUTH").as_deref() {
        Ok("anonymous") | Err(env::VarError::NotPresent) => Ok(HttpConfig::new(mcp_auth::Anonymous)),
        #[cfg(feature = "providers")]
        Ok(name) => auth::config(name),
        _ => Err("AUTH names no provider that this was built with".into()),
    }
}

fn number_from<N: FromStr>(variable: &str, otherwise: N) -> Outcome<N> {
    let Ok(text) = env::var(variable) else { return Ok(otherwise) };
    text.parse().map_err(|_| format!("{variable} is no number it can take: {text}").into())
}

fn fail(status: u8, problem: &str) -> ExitCode {
    // Where even stderr is closed there is nobody left to tell.
    let _unheard = writeln!(io::stderr(), "bench-server: {problem}");
    ExitCode::from(status)
}
