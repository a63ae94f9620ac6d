//! Much at a time: nothing is lost, mixed or piled up.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_core::Connection;
use mcp_stdio::Pipe;
use mcp_wire::{MessageReader as _, Transport as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::client::{Client, Seen, call, cancel, modern, server, settle};

/// A response of which only what is compared is decoded.
#[derive(serde::Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: &'a serde_json::value::RawValue,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_calls_in_one_burst_are_each_answered_once() {
    const CALLS: u64 = 500;
    const LENGTH: usize = 256 * 1024;
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (near_reader, mut near_writer) = tokio::io::split(near);
    let mut requests = String::new();
    for id in 0..CALLS {
        requests.push_str(&modern(call(id, "text", LENGTH)).to_string());
        requests.push('\n');
        if id % 10 == 0 {
            requests.push_str("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nonsense\"}\r\n\n");
        }
    }
    let talking = async move {
        for chunk in requests.as_bytes().chunks(7) {
            near_writer.write_all(chunk).await.unwrap();
        }
        near_writer.shutdown().await.unwrap();
    };
    let listening = async move {
        let (mut reader, _) = Pipe::new(near_reader, tokio::io::sink()).split();
        let mut answered = BTreeSet::new();
        while let Some(line) = reader.next().await.unwrap() {
            let answer: Answer<'_> = serde_json::from_slice(&line).unwrap();
            assert!(answer.result.get().len() > LENGTH, "{}", answer.result);
            assert!(answered.insert(answer.id), "{} twice", answer.id);
        }
        answered
    };
    // All of it goes through in time on a machine that does nothing else.
    let connection = Connection::new(server(&Arc::default())).grace(Duration::from_secs(120));
    let serving = connection.serve(Pipe::over(far));
    let (served, (), answered) = tokio::join!(serving, talking, listening);
    served.unwrap();
    assert_eq!(answered, (0..CALLS).collect());
}

#[tokio::test(start_paused = true)]
async fn lines_around_a_buffers_length_and_of_megabytes_pass_both_ways() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-11-25").await;
    for length in [65_535, 65_536, 65_537, 1024 * 1024, 5 * 1024 * 1024] {
        client.say(call(length as u64, "text", length)).await;
        assert_eq!(client.hear().await["result"]["content"][0]["text"].as_str().map(str::len), Some(length));
        let mut ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}});
        ping["params"]["padding"] = Value::from("x".repeat(length));
        client.say(ping).await;
        assert_eq!(client.hear().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    }
}

/// A call that tells of its progress.
fn counting(id: u64, steps: usize) -> Value {
    let mut message = modern(call(id, "count", steps));
    message["params"]["_meta"]["progressToken"] = json!("p");
    message
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_holds_back_notices_and_gets_the_last_one() {
    let mut client = Client::with_pipe(&server(&Arc::default()), 512);
    client.say(counting(1, 20_000)).await;
    settle().await;
    let mut last = 0.0;
    let mut notices = 0;
    let answer = loop {
        let message = client.hear().await;
        if message["id"] == 1 {
            break message;
        }
        let progress = message["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{progress} after {last}");
        last = progress;
        notices += 1;
    };
    assert_eq!(answer["result"]["content"][0]["text"], "counted");
    assert!((last - 20_000.0).abs() < 0.5, "{last}");
    assert!(notices >= 100, "{notices}");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_reaches_a_handler_that_a_slow_reader_holds_back() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::with_pipe(&server(&seen), 512);
    client.say(modern(call(9, "sleep", 3_600_000))).await;
    client.say(counting(1, 1_000_000)).await;
    settle().await;
    client.say(cancel(1)).await;
    client.say(cancel(9)).await;
    settle().await;
    assert_eq!(seen.cancelled(), 1);
    client.say(json!({"jsonrpc": "2.0", "id": "last", "method": "ping"})).await;
    let mut notices = 0;
    loop {
        let message = client.hear().await;
        if message["id"] == "last" {
            break;
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        notices += 1;
    }
    assert!(notices < 200, "{notices}");
}

#[tokio::test(start_paused = true)]
async fn reading_goes_on_while_answers_are_not_taken() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::with_pipe(&server(&seen), 512);
    client.say(modern(call("long", "sleep", 3_600_000))).await;
    settle().await;
    for id in 0..500 {
        client.say(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).await;
    }
    client.say(cancel("long")).await;
    settle().await;
    assert_eq!(seen.cancelled(), 1);
    let mut answered = BTreeSet::new();
    while answered.len() < 500 {
        answered.insert(client.hear().await["id"].as_u64().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_not_read_for_ever() {
    let mut client = Client::with_pipe(&crate::client::small_server(&Arc::default(), 4, 4), 512);
    let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let mut sent = 0;
    let talking = async {
        loop {
            client.say_bytes(&ping).await;
            sent += 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), talking).await.is_err());
    assert!(sent < 200, "{sent}");
}
