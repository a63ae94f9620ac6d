//! The server at its socket, in both eras, and the promises of the transport.

use std::error::Error;
use std::future::Future as _;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use mcp_wire::{MessageReader as _, MessageWriter as _, Transport as _, TransportError};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use unix_socket::{FrameReader, FrameWriter, Framed, MAX_FRAME};

type Outcome = Result<(), Box<dyn Error>>;

struct Client {
    reader: FrameReader,
    writer: FrameWriter,
}

impl Client {
    async fn say(&mut self, message: Value) -> Result<(), TransportError> {
        self.writer.send(Bytes::from(message.to_string())).await?;
        self.writer.flush().await
    }

    async fn result(&mut self, id: u32, method: &str, params: Value) -> Result<Value, Box<dyn Error>> {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        let frame = self.reader.next().await?.ok_or("the server closed the connection")?;
        let response: Value = serde_json::from_slice(&frame)?;
        assert_eq!(response["id"], id, "{response}");
        Ok(response["result"].clone())
    }
}

/// Serves in a folder of its own while a client does what a test says.
async fn connected(test: impl AsyncFnOnce(Client) -> Outcome) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path)?;
    let server = unix_socket::server()?;
    let client = async {
        let (reader, writer) = Framed(UnixStream::connect(&path).await?).split();
        test(Client { reader, writer }).await
    };
    tokio::select! {
        served = unix_socket::listen(&server, &listener) => served,
        tested = client => tested,
    }
}

fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

#[tokio::test]
async fn a_modern_client_discovers_the_server_and_calls_a_tool() -> Outcome {
    connected(async |mut client| {
        let discovered = client.result(1, "server/discover", modern(json!({}))).await?;
        let versions = discovered["supportedVersions"].as_array().ok_or("no versions")?;
        assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
        let call = modern(json!({ "name": "add", "arguments": { "a": 2, "b": 3 } }));
        let sum = client.result(2, "tools/call", call).await?;
        assert_eq!(sum["content"][0]["text"], "5", "{sum}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_legacy_client_shakes_hands_and_calls_a_tool() -> Outcome {
    connected(async |mut client| {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let agreed = client.result(1, "initialize", hello).await?;
        assert_eq!(agreed["protocolVersion"], "2025-11-25", "{agreed}");
        client.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        let call = json!({ "name": "shout", "arguments": { "text": "hello" } });
        let shouted = client.result(2, "tools/call", call).await?;
        assert_eq!(shouted["content"][0]["text"], "HELLO", "{shouted}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_transport_keeps_its_promises() -> Outcome {
    let (ours, theirs) = UnixStream::pair()?;
    Ok(mcp_core::testing::check_transport(|| (Framed(ours), Framed(theirs))).await?)
}

#[tokio::test]
async fn a_frame_that_was_read_in_part_survives_an_abandoned_read() -> Outcome {
    let (ours, mut theirs) = UnixStream::pair()?;
    let (mut reader, _writer) = Framed(ours).split();
    for part in [&b"\0\0"[..], b"\0\x07fra", b"me"] {
        theirs.write_all(part).await?;
        let mut read = pin!(reader.next());
        // The first poll may only ask to be told of bytes; the second takes them, has no frame, and is abandoned.
        for _ in 0..2 {
            let is_pending =
                std::future::poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_pending())).await;
            assert!(is_pending, "a frame before its end");
            tokio::task::yield_now().await;
        }
    }
    theirs.write_all(b"d!\0\0\0\x01x").await?;
    assert_eq!(reader.next().await?.as_deref(), Some(&b"framed!"[..]));
    assert_eq!(reader.next().await?.as_deref(), Some(&b"x"[..]));
    drop(theirs);
    assert_eq!(reader.next().await?, None);
    Ok(())
}

#[tokio::test]
async fn a_frame_beyond_the_limit_is_reported_and_the_next_one_read() -> Outcome {
    let (ours, mut theirs) = UnixStream::pair()?;
    let (mut reader, _writer) = Framed(ours).split();
    let length = u32::try_from(MAX_FRAME)? + 1;
    let sending = async {
        theirs.write_u32(length).await?;
        theirs.write_all(&vec![b'x'; MAX_FRAME + 1]).await?;
        theirs.write_all(b"\0\0\0\x04next").await
    };
    let reading = async {
        let refused = reader.next().await;
        assert!(matches!(refused, Err(TransportError::FrameTooLong { limit: MAX_FRAME })), "{refused:?}");
        assert_eq!(reader.next().await?.as_deref(), Some(&b"next"[..]));
        Ok::<_, TransportError>(())
    };
    let (sent, read) = tokio::join!(sending, reading);
    sent?;
    Ok(read?)
}

#[tokio::test]
async fn a_connection_that_ends_inside_a_frame_is_not_taken_for_an_end_in_order() -> Outcome {
    let (ours, mut theirs) = UnixStream::pair()?;
    let (mut reader, _writer) = Framed(ours).split();
    theirs.write_all(b"\0\0\0\x09half").await?;
    drop(theirs);
    let ended = reader.next().await;
    assert!(matches!(ended, Err(TransportError::Closed)), "{ended:?}");
    Ok(())
}
