//! What is no message is answered where it can be, and the connection goes on.

use std::sync::Arc;

use mcp_stdio::pair;
use serde_json::json;

use crate::client::{Client, Seen, server};

#[tokio::test(start_paused = true)]
async fn what_is_no_message_is_answered_without_an_id_and_survived() {
    let mut client = Client::connect(&server(&Arc::default()));
    for (line, code) in [
        (&b"Server starting..."[..], -32700),
        (b"{\"jsonrpc\":\"2.0\"", -32700),
        (b"\xff\xfe", -32700),
        (b"17", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7.5,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", -32600),
    ] {
        client.say_bytes(line).await;
        let answer = client.hear().await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer.get("id").is_none(), "{answer}");
    }
    client.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn an_id_that_cannot_be_read_is_null_in_the_revisions_that_want_it() {
    for (revision, null) in [("2024-11-05", true), ("2025-03-26", true), ("2025-06-18", true), ("2025-11-25", false)] {
        let mut client = Client::legacy(&server(&Arc::default()), revision).await;
        client.say_line("{").await;
        let answer = client.hear().await;
        assert_eq!(answer.get("id"), null.then_some(&json!(null)), "{revision}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_echoed_as_it_was_written() {
    let mut client = Client::connect(&server(&Arc::default()));
    for (written, echoed) in
        [("7.0", "7"), ("1e2", "100"), ("9007199254740993", "9007199254740993"), ("\"\"", "\"\""), ("0", "0")]
    {
        client.say_line(&format!(r#"{{"jsonrpc":"2.0","id":{written},"method":"ping"}}"#)).await;
        let line = client.hear_line().await.unwrap();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{echoed},"result":{{}}}}"#);
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn blank_lines_carriage_returns_and_a_byte_order_mark_do_no_harm() {
    let mut client = Client::connect(&server(&Arc::default()));
    client.say_bytes(b"\xef\xbb\xbf\n\r\n  \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r").await;
    assert_eq!(client.hear().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long_is_answered_once_and_the_next_one_is_served() {
    let (near, far) = pair(64 * 1024);
    let mut client = Client::over(&server(&Arc::default()), near, far.max_line(100_000));
    client.say_line(&"x".repeat(1_000_000)).await;
    let answer = client.hear().await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("100000"), "{answer}");
    client.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_handshake_is_refused_and_the_handshake_still_works() {
    let mut client = Client::connect(&server(&Arc::default()));
    client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    client.shake_hands("2025-11-25").await;
    client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert!(client.hear().await["result"]["tools"].is_array());
}

#[tokio::test(start_paused = true)]
async fn unknown_methods_are_answered_and_unknown_notifications_are_not() {
    let mut client = Client::legacy(&server(&Arc::<Seen>::default()), "2025-11-25").await;
    client.say(json!({"jsonrpc": "2.0", "method": "notifications/nonsense"})).await;
    client.say(json!({"jsonrpc": "2.0", "id": 5, "result": {}})).await;
    client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "nonsense"})).await;
    let answer = client.hear().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32601)), "{answer}");
}
