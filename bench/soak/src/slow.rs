//! Clients that are slow: as long as they go on they are served, and those that stop are let go.
//!
//! Why here: what a slow peer holds has to be its own.
//! Invariants: who is slow within its time gets a right answer; who is not is cut off, within twice the time and a little.

use std::time::Duration;

use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::Outcome;
use crate::client::{Call, Kind, World};
use crate::serve::{BODY_TIMEOUT, HEADER_TIMEOUT};

/// More than the buffers of a socket take.
const LARGE: usize = 6 * 1024 * 1024;

/// The bytes of a request over HTTP/1.1: its head and its body.
pub(crate) async fn bytes(call: Call<'_>) -> Outcome<(String, String)> {
    let (parts, body) = call.request().into_parts();
    let body = String::from_utf8(body.collect().await?.to_bytes().to_vec())?;
    let mut head = format!("POST /mcp HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in &parts.headers {
        head.push_str(&format!("{name}: {}\r\n", value.to_str()?));
    }
    head.push_str("\r\n");
    Ok((head, body))
}

/// A body that comes a few bytes at a time, and in time.
pub(crate) async fn sender(world: &World) -> Outcome<()> {
    let arguments = json!({ "text": "slowly" });
    let call = Call { id: world.id(), tool: "echo", arguments: &arguments, session: None, progress: false };
    let (head, body) = bytes(call).await?;
    let mut socket = world.socket(Kind::Slow).await?;
    socket.write_all(head.as_bytes()).await?;
    let pieces = body.as_bytes().chunks(body.len().div_ceil(20));
    for piece in pieces {
        socket.write_all(piece).await?;
        sleep(Duration::from_millis(80)).await;
    }
    let answer = read_some(&mut socket).await?;
    if !(answer.starts_with("HTTP/1.1 200 ") && answer.contains("slowly")) {
        return Err(format!("a slow body was answered {answer:.300}").into());
    }
    world.tally.right();
    Ok(())
}

/// A body that does not come to its end.
pub(crate) async fn stuck_sender(world: &World) -> Outcome<()> {
    let arguments = json!({ "text": "never" });
    let call = Call { id: world.id(), tool: "echo", arguments: &arguments, session: None, progress: false };
    let (head, body) = bytes(call).await?;
    let mut socket = world.socket(Kind::Slow).await?;
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(&body.as_bytes()[..body.len() / 2]).await?;
    let answer =
        timeout(2 * BODY_TIMEOUT, read_some(&mut socket)).await.map_err(|_| "a stuck body was waited for")??;
    if !answer.starts_with("HTTP/1.1 408 ") {
        return Err(format!("a stuck body was answered {answer:.300}").into());
    }
    world.tally.count("408 for a body that does not come");
    Ok(())
}

/// A head that does not come to its end.
pub(crate) async fn stuck_head(world: &World) -> Outcome<()> {
    let mut socket = world.socket(Kind::Slow).await?;
    let begun = ["", "P", "PRI * HTTP/2.0\r\n", "POST /mcp HTTP/1.1\r\nhost: local"];
    let index = usize::try_from(world.below(4))?;
    socket.write_all(begun.get(index).copied().unwrap_or_default().as_bytes()).await?;
    let mut nothing = Vec::new();
    let cut = timeout(4 * HEADER_TIMEOUT, socket.read_to_end(&mut nothing)).await;
    // Reset or closed is one.
    let _ = cut.map_err(|_| "a head that does not come was waited for")?;
    world.tally.count("closed for a head that does not come");
    Ok(())
}

/// An answer that is read slowly, and to its end.
pub(crate) async fn reader(world: &World) -> Outcome<()> {
    let mut socket = large(world).await?;
    let mut piece = vec![0; 512 * 1024];
    let mut read = 0;
    while read < LARGE {
        let length = socket.read(&mut piece).await?;
        if length == 0 {
            return Err(format!("a slow reader was cut off after {read} bytes").into());
        }
        read += length;
        sleep(Duration::from_millis(40)).await;
    }
    world.tally.right();
    Ok(())
}

/// An answer that is asked for and not read.
pub(crate) async fn stuck_reader(world: &World) -> Outcome<()> {
    let mut socket = large(world).await?;
    socket.readable().await?;
    // The server gives it up after this time at the latest.
    sleep(3 * HEADER_TIMEOUT).await;
    let mut came = Vec::new();
    let _ = timeout(HEADER_TIMEOUT, socket.read_to_end(&mut came)).await.map_err(|_| "an unread answer was kept")?;
    if came.len() >= LARGE {
        return Err("an answer that nobody read was kept whole".into());
    }
    world.tally.count("cut for an answer that is not read");
    Ok(())
}

/// Answers over HTTP/2 for which there is no window.
pub(crate) async fn no_window(world: &World) -> Outcome<()> {
    let mut client = world.http2_with_window(Kind::Slow, 0).await?;
    let arguments = json!({ "number": 64 * 1024 });
    let mut bodies = Vec::new();
    for _ in 0..10 {
        let call = Call { id: world.id(), tool: "large", arguments: &arguments, session: None, progress: false };
        bodies.push(client.send(call.request()).await?.into_body());
    }
    for body in bodies {
        let ended =
            timeout(4 * HEADER_TIMEOUT, body.collect()).await.map_err(|_| "an answer without window was kept")?;
        if ended.is_ok() {
            return Err("an answer came through a window that was never opened".into());
        }
    }
    world.tally.count("cut for answers without a window");
    Ok(())
}

async fn large(world: &World) -> Outcome<TcpStream> {
    let arguments = json!({ "number": LARGE });
    let call = Call { id: world.id(), tool: "large", arguments: &arguments, session: None, progress: false };
    let (head, body) = bytes(call).await?;
    let mut socket = world.socket(Kind::Slow).await?;
    socket.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(socket)
}

/// What comes first.
pub(crate) async fn read_some(socket: &mut TcpStream) -> Outcome<String> {
    let mut some = vec![0; 4096];
    let length = socket.read(&mut some).await?;
    Ok(String::from_utf8_lossy(some.get(..length).unwrap_or_default()).into_owned())
}
