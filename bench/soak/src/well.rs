//! Clients that do what they should: every answer they get has to be right.
//!
//! Why here: they are what the soak is for; the others are only there to disturb them.
//! Invariants: whatever they are not answered as they should be is a failure of the run.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::Outcome;
use crate::client::{
    Call, Client, Events, FIRST, Kind, World, answer, bare, expect, hello, legacy, listen, open_session,
};

/// Small calls on one connection before it is closed.
const CALLS: u64 = 40;

/// Small calls of the modern era over HTTP/1.1.
pub(crate) async fn modern(world: &World) -> Outcome<()> {
    let mut client = world.http1(Kind::Well).await?;
    for _ in 0..CALLS {
        echo(world, &mut client, None).await?;
        pause(world, 60).await;
    }
    Ok(())
}

/// Small calls of the modern era over HTTP/2, several at a time.
pub(crate) async fn multiplexed(world: &World) -> Outcome<()> {
    let mut client = world.http2(Kind::Well).await?;
    for _ in 0..CALLS / 8 {
        let asked: Vec<_> = (0..8)
            .map(|_| {
                let (id, text) = (world.id(), format!("said {}", world.below(1 << 40)));
                let arguments = json!({ "text": text });
                let call = Call { id, tool: "echo", arguments: &arguments, session: None, progress: false };
                (id, text, client.begin(call.request()))
            })
            .collect();
        for (id, text, response) in asked {
            says(&answer(response.await?, id).await?, &text)?;
            world.tally.right();
        }
        pause(world, 100).await;
    }
    Ok(())
}

/// A session from its handshake to its end, with its stream open and calls in it.
pub(crate) async fn session(world: &World) -> Outcome<()> {
    let (mut client, mut listener) = (world.http1(Kind::Well).await?, world.http1(Kind::Well).await?);
    let session = open_session(&mut client, world).await?;
    let subscribe = json!({ "uri": crate::serve::WATCHED });
    let id = world.id();
    let subscribed = client.send(legacy(id, "resources/subscribe", &subscribe, Some(&session))).await?;
    if answer(subscribed, id).await?["result"] != json!({}) {
        return Err("the subscription was not answered".into());
    }
    let mut notices = Events::new(listener.send(bare(Method::GET, &session, None)).await?);
    for _ in 0..CALLS / 4 {
        echo(world, &mut client, Some(&session)).await?;
        pause(world, 100).await;
    }
    change(world, &mut client, Some(&session)).await?;
    for method in ["notifications/tools/list_changed", "notifications/resources/updated"] {
        notices.method(method).await?;
        world.tally.right();
    }
    expect(client.send(bare(Method::DELETE, &session, None)).await?, StatusCode::NO_CONTENT).await?;
    while notices.next().await?.is_some() {}
    let id = world.id();
    expect(client.send(legacy(id, "ping", &json!({}), Some(&session))).await?, StatusCode::NOT_FOUND).await?;
    world.tally.right();
    Ok(())
}

/// A subscription that hears of changes, and ends when its client goes.
pub(crate) async fn subscription(world: &World) -> Outcome<()> {
    let (mut client, mut caller) = (world.http2(Kind::Well).await?, world.http1(Kind::Well).await?);
    let mut events = Events::new(client.send(listen(world.id())).await?);
    events.method("notifications/subscriptions/acknowledged").await?;
    for _ in 0..3 {
        change(world, &mut caller, None).await?;
        events.method("notifications/tools/list_changed").await?;
        events.method("notifications/resources/updated").await?;
        world.tally.right();
        pause(world, 300).await;
    }
    Ok(())
}

/// A call that tells how far it is.
pub(crate) async fn progress(world: &World) -> Outcome<()> {
    let mut client = world.http1(Kind::Well).await?;
    let (id, arguments) = (world.id(), json!({ "number": 20 }));
    let call = Call { id, tool: "count", arguments: &arguments, session: None, progress: true };
    let mut events = Events::new(client.send(call.request()).await?);
    let mut last = 0.0;
    while let Some(event) = events.next().await? {
        if event.message["method"] == "notifications/progress" {
            let progress = event.message["params"]["progress"].as_f64().unwrap_or_default();
            if progress <= last {
                return Err(format!("progress went from {last} to {progress}").into());
            }
            last = progress;
        } else if event.message["id"] == id {
            says(&event.message, "counted to 20")?;
            world.tally.right();
            return if last > 0.0 { Ok(()) } else { Err("no progress was told".into()) };
        }
    }
    Err("a call with progress was not answered".into())
}

/// A call whose stream is lost and taken up again.
pub(crate) async fn resumed(world: &World) -> Outcome<()> {
    let mut client = world.http1(Kind::Well).await?;
    let session = open_session(&mut client, world).await?;
    let (id, arguments) = (world.id(), json!({ "number": 300 }));
    let call = Call { id, tool: "sleep", arguments: &arguments, session: Some(&session), progress: false };
    let mut events = Events::new(client.send(call.request()).await?);
    let place = events.next().await?.and_then(|event| event.id).ok_or("the stream did not say its place")?;
    drop((events, client));
    let mut client = world.http1(Kind::Well).await?;
    let again = client.send(bare(Method::GET, &session, Some(&place))).await?;
    says(&answer(again, id).await?, "slept for 300")?;
    world.tally.right();
    // The connection is new: over HTTP/1.1 a stream that is left ends it.
    let mut client = world.http1(Kind::Well).await?;
    expect(client.send(bare(Method::DELETE, &session, None)).await?, StatusCode::NO_CONTENT).await?;
    Ok(())
}

