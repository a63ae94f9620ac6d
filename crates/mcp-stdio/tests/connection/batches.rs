//! Arrays of messages: received by one revision, refused by all others.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::{Client, Seen, call, cancel, modern, server, settle};

fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
}

/// The answer to a batch by id; errors without an id under `null`.
fn by_id(answer: &Value) -> Vec<(String, Value)> {
    let mut answers: Vec<_> =
        answer.as_array().unwrap().iter().map(|each| (each["id"].to_string(), each.clone())).collect();
    answers.sort_by(|one, other| one.0.cmp(&other.0));
    answers
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_by_one_array_when_all_is_answered() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-03-26").await;
    client.say(json!([call(1, "sleep", 50), ping(2), call(3, "text", 1)])).await;
    client.say(ping("between")).await;
    assert_eq!(client.hear().await["id"], "between");
    let answers = by_id(&client.hear().await);
    assert_eq!(answers.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["1", "2", "3"]);
    assert!(answers.iter().all(|(_, answer)| answer.get("result").is_some()), "{answers:?}");
    client.say(json!([ping(4), ping(5)])).await;
    assert_eq!(by_id(&client.hear().await).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_bad_element_has_an_error_of_its_own() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-03-26").await;
    client
        .say(json!([17, {"jsonrpc": "1.0", "id": 1, "method": "ping"}, crate::client::initialize("2025-03-26"), modern(ping(2)), ping(3)]))
        .await;
    let answers = by_id(&client.hear().await);
    let codes: Vec<_> = answers.iter().map(|(id, answer)| (id.as_str(), answer["error"]["code"].as_i64())).collect();
    let refused = Some(-32600);
    assert_eq!(codes, [("\"hello\"", refused), ("1", refused), ("2", refused), ("3", None), ("null", refused)]);
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_answer_gets_none() {
    let seen = Arc::<Seen>::default();
    let mut client = Client::legacy(&server(&seen), "2025-03-26").await;
    client.say(call(1, "sleep", 10_000)).await;
    settle().await;
    client.say(json!([cancel(1), {"jsonrpc": "2.0", "method": "notifications/nonsense"}])).await;
    client.hear_nothing().await;
    settle().await;
    assert_eq!(seen.cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_element_is_left_out_of_the_answer() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-03-26").await;
    client.say(json!([call(1, "sleep", 50), call(2, "sleep", 50)])).await;
    settle().await;
    client.say(cancel(1)).await;
    let answers = by_id(&client.hear().await);
    assert_eq!(answers.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["2"]);
    client.say(json!([call(3, "sleep", 50)])).await;
    settle().await;
    client.say(cancel(3)).await;
    settle().await;
    client.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn an_element_may_answer_a_question_of_another() {
    let mut client = Client::connect(&server(&Arc::default()));
    // The client of this revision cannot fill in forms, so the question is refused in its result.
    client.shake_hands("2025-03-26").await;
    client.say(json!([call(1, "greet", 0), ping(2)])).await;
    let answers = by_id(&client.hear().await);
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0].1["result"]["isError"], true, "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn an_empty_batch_is_an_error() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-03-26").await;
    client.say(json!([])).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_refused_as_a_whole_before_the_handshake_and_by_other_revisions() {
    for revision in [None, Some("2024-11-05"), Some("2025-06-18"), Some("2025-11-25")] {
        let mut client = Client::connect(&server(&Arc::default()));
        if let Some(revision) = revision {
            client.shake_hands(revision).await;
        }
        client.say(json!([ping(1), modern(ping(2))])).await;
        let answer = client.hear().await;
        assert_eq!(answer["error"]["code"], -32600, "{revision:?}: {answer}");
        assert!(answer["id"].is_null(), "{revision:?}: {answer}");
        client.hear_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_was_read_is_answered_after_the_end_of_input() {
    let mut client = Client::legacy(&server(&Arc::default()), "2025-03-26").await;
    client.say(json!([call(1, "sleep", 200), ping(2)])).await;
    client.end().await;
    let all = client.hear_all().await;
    assert_eq!(all.len(), 1);
    assert_eq!(by_id(&all[0]).len(), 2);
}
