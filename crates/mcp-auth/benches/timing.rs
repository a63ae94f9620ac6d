//! How long refusals take, sample by sample, for `cargo xtask auth-timing` to compare.
//!
//! Why here: a difference in time would tell a name that exists from one that does not, or how much of a secret was right.
//! Invariants: both kinds of refusal are measured in turns, and who begins a turn changes, so that whatever else the
//! machine does meets both alike.
#![expect(clippy::print_stdout, reason = "the samples are the program's output")]

use std::error::Error;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use mcp_auth::{ApiKeyTable, ApiKeys, AuthProvider, AuthRequest, Basic, BasicUsers, Pepper, StaticBearer};
use mcp_core::Principal;
use tokio::time::Instant;

/// Pairs of samples, after those that warm up.
const PAIRS: usize = 2000;
const WARM_UP: usize = 100;
/// Secrets that the fast providers know.
const KNOWN: usize = 64;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    // Tests build and start this program as well; only `cargo bench` says so.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let secret = |number: usize| format!("kJ3vQ0rUuY7nM2xW5tB8cD{number:04}");
    let (unknown, nearly) = ("zzzzzzzzzzzzzzzzzzzzzzzzzz", format!("{}x", &secret(0)[..25]));

    let mut tokens = StaticBearer::new(&secret(0), named("static"))?;
    let pepper = Pepper::new(&[7; 32])?;
    let mut table = ApiKeyTable::new().and(&pepper.stored_form(&secret(0))?, named("api key"))?;
    for number in 1..KNOWN {
        tokens = tokens.and(&secret(number), named("static"))?;
        table = table.and(&pepper.stored_form(&secret(number))?, named("api key"))?;
    }
    let bearer = |token: &str| header("authorization", &format!("Bearer {token}"));
    measure("fixed tokens", &tokens, 16, [bearer(unknown)?, bearer(&nearly)?]).await?;
    let key = |key: &str| header("x-api-key", key);
    measure("api keys", &ApiKeys::new(pepper, table), 16, [key(unknown)?, key(&nearly)?]).await?;

    // The hash of `secret` at the lowest costs that are accepted; what is measured does not depend on them.
    let hash = "$argon2id$v=19$m=7168,t=1,p=1$c2FsdC1vZi1zZWNyZXQtMA$oGTw5h8GmA6cvFqsdc7h2nct507HwuxbplhRwptZ8g0";
    let users = Basic::new(BasicUsers::new().and("ann", hash, named("basic"))?)?;
    let basic = |text: &str| header("authorization", &format!("Basic {}", STANDARD.encode(text)));
    measure("passwords", &users, 1, [basic("eve:wrong")?, basic("ann:wrong")?]).await
}

fn named(provider: &str) -> Principal {
    Principal::new(provider, "", "ann")
}

fn header(name: &'static str, value: &str) -> Outcome<HeaderMap> {
    Ok(HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_str(value)?)]))
}

/// Prints what `repeat` refusals of each kind take, in nanoseconds, one line for each turn: those of the unknown and those
/// of the wrong.
async fn measure(name: &str, provider: &dyn AuthProvider, repeat: usize, kinds: [HeaderMap; 2]) -> Outcome<()> {
    for turn in 0..WARM_UP + PAIRS {
        let mut took = [0; 2];
        for kind in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            let began = Instant::now();
            for _ in 0..repeat {
                refused(provider, &kinds[kind]).await?;
            }
            took[kind] = began.elapsed().as_nanos();
        }
        if turn >= WARM_UP {
            println!("{name}\t{}\t{}", took[0], took[1]);
        }
    }
    Ok(())
}

async fn refused(provider: &dyn AuthProvider, headers: &HeaderMap) -> Outcome<()> {
    let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
    let request = AuthRequest::new(&method, &uri, headers);
    let outcome = match provider.immediate(&request) {
        Some(outcome) => outcome,
        None => provider.authenticate(request).await,
    };
    if outcome.is_ok() { Err("wrong credentials were let in".into()) } else { Ok(()) }
}
