//! Clients that try what should not work.
//!
//! Why here: each refusal is defined, and none of them may cost the others anything.
//! Invariants: bounded in number and rate; what comes back is checked where something has to come back.

use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::Outcome;
use crate::client::{Call, Kind, LEGACY, World, bare, expect, hello, initialize, legacy, open_session, with_body};
use crate::serve::{BODY_BYTES, PER_CALLER};
use crate::slow::read_some;

const PATIENCE: Duration = Duration::from_secs(20);

/// Bodies that are no messages.
pub(crate) async fn malformed(world: &World) -> Outcome<()> {
    let mut client =
        if world.below(2) == 0 { world.http1(Kind::Hostile).await? } else { world.http2(Kind::Hostile).await? };
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let nested = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}}}"#);
    let large = "1".repeat(200_000);
    for body in ["", "{", "nothing", "[]", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "\u{0}\u{1}", &nested, &large]
    {
        expect(client.send(with_body(body.to_owned())).await?, StatusCode::BAD_REQUEST).await?;
        world.tally.count("400 for what is no message");
    }
    let mut foreign = with_body("{}".to_owned());
    foreign.headers_mut().insert(HOST, HeaderValue::from_static("evil.example.com"));
    *foreign.uri_mut() = http::Uri::from_static("http://evil.example.com/mcp");
    expect(client.send(foreign).await?, StatusCode::FORBIDDEN).await?;
    world.tally.count("403 for a foreign host");
    let mut elsewhere = with_body("{}".to_owned());
    *elsewhere.uri_mut() = http::Uri::from_static("http://localhost/admin");
    expect(client.send(elsewhere).await?, StatusCode::NOT_FOUND).await?;
    world.tally.count("404 for another path");
    Ok(())
}

/// Sessions that are somebody else's, ended or made up, and handshakes that say too much.
pub(crate) async fn sessions(world: &World) -> Outcome<()> {
    let mut client = world.http1(Kind::Hostile).await?;
    for request in [bare(Method::GET, "made-up", None), bare(Method::DELETE, "made-up", Some("9-9"))] {
        expect(client.send(request).await?, StatusCode::NOT_FOUND).await?;
        world.tally.count("404 for a session that is none");
    }
    let much = hello(LEGACY, &json!({ "experimental": { "x": "y".repeat(100_000) } }));
    let refused = expect(client.send(legacy(1, "initialize", &much, None)).await?, StatusCode::OK).await?;
    if !String::from_utf8_lossy(&refused).contains("-32602") {
        return Err("a handshake of 100 kB was not refused".into());
    }
    world.tally.count("-32602 for a handshake that is too large");
    let session = open_session(&mut client, world).await?;
    for uri in 0..50 {
        let params = json!({ "uri": format!("soak://{uri}/{}", "z".repeat(1_000)) });
        expect(client.send(legacy(world.id(), "resources/subscribe", &params, Some(&session))).await?, StatusCode::OK)
            .await?;
    }
    let place = format!("{}-{}", u64::MAX, u64::MAX);
    let stream = client.send(bare(Method::GET, &session, Some(&place))).await?;
    if stream.status() != StatusCode::OK {
        return Err(format!("a place that nobody knows was answered {}", stream.status()).into());
    }
    world.tally.count("subscriptions and places of no use");
    Ok(())
}

