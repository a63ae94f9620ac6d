//! Serves at `http://127.0.0.1:3000/mcp`, or at the address that is its argument, until SIGTERM or Ctrl-C, and sends what it
//! traces to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names.

use std::env;
use std::error::Error;
use std::io::{self, Write as _};

use mcp_auth::Anonymous;
use mcp_http::server::{HttpConfig, HttpService, Listener};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<(), Box<dyn Error>> {
    let provider = otlp::tracer_provider()?;
    tracing::subscriber::set_global_default(otlp::subscriber(&provider))?;
    let served = serve();
    // Sends the spans that are still waiting. Blocks, and so is done where no runtime is left to be held up.
    provider.shutdown()?;
    served
}

#[tokio::main]
async fn serve() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let service = HttpService::new(otlp::server()?, HttpConfig::new(Anonymous));
    let listener = Listener::bind(address.parse()?, service).await?;
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on http://{}/mcp", listener.local_addr()?)?;
    stdout.flush()?;
    let asked_to_end = async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    };
    listener.run(asked_to_end).await;
    Ok(())
}
