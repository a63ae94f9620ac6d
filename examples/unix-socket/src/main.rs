//! Serves two tools at a Unix socket: `unix-socket PATH`.

use std::error::Error;

use tokio::net::UnixListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: unix-socket PATH")?;
    let listener = UnixListener::bind(path)?;
    unix_socket::listen(&unix_socket::server()?, &listener).await
}
