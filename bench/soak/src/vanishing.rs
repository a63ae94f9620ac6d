//! Clients that go away in the middle, and leave behind what they opened.
//!
//! Why here: what is given back only in the end of the usual way is never given back to them.
//! Invariants: they go without a word; only what they were told until then is checked.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::Outcome;
use crate::client::{Call, Events, FIRST, Kind, World, bare, hello, listen, open_session};
use crate::slow::bytes;
use crate::well::{open_pair, pause};

/// A head, or half a body, and then nobody.
pub(crate) async fn mid_request(world: &World) -> Outcome<()> {
    let arguments = json!({ "text": "half of it" });
    let call = Call { id: world.id(), tool: "echo", arguments: &arguments, session: None, progress: false };
    let (head, body) = bytes(call).await?;
    let whole = format!("{head}{body}");
    let length = usize::try_from(world.below(u64::try_from(whole.len())?))?;
    let mut socket = world.socket(Kind::Vanishing).await?;
    socket.write_all(&whole.as_bytes()[..length]).await?;
    world.tally.count("gone within a request");
    Ok(())
}

/// A modern call whose client goes: it is cancelled.
pub(crate) async fn mid_call(world: &World) -> Outcome<()> {
    let is_new = world.below(2) == 0;
    let mut client = if is_new { world.http2(Kind::Vanishing).await? } else { world.http1(Kind::Vanishing).await? };
    let none = json!({});
    let call = Call { id: world.id(), tool: "never", arguments: &none, session: None, progress: false };
    let answered = timeout(Duration::from_millis(50 + world.below(200)), client.send(call.request())).await;
    if let Ok(Ok(response)) = answered
        && response.status() != StatusCode::OK
    {
        return Err(format!("a call that never ends was answered {}", response.status()).into());
    }
    world.tally.count("gone within a modern call");
    Ok(())
}

/// A session with a call under way, a stream open, and nobody any more.
pub(crate) async fn session(world: &World) -> Outcome<()> {
    let (mut client, mut listener) = (world.http1(Kind::Vanishing).await?, world.http1(Kind::Vanishing).await?);
    let session = open_session(&mut client, world).await?;
    let _listening = listener.send(bare(Method::GET, &session, None)).await?;
    let arguments = json!({ "number": 2_000 });
    let call = Call { id: world.id(), tool: "sleep", arguments: &arguments, session: Some(&session), progress: false };
    let mut events = Events::new(client.send(call.request()).await?);
    events.next().await?;
    world.tally.count("gone with a session open");
    Ok(())
}

/// A handshake and nothing else.
pub(crate) async fn handshake(world: &World) -> Outcome<()> {
    let mut client = world.http1(Kind::Vanishing).await?;
    for _ in 0..10 {
        open_session(&mut client, world).await?;
        world.tally.count("sessions left at once");
    }
    Ok(())
}

/// A stream that is left open for a while, longer than its session may idle, and then without a word.
pub(crate) async fn stream(world: &World) -> Outcome<()> {
    let mut client = world.http1(Kind::Vanishing).await?;
    let session = open_session(&mut client, world).await?;
    let mut events = Events::new(client.send(bare(Method::GET, &session, None)).await?);
    // Changes come here like everywhere.
    let _ = timeout(Duration::from_millis(5_000 + world.below(25_000)), async {
        while let Ok(Some(_)) = events.next().await {}
    })
    .await;
    world.tally.count("gone from an open stream");
    Ok(())
}

/// Subscriptions on one connection that is lost.
pub(crate) async fn subscriptions(world: &World) -> Outcome<()> {
    let mut client = world.http2(Kind::Vanishing).await?;
    let mut open = Vec::new();
    for _ in 0..10 {
        let mut events = Events::new(client.send(listen(world.id())).await?);
        events.method("notifications/subscriptions/acknowledged").await?;
        open.push(events);
        world.tally.count("subscriptions left");
    }
    pause(world, 500).await;
    Ok(())
}

/// The stream of a pair, with a call under way.
pub(crate) async fn pair(world: &World) -> Outcome<()> {
    let (mut client, mut poster) = (world.http1(Kind::Vanishing).await?, world.http1(Kind::Vanishing).await?);
    let (_events, address) = open_pair(&mut client).await?;
    for (method, params) in [("initialize", hello(FIRST, &json!({}))), ("tools/call", json!({ "name": "never" }))] {
        let mut request = crate::client::legacy(world.id(), method, &params, None);
        *request.uri_mut() = address.parse()?;
        crate::client::expect(poster.send(request).await?, StatusCode::ACCEPTED).await?;
    }
    world.tally.count("gone from a pair");
    Ok(())
}
