//! Holds stores to their contracts: one check for each trait of [`store`](crate::store).
//!
//! Why here: whoever puts a store on an engine of their own learns from it what the documentation means.
//! Invariants: names are new for each run, so that a check may run against an engine that is in use; what has to come is
//! waited for for ten seconds, and nothing else is waited for.

mod bus;
mod events;
mod route;
mod sessions;

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

pub use self::bus::check_notice_bus;
pub use self::events::check_event_store;
pub use self::route::check_answer_route;
pub use self::sessions::check_session_store;
use super::TestError;

/// Fails with `text` unless the condition holds.
fn ensure(holds: bool, text: &str) -> Result<(), TestError> {
    if holds { Ok(()) } else { Err(TestError::new(text)) }
}

/// The value, or what the store said instead.
fn done<T, E: std::error::Error>(what: &str, outcome: Result<T, E>) -> Result<T, TestError> {
    outcome.map_err(|error| TestError::new(format!("{what}: {error}")))
}

/// What comes within ten seconds.
async fn soon<T>(what: &str, coming: impl Future<Output = Result<T, TestError>>) -> Result<T, TestError> {
    match tokio::time::timeout(Duration::from_secs(10), coming).await {
        Ok(outcome) => outcome,
        Err(_) => Err(TestError::new(format!("{what} does not come"))),
    }
}

/// Runs both at once, the first one first.
async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    std::future::poll_fn(move |context| {
        if first.is_none()
            && let Poll::Ready(done) = one.as_mut().poll(context)
        {
            first = Some(done);
        }
        if second.is_none()
            && let Poll::Ready(done) = other.as_mut().poll(context)
        {
            second = Some(done);
        }
        match (first.take(), second.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

/// A name that nothing had before.
fn fresh() -> Result<String, TestError> {
    crate::random::id().map_err(|error| TestError::new(format!("no randomness: {error}")))
}

#[cfg(test)]
mod tests;
