//! Introspection: what is asked holds the token and nothing else of it, a token is let in exactly if an oracle says so of
//! the answer, and what is remembered of an answer is that answer.
#![no_main]

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use arbitrary::Arbitrary;
use async_trait::async_trait;
use http::StatusCode;
use libfuzzer_sys::fuzz_target;
use mcp_auth::{AuthError, Fetch, FetchError, FetchRequest, FetchResponse, Introspection, TokenVerifier as _};
use mcp_fuzz::claims::{AUDIENCE, Changes, ISSUER, check, claims, clock, judged};
use mcp_fuzz::{poll, within};
use serde_json::{Map, Value};

#[derive(Arbitrary, Debug)]
struct Input {
    token: String,
    answer: Answer,
    status: u8,
    is_remembered: bool,
}

#[derive(Arbitrary, Debug)]
enum Answer {
    /// Says that the token is active, and claims that hold, but for these changes.
    Claims(Changes),
    Bytes(Vec<u8>),
    /// So many KiB of blanks before a good one.
    Padded(u8),
    Refused,
}

const STATUSES: [u16; 8] = [200, 200, 200, 200, 201, 302, 401, 503];
const LARGEST: usize = 64 * 1024;

fuzz_target!(|input: Input| {
    let status = STATUSES[usize::from(input.status) % STATUSES.len()];
    let body = match &input.answer {
        Answer::Claims(changes) => text(claims(changes)),
        Answer::Bytes(bytes) => bytes.clone(),
        Answer::Padded(blanks) => {
            let good = text(claims(&Changes::default()));
            [&b" ".repeat(usize::from(*blanks) * 1024)[..], &good].concat()
        }
        Answer::Refused => Vec::new(),
    };
    let answer = match &input.answer {
        Answer::Refused => None,
        _ => Some((status, body.clone())),
    };
    let expected = expected_of(answer.as_ref());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let fetch = Arc::new(Answering { answer, asked: Arc::clone(&asked) });
    let lifetime = if input.is_remembered { Duration::from_secs(10) } else { Duration::ZERO };
    let verifier = Introspection::new(ISSUER, "https://login.example/introspect", [AUDIENCE], fetch)
        .and_then(|verifier| verifier.with_client("tools", "secret"))
        .and_then(|verifier| verifier.with_cache(lifetime))
        .expect("the options are in order")
        .with_clock(clock);
    within(|_| {
        for _ in 0..2 {
            let Poll::Ready(outcome) = poll(verifier.verify(&input.token)) else {
                panic!("a ready answer is waited for")
            };
            assert_eq!(outcome.as_ref().map(|_| ()).map_err(Clone::clone), expected.clone().map(|_| ()));
            if let (Ok(principal), Ok(claims)) = (outcome, &expected) {
                check(&principal, "introspection", claims);
            }
        }
    });
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let is_answered = expected != Err(AuthError::Unavailable);
    assert_eq!(asked.len(), if input.is_remembered && is_answered { 1 } else { 2 });
    for form in &*asked {
        let token = form.strip_prefix("token=").and_then(|rest| rest.strip_suffix("&token_type_hint=access_token"));
        assert_eq!(token.map(unescaped), Some(input.token.clone().into_bytes()), "{form}");
    }
});

fn text(claims: Map<String, Value>) -> Vec<u8> {
    Value::Object(claims).to_string().into_bytes()
}

/// What the answer has to come to: the claims that are let in, or the refusal.
fn expected_of(answer: Option<&(u16, Vec<u8>)>) -> Result<Map<String, Value>, AuthError> {
    let body = answer.filter(|(status, body)| *status == 200 && body.len() <= LARGEST).map(|(_, body)| body);
    let Some(Ok(Value::Object(claims))) = body.map(|body| serde_json::from_slice(body)) else {
        return Err(AuthError::Unavailable);
    };
    match claims.get("active") {
        Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => return Err(AuthError::InvalidToken),
        _ => return Err(AuthError::Unavailable),
    }
    let is_of_another = claims.get("iss").is_some_and(|issuer| issuer != ISSUER);
    let kind = claims.get("token_type").map(|kind| kind.as_str().unwrap_or_default().to_ascii_lowercase());
    if is_of_another || kind.is_some_and(|kind| kind != "bearer" && kind != "access_token") {
        return Err(AuthError::InvalidToken);
    }
    judged(&claims, true).map(|()| claims)
}

/// The bytes of an encoded form's value.
fn unescaped(text: &str) -> Vec<u8> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two digits stand behind %"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'%'), "{text}");
    bytes
}

/// Gives the one answer, and keeps what was asked.
struct Answering {
    answer: Option<(u16, Vec<u8>)>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Fetch for Answering {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let form = request.form().expect("a token is asked about by a form").to_owned();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(form);
        assert!(request.maximum_bytes() <= LARGEST && request.headers().contains_key("authorization"));
        let (status, body) = self.answer.clone().ok_or(FetchError::TimedOut)?;
        Ok(FetchResponse::new(StatusCode::from_u16(status).expect("the status is one"), body))
    }
}
