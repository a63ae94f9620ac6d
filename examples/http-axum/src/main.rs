//! Serves the router at `http://127.0.0.1:3000` until Ctrl-C, then lets calls that run come to their end.

use std::error::Error;
use std::future::IntoFuture as _;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = http_axum::server()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let ending = {
        let server = server.clone();
        async move {
            interrupted().await;
            // Subscriptions get their closing result at once; what still runs after the grace is cancelled.
            server.shutdown(Duration::from_secs(5)).await;
        }
    };
    tokio::select! {
        // Ends as soon as no connection has anything under way.
        served = axum::serve(listener, http_axum::router(server)).with_graceful_shutdown(interrupted()).into_future() => {
            served?;
        }
        () = ending => {}
    }
    Ok(())
}

async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without signals there is nothing to wait for.
        std::future::pending::<()>().await;
    }
}
