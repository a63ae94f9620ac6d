//! Serves the router at `http://127.0.0.1:3000` until Ctrl-C, then lets calls that run come to their end.

use std::error::Error;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = http_axum::server()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let stopped = {
        let server = server.clone();
        async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                // Subscriptions get their closing result, streams end, and axum finds its connections idle.
                server.shutdown(Duration::from_secs(5)).await;
            }
        }
    };
    axum::serve(listener, http_axum::router(server)).with_graceful_shutdown(stopped).await?;
    Ok(())
}
