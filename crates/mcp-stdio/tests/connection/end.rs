//! The end of a connection, from either side.

use std::sync::Arc;
use std::time::Duration;

use mcp_wire::TransportError;
use serde_json::json;
use tokio::time::Instant;

use crate::client::{Client, Seen, call, cancel, listen, modern, server, settle};

#[tokio::test(start_paused = true)]
async fn without_a_message_it_ends_at_once() {
    let mut client = Client::connect(&server(&Arc::default()));
    client.end().await;
    assert_eq!(client.hear_line().await, None);
    let (outcome, took) = client.served().await;
    assert!(outcome.is_ok() && took.is_zero(), "{outcome:?} after {took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_the_end_is_answered() {
    let started = Instant::now();
    let mut client = Client::legacy(&server(&Arc::default()), "2025-11-25").await;
    client.say(call(1, "sleep", 200)).await;
    client.say(modern(call(2, "sleep", 100))).await;
    client.end().await;
    let ids: Vec<_> = client.hear_all().await.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [2, 1]);
    let (outcome, _) = client.served().await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(started.elapsed() < Duration::from_millis(300), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_last_line_needs_no_line_feed() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (mut near, far) = tokio::io::duplex(1024);
    let serving = mcp_core::serve(server(&Arc::default()), mcp_stdio::Pipe::over(far));
    let talking = async {
        near.write_all(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await.unwrap();
        near.shutdown().await.unwrap();
        let mut heard = String::new();
        near.read_to_string(&mut heard).await.unwrap();
        heard
    };
    let (served, heard) = tokio::join!(serving, talking);
    served.unwrap();
    assert_eq!(heard, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

#[tokio::test(start_paused = true)]
async fn handlers_that_take_too_long_are_told_and_not_waited_for() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::connect(&server(&seen));
    client.say(modern(call(1, "sleep", 3_600_000))).await;
    client.say(modern(call(2, "sleep", 1_000))).await;
    settle().await;
    client.end().await;
    let started = Instant::now();
    let ids: Vec<_> = client.hear_all().await.iter().map(|answer| answer["id"].clone()).collect();
    let (outcome, _) = client.served().await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(ids, [2]);
    assert_eq!(seen.cancelled(), 1);
    assert!(started.elapsed() <= Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_stop_does_not_keep_the_connection() {
    let stubborn = mcp_core::Tool::typed("stubborn", |_: crate::client::Amount, _: mcp_core::RequestContext| async {
        std::future::pending::<Result<String, mcp_core::HandlerError>>().await
    });
    let server = crate::client::builder(&Arc::default()).tool(stubborn.timeout(None)).build().unwrap();
    let mut client = Client::connect(&server);
    client.say(modern(call(1, "stubborn", 0))).await;
    settle().await;
    client.end().await;
    let started = Instant::now();
    let (outcome, _) = client.served().await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn what_was_cancelled_before_the_end_is_not_answered() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::connect(&server(&seen));
    client.say(modern(call(1, "sleep", 500))).await;
    client.say(modern(call(2, "sleep", 500))).await;
    client.say(cancel(1)).await;
    client.end().await;
    let ids: Vec<_> = client.hear_all().await.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [2]);
}

#[tokio::test(start_paused = true)]
async fn subscriptions_get_their_closing_result() {
    let mut client = Client::connect(&server(&Arc::default()));
    client.say(listen("changes")).await;
    client.hear().await;
    client.end().await;
    let all = client.hear_all().await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((&all[0]["id"], &all[0]["result"]["resultType"]), (&json!("changes"), &json!("complete")));
    let (outcome, took) = client.served().await;
    assert!(outcome.is_ok() && took.is_zero(), "{outcome:?} after {took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_one_connection_is_none_of_another() {
    let server = server(&Arc::default());
    let (mut one, mut other) = (Client::connect(&server), Client::connect(&server));
    for client in [&mut one, &mut other] {
        client.say(listen("changes")).await;
        client.hear().await;
    }
    one.end().await;
    assert_eq!(one.hear_all().await.len(), 1);
    other.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn questions_that_nobody_can_answer_any_more_fail() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-11-25").await;
    client.say(call(1, "greet", 0)).await;
    assert_eq!(client.hear().await["method"], "elicitation/create");
    client.say(call(2, "greet", 0)).await;
    client.end().await;
    let started = Instant::now();
    let all = client.hear_all().await;
    let errors: Vec<_> = all.iter().filter(|message| message.get("error").is_some()).collect();
    assert_eq!(errors.len(), 2, "{all:?}");
    assert!(started.elapsed().is_zero(), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_ends_everything_at_once() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::with_pipe(&server(&seen), 256);
    client.say(modern(call(1, "sleep", 60_000))).await;
    client.say(modern(call(2, "text", 10_000))).await;
    settle().await;
    let started = Instant::now();
    let outcome = client.vanish().await.unwrap();
    assert!(matches!(outcome, Err(TransportError::Closed)), "{outcome:?}");
    assert!(started.elapsed().is_zero(), "{:?}", started.elapsed());
    settle().await;
    assert_eq!(seen.cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_does_not_keep_the_connection() {
    let mut client = Client::with_pipe(&server(&Arc::default()), 256);
    client.say(modern(call(1, "text", 10_000))).await;
    settle().await;
    client.end().await;
    let started = Instant::now();
    let (outcome, _) = client.served().await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(started.elapsed() <= Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_server_shuts_down_in_order() {
    let seen = Arc::<Seen>::default();
    let server = server(&seen);
    let mut client = Client::connect(&server);
    client.say(listen("changes")).await;
    client.hear().await;
    client.say(modern(call(1, "sleep", 500))).await;
    client.say(modern(call(2, "sleep", 60_000))).await;
    settle().await;
    let started = Instant::now();
    let (all, ()) = tokio::join!(client.hear_all(), server.shutdown(Duration::from_secs(1)));
    let ids: Vec<_> = all.iter().map(|answer| answer["id"].clone()).collect();
    // A handler that returns when it is cancelled may still be heard.
    assert_eq!(ids[..2], [json!("changes"), json!(1)]);
    let (outcome, _) = client.served().await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(seen.cancelled(), 1);
    assert_eq!(started.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_nobody_when_all_is_answered() {
    let server = server(&Arc::default());
    let mut client = Client::legacy(&server, "2025-11-25").await;
    client.hear_nothing().await;
    let started = Instant::now();
    let shutting_down = server.shutdown(Duration::from_secs(60));
    tokio::select! {
        all = client.hear_all() => assert_eq!(all.len(), 0),
        () = shutting_down => panic!("the connection waited for the whole grace"),
    }
    assert!(started.elapsed().is_zero(), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_connection_cancels_what_runs() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::connect(&server(&seen));
    client.say(modern(call(1, "sleep", 60_000))).await;
    settle().await;
    client.vanish().abort();
    settle().await;
    assert_eq!(seen.cancelled(), 1);
}
