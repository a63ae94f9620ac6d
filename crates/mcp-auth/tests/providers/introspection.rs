//! An authorization server that is asked about tokens: what it is sent, what is remembered, and how long anybody waits.

use std::sync::Arc;
use std::time::Duration;

use mcp_auth::{AuthError, Bearer, Introspection};
use serde_json::json;
use tokio::time::{Instant, advance};

use crate::support::{AUDIENCE, Endpoint, ISSUER, NOW, Reply, clock, present, together};

fn introspection(endpoint: &Arc<Endpoint>) -> Introspection {
    let introspection =
        Introspection::new(ISSUER, "https://login.example/introspect", [AUDIENCE], endpoint.clone()).unwrap();
    introspection.with_clock(clock())
}

fn active(end: u64) -> Reply {
    let answer = json!({ "active": true, "sub": "ann", "aud": AUDIENCE, "exp": NOW + end });
    Reply::Body(200, answer.to_string().into_bytes())
}

fn inactive() -> Reply {
    Reply::Body(200, br#"{"active":false}"#.to_vec())
}

#[tokio::test(start_paused = true)]
async fn the_server_is_sent_the_token_in_a_form_and_who_asks() {
    let endpoint = Endpoint::new(active(60));
    endpoint.follows(|request| {
        let header = |name| request.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let sent = (request.url(), request.form().unwrap(), header("authorization"), header("content-type"));
        // Name and secret are encoded before they are joined: `a%3Ab:c%2Bd`.
        let expected = (
            "https://login.example/introspect",
            "token=t%2B%2F%3D&token_type_hint=access_token",
            Some("Basic YSUzQWI6YyUyQmQ="),
            Some("application/x-www-form-urlencoded"),
        );
        assert_eq!(sent, expected);
        active(60)
    });
    let provider = Bearer::new(introspection(&endpoint).with_client("a:b", "c+d").unwrap());
    assert_eq!(present(&provider, "t+/=").await.unwrap().subject(), "ann");
    assert_eq!(endpoint.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_is_refused_at_its_next_request() {
    let endpoint = Endpoint::new(active(60));
    let provider = Bearer::new(introspection(&endpoint));
    assert!(present(&provider, "t").await.is_ok());
    endpoint.turns(inactive());
    assert_eq!(present(&provider, "t").await, Err(AuthError::InvalidToken));
    assert_eq!(endpoint.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_remembered_answer_ends_with_its_time_or_with_the_token() {
    let endpoint = Endpoint::new(active(5));
    let caching = introspection(&endpoint).with_cache(Duration::from_secs(30)).unwrap();
    let provider = Bearer::new(caching.with_skew(Duration::ZERO).unwrap());
    assert!(present(&provider, "short").await.is_ok());
    endpoint.turns(active(600));
    assert!(present(&provider, "long").await.is_ok());
    endpoint.turns(inactive());
    advance(Duration::from_secs(5)).await;
    assert_eq!(present(&provider, "short").await, Err(AuthError::Expired));
    assert!(present(&provider, "long").await.is_ok());
    assert_eq!(endpoint.asked(), 2);
    advance(Duration::from_secs(25)).await;
    assert_eq!(present(&provider, "long").await, Err(AuthError::InvalidToken));
    assert_eq!(endpoint.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_not_remembered() {
    let endpoint = Endpoint::new(Reply::Down);
    let provider = Bearer::new(introspection(&endpoint).with_cache(Duration::from_secs(60)).unwrap());
    for bad in [Reply::Down, Reply::Body(401, b"{}".to_vec()), Reply::Body(200, b"<html>".to_vec())] {
        endpoint.turns(bad);
        assert_eq!(present(&provider, "t").await, Err(AuthError::Unavailable));
    }
    let padded = [br#"{"active":true}"#.to_vec(), vec![b' '; 64 * 1024]].concat();
    endpoint.turns(Reply::Body(200, padded));
    assert_eq!(present(&provider, "t").await, Err(AuthError::Unavailable));
    endpoint.turns(active(60));
    assert!(present(&provider, "t").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_crowd_asks_thirty_two_at_a_time_and_waits_ten_seconds_at_most() {
    let endpoint = Endpoint::new(Reply::Never);
    let provider = Arc::new(Bearer::new(introspection(&endpoint)));
    let started = Instant::now();
    let outcomes = together((0..200).map(|number| {
        let provider = Arc::clone(&provider);
        async move { present(&*provider, &format!("t{number}")).await }
    }))
    .await;
    assert!(outcomes.iter().all(|outcome| *outcome == Err(AuthError::Unavailable)));
    assert_eq!(endpoint.most_open(), 32);
    assert!(started.elapsed() <= Duration::from_secs(10), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_crowd_with_one_token_asks_as_many_times_as_there_are_turns_where_answers_are_remembered() {
    let endpoint = Endpoint::new(Reply::Late(Duration::from_secs(1), 200, br#"{"active":false}"#.to_vec()));
    let caching = introspection(&endpoint).with_cache(Duration::from_secs(10)).unwrap();
    let provider = Arc::new(Bearer::new(caching));
    let outcomes = together((0..200).map(|_| {
        let provider = Arc::clone(&provider);
        async move { present(&*provider, "t").await }
    }))
    .await;
    assert!(outcomes.iter().all(|outcome| *outcome == Err(AuthError::InvalidToken)));
    assert_eq!(endpoint.asked(), 32, "whoever got no turn finds an answer");
}

#[test]
fn unfit_options_are_refused_at_start() {
    let endpoint = Endpoint::new(Reply::Down);
    let new = |issuer: &str, address: &str, audience: &str| {
        Introspection::new(issuer, address, [audience], endpoint.clone()).unwrap_err().to_string()
    };
    assert_eq!(new("", "https://as.example", "mcp"), "introspection: issuer must not be empty");
    assert_eq!(new("as", "http://as.example", "mcp"), "introspection: endpoint needs an https address");
    assert_eq!(new("as", "https://as.example", ""), "introspection: audience must not be empty");
    let good = || Introspection::new("as", "https://as.example", ["mcp"], endpoint.clone()).unwrap();
    assert_eq!(good().with_client("", "s").unwrap_err().option(), "client");
    assert_eq!(good().with_client("c", "").unwrap_err().option(), "client");
    assert_eq!(good().with_cache(Duration::from_secs(61)).unwrap_err().option(), "cache");
    assert_eq!(good().with_skew(Duration::from_secs(301)).unwrap_err().option(), "skew");
    let printed = format!("{:?}", good().with_client("client", "secret-value").unwrap());
    assert!(!printed.contains("secret-value") && !printed.contains("c2VjcmV0"), "{printed}");
}
