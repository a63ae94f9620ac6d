//! A set of keys at an address that is slow, down, huge, lying or rotating, with callers all the while.

use std::sync::Arc;
use std::time::Duration;

use mcp_auth::{AuthError, AuthProvider, Bearer, IssuerKeys, Jwks, JwtVerifier};
use mcp_core::Principal;
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use crate::support::{AUDIENCE, Endpoint, ISSUER, NOW, Reply, Signer, clock, key_set, present, together};

/// Behind everything the tests do.
const LATER: u64 = NOW + 1_000_000;

fn provider(endpoint: &Arc<Endpoint>) -> Arc<Bearer> {
    let set = Jwks::new("https://login.example/jwks", endpoint.clone()).unwrap();
    let verifier =
        JwtVerifier::new([AUDIENCE]).and_then(|verifier| verifier.and_issuer(ISSUER, IssuerKeys::fetched(set)));
    Arc::new(Bearer::new(verifier.unwrap().with_clock(clock())))
}

fn serving(keys: &[Value]) -> Reply {
    Reply::Body(200, key_set(keys))
}

fn token(signer: &Signer, id: &str) -> String {
    signer.token(id, &json!({ "exp": LATER }))
}

/// All at once.
async fn crowd(provider: &Arc<Bearer>, tokens: Vec<String>) -> Vec<Result<Principal, AuthError>> {
    together(tokens.into_iter().map(|token| {
        let provider = Arc::clone(provider);
        async move { present(&*provider, &token).await }
    }))
    .await
}