/// Bodies and heads beyond their bounds.
pub(crate) async fn oversized(world: &World) -> Outcome<()> {
    let length = BODY_BYTES + 1;
    for head in
        [format!("content-length: {length}\r\n\r\n"), format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n")]
    {
        let mut socket = world.socket(Kind::Hostile).await?;
        let head = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{head}");
        socket.write_all(head.as_bytes()).await?;
        let zeros = vec![b'0'; 64 * 1024];
        // Until the answer comes, which may be before the end.
        for _ in 0..length.div_ceil(zeros.len()) {
            if socket.write_all(&zeros).await.is_err() {
                break;
            }
        }
        // What was sent behind the refusal may reset the connection before it is read.
        if let Ok(answer) = read_some(&mut socket).await
            && !(answer.is_empty() || answer.starts_with("HTTP/1.1 413 "))
        {
            return Err(format!("a body that is too large was answered {answer:.300}").into());
        }
        world.tally.count("413 for a body that is too large");
    }
    let mut socket = world.socket(Kind::Hostile).await?;
    let long = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(200 * 1024));
    let _ = socket.write_all(long.as_bytes()).await;
    if let Ok(answer) = read_some(&mut socket).await
        && !(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "))
    {
        return Err(format!("a head that is too large was answered {answer:.300}").into());
    }
    world.tally.count("431 for a head that is too large");
    Ok(())
}

/// Lengths that lie.
pub(crate) async fn lying(world: &World) -> Outcome<()> {
    let mut client = world.http1(Kind::Hostile).await?;
    let mut request = initialize(world.id());
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
    // Whether the client sends it or not, the server must stay.
    let _ = timeout(PATIENCE, client.send(request)).await;
    let mut socket = world.socket(Kind::Hostile).await?;
    let two = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n{}";
    socket.write_all(two.as_bytes()).await?;
    let answer = read_some(&mut socket).await?;
    if !answer.starts_with("HTTP/1.1 400 ") {
        return Err(format!("two lengths were answered {answer:.300}").into());
    }
    world.tally.count("400 for lengths that lie");
    Ok(())
}

/// Bytes of no protocol.
pub(crate) async fn noise(world: &World) -> Outcome<()> {
    let mut socket = world.socket(Kind::Hostile).await?;
    let mut bytes: Vec<u8> = (0..2_000).map(|_| u8::try_from(world.below(256)).unwrap_or_default()).collect();
    if world.below(2) == 0 {
        bytes.splice(0..0, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".iter().copied());
    }
    socket.write_all(&bytes).await?;
    let mut answer = Vec::new();
    // An answer, a reset or a silence that is cut: whatever it is, it ends.
    let _ = timeout(PATIENCE, socket.read_to_end(&mut answer)).await.map_err(|_| "noise was listened to")?;
    world.tally.count("ended for noise");
    Ok(())
}

/// HTTP/2 requests that are taken back at once, until the connection is ended.
pub(crate) async fn resets(world: &World) -> Outcome<()> {
    /// HEADERS for `GET / HTTP` from the static table, and RST_STREAM behind it.
    fn taken_back(stream: u32) -> Vec<u8> {
        let id = stream.to_be_bytes();
        let headers = [&[0, 0, 3, 1, 5][..], &id, &[0x82, 0x86, 0x84]].concat();
        [headers, [&[0, 0, 4, 3, 0][..], &id, &[0, 0, 0, 8]].concat()].concat()
    }
    let mut socket = world.socket(Kind::Hostile).await?;
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    let flood = (0..2_000).flat_map(|number| taken_back(2 * number + 1));
    let bytes: Vec<u8> = begin.into_iter().chain(flood).collect();
    let _ = socket.write_all(&bytes).await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, socket.read_to_end(&mut answer)).await.map_err(|_| "a flood of resets was let be")?;
    world.tally.count("ended for resets");
    Ok(())
}

/// More calls at a time than one caller may have.
pub(crate) async fn flood(world: &World) -> Outcome<()> {
    let none = json!({});
    let (mut clients, mut calls) = (Vec::new(), Vec::new());
    let connections = PER_CALLER / 100 + 1;
    for _ in 0..connections {
        let mut client = world.http2(Kind::Flooding).await?;
        for _ in 0..100 {
            let call = Call { id: world.id(), tool: "never", arguments: &none, session: None, progress: false };
            calls.push(client.begin(call.request()));
        }
        clients.push(client);
    }
    // Those that have a place hear of it after two seconds; the others at once.
    let mut refused = 0;
    let waiting = async {
        for call in calls {
            let Ok(response) = call.await else { continue };
            match response.status() {
                StatusCode::OK => {}
                StatusCode::TOO_MANY_REQUESTS => refused += 1,
                other => return Err(format!("a flood was answered {other}")),
            }
        }
        Ok(())
    };
    timeout(PATIENCE, waiting).await.map_err(|_| "a flood was not answered")??;
    if refused == 0 {
        return Err("more calls than one caller may have were all taken".into());
    }
    (0..refused).for_each(|_| world.tally.count("429 for too many calls"));
    Ok(())
}
