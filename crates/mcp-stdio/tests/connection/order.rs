//! Requests beside each other: nobody waits for a handler, and a cancellation is never late.

use std::sync::Arc;

use mcp_core::Limits;
use serde_json::{Value, json};

use crate::client::{Client, Seen, builder, call, cancel, listen, modern, server, settle, small_server};

#[tokio::test(start_paused = true)]
async fn both_eras_take_turns_on_one_pipe() {
    let mut client = Client::connect(&server(&Arc::default()));
    client.say(modern(call(1, "text", 3))).await;
    assert_eq!(client.hear().await["result"]["resultType"], "complete");
    client.shake_hands("2025-06-18").await;
    client.say(call(2, "sleep", 50)).await;
    client.say(modern(call(3, "sleep", 20))).await;
    let (first, second) = (client.hear().await, client.hear().await);
    assert_eq!((&first["id"], &first["result"]["resultType"]), (&json!(3), &json!("complete")));
    assert_eq!((&second["id"], second["result"].get("resultType")), (&json!(2), None));
}

#[tokio::test(start_paused = true)]
async fn a_second_handshake_is_refused_and_changes_nothing() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-06-18").await;
    client.say(crate::client::initialize("2025-11-25")).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    client.say(call(1, "text", 1)).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "x");
}

#[tokio::test(start_paused = true)]
async fn reading_does_not_wait_for_handlers() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::connect(&small_server(&seen, 2, 10));
    for id in 0..5 {
        client.say(modern(call(id, "sleep", 10_000))).await;
    }
    client.hear_nothing().await;
    settle().await;
    assert_eq!(seen.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_wait_in_order_and_beyond_that_are_refused() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::connect(&small_server(&seen, 2, 3));
    for id in 0..6 {
        client.say(modern(call(id, "sleep", 1_000))).await;
    }
    let refusal = client.hear().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(5), &json!(-32603)), "{refusal}");
    let mut answered = Vec::new();
    for _ in 0..5 {
        let answer = client.hear().await;
        assert_eq!(answer["result"]["content"][0]["text"], "slept");
        answered.push(answer["id"].as_u64().unwrap());
    }
    answered[..2].sort_unstable();
    answered[2..4].sort_unstable();
    assert_eq!(answered, [0, 1, 2, 3, 4]);
    assert_eq!(seen.most_at_a_time(), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_that_hold_too_many_bytes_are_refused_until_some_have_ended() {
    let mut limits = Limits::default();
    limits.received_bytes_per_peer = 10_000;
    let server = builder(&Arc::default()).limits(limits).build().unwrap();
    let mut client = Client::connect(&server);
    let padded = |id: u64| {
        let mut message = modern(call(id, "sleep", 1_000));
        message["padding"] = Value::from("x".repeat(6_000));
        message
    };
    client.say(padded(1)).await;
    client.say(padded(2)).await;
    let refusal = client.hear().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(2), &json!(-32603)), "{refusal}");
    assert_eq!(client.hear().await["id"], 1);
    client.say(padded(2)).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "slept");
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_under_way_is_refused_until_its_answer() {
    let mut client = Client::connect(&server(&Arc::default()));
    client.say(modern(call(1, "sleep", 100))).await;
    client.say(modern(call(1, "sleep", 100))).await;
    let refusal = client.hear().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(1), &json!(-32600)), "{refusal}");
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "slept");
    client.say(modern(call(1, "text", 1))).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "x");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_stops_and_is_not_answered() {
    for id in [json!(0), json!(""), json!("a")] {
        let seen = Arc::<Seen>::default();
        let mut client = Client::connect(&server(&seen));
        client.say(modern(call(id.clone(), "sleep", 10_000))).await;
        settle().await;
        client.say(cancel(id.clone())).await;
        client.hear_nothing().await;
        settle().await;
        assert_eq!((seen.started(), seen.cancelled()), (1, 1), "{id}");
        client.end().await;
        assert_eq!(client.hear_all().await, [json!(null); 0], "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_what_is_over_or_never_was_does_nothing() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-11-25").await;
    client.say(call(1, "text", 1)).await;
    assert_eq!(client.hear().await["id"], 1);
    for id in [json!(1), json!(99), json!("hello")] {
        client.say(cancel(id)).await;
    }
    client.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled"})).await;
    client.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_can_be_cancelled_and_never_runs() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::connect(&small_server(&seen, 1, 2));
    client.say(modern(call(1, "sleep", 1_000))).await;
    client.say(modern(call(2, "sleep", 1_000))).await;
    client.say(modern(call(3, "sleep", 1_000))).await;
    settle().await;
    client.say(cancel(2)).await;
    settle().await;
    // Its place among those that wait is free again.
    client.say(modern(call(4, "sleep", 1_000))).await;
    for id in [1, 3, 4] {
        assert_eq!(client.hear().await["id"], id);
    }
    client.hear_nothing().await;
    assert_eq!((seen.started(), seen.cancelled()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn subscriptions_keep_nobody_from_running() {
    let mut client = Client::connect(&small_server(&Arc::default(), 1, 5));
    for id in ["a", "b", "c"] {
        client.say(listen(id)).await;
        assert_eq!(client.hear().await["method"], "notifications/subscriptions/acknowledged");
    }
    client.say(modern(call(1, "text", 1))).await;
    assert_eq!(client.hear().await["id"], 1);
    client.say(cancel("b")).await;
    client.hear_nothing().await;
    client.say(modern(call(2, "grow", 0))).await;
    let mut told = Vec::new();
    for _ in 0..3 {
        let message = client.hear().await;
        let tag = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        told.push(if message["id"] == 2 { "grown".to_owned() } else { tag.as_str().unwrap().to_owned() });
    }
    told.sort_unstable();
    assert_eq!(told, ["a", "c", "grown"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_told_of_changes_and_asked_on_its_own_pipe() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-11-25").await;
    client.say(call(1, "greet", 0)).await;
    let question = client.hear().await;
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"name": "Ann"}});
    client.say(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "Hello, Ann!");
    client.say(call(2, "grow", 0)).await;
    let heard = [client.hear().await, client.hear().await];
    assert!(heard.iter().any(|message| message["method"] == "notifications/tools/list_changed"), "{heard:?}");
    assert!(heard.iter().any(|message| message["id"] == 2), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn the_handshake_is_answered_before_the_session_is_told_anything() {
    let server = server(&Arc::default());
    let mut client = Client::connect(&server);
    client.say(crate::client::initialize("2025-11-25")).await;
    client.say(call(1, "grow", 0)).await;
    assert_eq!(client.hear().await["id"], "hello");
}