/// Lets a fetch that nobody waits for come to its end.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_before_the_first_set_makes_one_fetch() {
    let signer = Signer::ed();
    let endpoint = Endpoint::new(Reply::Late(Duration::from_secs(4), 200, key_set(&[signer.jwk("k1")])));
    let provider = provider(&endpoint);
    let started = Instant::now();
    let outcomes = crowd(&provider, vec![token(&signer, "k1"); 200]).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!((endpoint.asked(), started.elapsed().as_secs()), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_never_answers_costs_every_caller_five_seconds_at_most() {
    let signer = Signer::ed();
    let endpoint = Endpoint::new(Reply::Never);
    let provider = provider(&endpoint);
    let started = Instant::now();
    let outcomes = crowd(&provider, vec![token(&signer, "k1"); 100]).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Err(AuthError::Unavailable)), "{outcomes:?}");
    assert_eq!((endpoint.asked(), started.elapsed().as_secs()), (1, 5));
    assert_eq!(present(&*provider, &token(&signer, "k1")).await, Err(AuthError::Unavailable));
    assert_eq!((endpoint.asked(), started.elapsed().as_secs()), (1, 5), "who comes right after does not wait");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_down_is_asked_every_ten_seconds_and_found_when_it_is_back() {
    let signer = Signer::ed();
    let endpoint = Endpoint::new(Reply::Down);
    let provider = provider(&endpoint);
    for second in 0..60 {
        let outcomes = crowd(&provider, vec![token(&signer, "k1"); 5]).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Err(AuthError::Unavailable)), "second {second}");
        advance(Duration::from_secs(1)).await;
    }
    assert_eq!(endpoint.asked(), 6);
    endpoint.turns(serving(&[signer.jwk("k1")]));
    advance(Duration::from_secs(10)).await;
    assert!(present(&*provider, &token(&signer, "k1")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_last_good_set_serves_for_a_day_whatever_the_endpoint_answers() {
    let (signer, secret) = (Signer::ed(), Signer::Secret(vec![7; 32]));
    let good = serving(&[signer.jwk("k1")]);
    let huge = [key_set(&[signer.jwk("k2")]), vec![b' '; 256 * 1024]].concat();
    let weak = json!({ "kty": "RSA", "kid": "k1", "n": "AQAB", "e": "AQAB" });
    for bad in [
        Reply::Down,
        Reply::Never,
        Reply::Panic,
        Reply::Body(500, key_set(&[signer.jwk("k2")])),
        Reply::Body(302, key_set(&[signer.jwk("k2")])),
        Reply::Body(204, Vec::new()),
        Reply::Body(200, b"<html>Welcome</html>".to_vec()),
        Reply::Body(200, b"{}".to_vec()),
        Reply::Body(200, key_set(&[])),
        Reply::Body(200, huge),
        serving(&[secret.jwk("k1")]),
        serving(&[weak]),
        serving(&vec![signer.jwk("k2"); 101]),
    ] {
        let endpoint = Endpoint::new(good.clone());
        let provider = provider(&endpoint);
        present(&*provider, &token(&signer, "k1")).await.unwrap();
        endpoint.turns(bad);
        advance(Duration::from_secs(600)).await;
        let started = Instant::now();
        for _ in 0..3 {
            assert!(present(&*provider, &token(&signer, "k1")).await.is_ok());
            settle().await;
        }
        assert_eq!(started.elapsed(), Duration::ZERO, "nobody waits for a renewal");
        assert_eq!(endpoint.asked(), 2);
        let made_up = present(&*provider, &token(&secret, "k1")).await;
        assert_eq!(made_up, Err(AuthError::InvalidToken), "a published secret verifies nothing");
        advance(Duration::from_secs(24 * 3600 - 601)).await;
        assert!(present(&*provider, &token(&signer, "k1")).await.is_ok());
        advance(Duration::from_secs(10)).await;
        assert_eq!(present(&*provider, &token(&signer, "k1")).await, Err(AuthError::Unavailable));
        endpoint.turns(good.clone());
        advance(Duration::from_secs(20)).await;
        assert!(present(&*provider, &token(&signer, "k1")).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_rotate_under_load_are_found_and_dropped_keys_die() {
    let signers: Vec<(String, Signer)> = (0..6).map(|index| (format!("k{index}"), Signer::ed())).collect();
    let endpoint = Endpoint::new(Reply::Down);
    let provider = provider(&endpoint);
    for (index, (id, signer)) in signers.iter().enumerate() {
        // The new key and the one before it, as issuers do; everything older is gone.
        let served: Vec<Value> =
            signers[index.saturating_sub(1)..=index].iter().map(|(id, signer)| signer.jwk(id)).collect();
        endpoint.turns(serving(&served));
        advance(Duration::from_secs(15)).await;
        let asked = endpoint.asked();
        let mut tokens = vec![token(signer, id); 50];
        tokens.extend((0..50).map(|number| token(signer, &format!("made-up-{number}"))));
        let outcomes = crowd(&provider, tokens).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 50, "{id}");
        assert!(
            outcomes.iter().flat_map(|outcome| outcome.as_ref().err()).all(|error| *error == AuthError::InvalidToken)
        );
        assert_eq!(endpoint.asked(), asked + 1, "{id}: one fetch, whatever they ask for");
        for (number, (id, signer)) in signers[..=index].iter().enumerate() {
            let lives = present(&*provider, &token(signer, id)).await.is_ok();
            assert_eq!(lives, number + 1 >= index, "{id} after {index}");
        }
    }
    assert_eq!(endpoint.most_open(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_made_up_keys_makes_a_fetch_every_ten_seconds_and_delays_nobody() {
    let signer = Signer::ed();
    let endpoint = Endpoint::new(serving(&[signer.jwk("k1")]));
    let provider = provider(&endpoint);
    present(&*provider, &token(&signer, "k1")).await.unwrap();
    for second in 0..100 {
        let tokens = (0..20).map(|number| token(&signer, &format!("{second}-{number}"))).collect();
        let outcomes = crowd(&provider, tokens).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Err(AuthError::InvalidToken)));
        let started = Instant::now();
        assert!(present(&*provider, &token(&signer, "k1")).await.is_ok());
        assert_eq!(started.elapsed(), Duration::ZERO);
        advance(Duration::from_secs(1)).await;
    }
    assert!(endpoint.asked() <= 11, "{}", endpoint.asked());
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_ends_the_fetch_for_nobody_else() {
    let signer = Signer::ed();
    let endpoint = Endpoint::new(Reply::Late(Duration::from_secs(2), 200, key_set(&[signer.jwk("k1")])));
    let provider = provider(&endpoint);
    let leaving = tokio::time::timeout(Duration::from_secs(1), present(&*provider, &token(&signer, "k1"))).await;
    assert!(leaving.is_err(), "the first caller leaves before there is an answer");
    assert!(present(&*provider, &token(&signer, "k1")).await.is_ok());
    assert_eq!(endpoint.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_panics_leaves_nobody_waiting() {
    let signer = Signer::ed();
    let endpoint = Endpoint::new(Reply::Panic);
    let provider = provider(&endpoint);
    let outcomes = crowd(&provider, vec![token(&signer, "k1"); 20]).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Err(AuthError::Unavailable)));
    assert_eq!(endpoint.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn tokens_of_unknown_issuers_or_forbidden_algorithms_make_no_fetch() {
    let signer = Signer::ed();
    let endpoint = Endpoint::new(Reply::Never);
    let provider = provider(&endpoint);
    let foreign = signer.token("k1", &json!({ "iss": "https://evil.example" }));
    assert_eq!(present(&*provider, &foreign).await, Err(AuthError::NotRecognised));
    let confused = Signer::Secret(vec![7; 32]).token("k1", &json!({}));
    assert_eq!(present(&*provider, &confused).await, Err(AuthError::InvalidToken));
    assert_eq!(endpoint.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_fresh_is_not_questioned_and_options_have_bounds() {
    let signer = Signer::ed();
    let endpoint = Endpoint::new(serving(&[signer.jwk("k1")]));
    let jwks = || Jwks::new("https://login.example/jwks", endpoint.clone()).unwrap();
    for refused in [Duration::ZERO, Duration::from_secs(24 * 3600 + 1)] {
        assert_eq!(jwks().with_freshness(refused).unwrap_err().option(), "freshness");
    }
    assert_eq!(Jwks::new("http://login.example/jwks", endpoint.clone()).unwrap_err().option(), "key set");
    let keys = IssuerKeys::fetched(jwks().with_freshness(Duration::from_secs(60)).unwrap());
    let verifier = JwtVerifier::new([AUDIENCE]).and_then(|verifier| verifier.and_issuer(ISSUER, keys)).unwrap();
    let provider: Arc<dyn AuthProvider> = Arc::new(Bearer::new(verifier.with_clock(clock())));
    for (second, asked) in [(0, 1), (59, 1), (1, 2), (59, 2), (1, 3)] {
        advance(Duration::from_secs(second)).await;
        assert!(present(&*provider, &token(&signer, "k1")).await.is_ok());
        settle().await;
        assert_eq!(endpoint.asked(), asked);
    }
}