/// A call that is taken back, and one after it.
pub(crate) async fn cancelled(world: &World) -> Outcome<()> {
    let (mut client, mut other) = (world.http1(Kind::Well).await?, world.http1(Kind::Well).await?);
    let session = open_session(&mut client, world).await?;
    let (id, none) = (world.id(), json!({}));
    let call = Call { id, tool: "never", arguments: &none, session: Some(&session), progress: false };
    let mut events = Events::new(client.send(call.request()).await?);
    events.next().await?;
    let notice = crate::client::legacy_notice("notifications/cancelled", &json!({ "requestId": id }), &session);
    expect(other.send(notice).await?, StatusCode::ACCEPTED).await?;
    while let Some(event) = events.next().await? {
        if event.message["id"] == id {
            return Err(format!("a call that was taken back was answered {}", event.message).into());
        }
    }
    echo(world, &mut other, Some(&session)).await?;
    expect(other.send(bare(Method::DELETE, &session, None)).await?, StatusCode::NO_CONTENT).await?;
    Ok(())
}

/// A message of a megabyte in both directions.
pub(crate) async fn large(world: &World) -> Outcome<()> {
    let mut client = if world.below(2) == 0 { world.http1(Kind::Well).await? } else { world.http2(Kind::Well).await? };
    let text = "a large text, ".repeat(1024 * 1024 / 14);
    let arguments = json!({ "text": text });
    let call = Call { id: world.id(), tool: "echo", arguments: &arguments, session: None, progress: false };
    client.call(call, &text).await?;
    world.tally.right();
    Ok(())
}

/// Handlers that block, beside which small calls go on.
pub(crate) async fn blocking(world: &World) -> Outcome<()> {
    let mut client = world.http1(Kind::Well).await?;
    let arguments = json!({ "number": 50 });
    let call = Call { id: world.id(), tool: "block", arguments: &arguments, session: None, progress: false };
    client.call(call, "blocked for 50").await?;
    world.tally.right();
    Ok(())
}

/// The pair of 2024-11-05.
pub(crate) async fn pair(world: &World) -> Outcome<()> {
    let (mut client, mut poster) = (world.http1(Kind::Well).await?, world.http1(Kind::Well).await?);
    let (mut events, address) = open_pair(&mut client).await?;
    let mut say = async |id: u64, method: &str, params: Value| {
        let mut request = legacy(id, method, &params, None);
        *request.uri_mut() = address.parse()?;
        expect(poster.send(request).await?, StatusCode::ACCEPTED).await?;
        while let Some(event) = events.next().await? {
            if event.message["id"] == id {
                return Outcome::Ok(event.message);
            }
        }
        Err("the pair's stream ended".into())
    };
    if say(world.id(), "initialize", hello(FIRST, &json!({}))).await?["result"]["protocolVersion"] != FIRST {
        return Err("the pair's handshake went wrong".into());
    }
    for _ in 0..CALLS / 4 {
        let text = format!("said {}", world.below(1 << 40));
        let call = json!({ "name": "echo", "arguments": { "text": text } });
        says(&say(world.id(), "tools/call", call).await?, &text)?;
        world.tally.right();
        pause(world, 60).await;
    }
    Ok(())
}

/// Opens the stream of a pair; gives it and where to post.
pub(crate) async fn open_pair(client: &mut Client) -> Outcome<(Events, String)> {
    let mut request = bare(Method::GET, "", None);
    *request.uri_mut() = http::Uri::from_static("http://localhost/sse");
    request.headers_mut().remove("mcp-session-id");
    request.headers_mut().remove("mcp-protocol-version");
    let mut events = Events::new(client.send(request).await?);
    let endpoint = events.next().await?.ok_or("the pair's stream ended at once")?.data;
    Ok((events, format!("http://localhost{endpoint}")))
}

/// A small call, whose time counts.
async fn echo(world: &World, client: &mut Client, session: Option<&str>) -> Outcome<()> {
    let text = format!("said {}", world.below(1 << 40));
    let arguments = json!({ "text": text });
    let call = Call { id: world.id(), tool: "echo", arguments: &arguments, session, progress: false };
    world.tally.small(client.call(call, &text).await?);
    Ok(())
}

async fn change(world: &World, client: &mut Client, session: Option<&str>) -> Outcome<()> {
    let none = json!({});
    let call = Call { id: world.id(), tool: "change", arguments: &none, session, progress: false };
    client.call(call, "changed").await?;
    world.tally.right();
    Ok(())
}

fn says(answer: &Value, text: &str) -> Outcome<()> {
    let said = &answer["result"]["content"][0]["text"];
    if said == text { Ok(()) } else { Err(format!("{text:?} was asked for, and answered {answer:.300}").into()) }
}

/// About so many milliseconds.
pub(crate) async fn pause(world: &World, milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds / 2 + world.below(milliseconds))).await;
}
