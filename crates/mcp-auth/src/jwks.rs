//! The keys of an issuer that publishes them at an address, remembered and renewed.
//!
//! Why here: when to ask again is the whole difficulty of such sets, and is decided by one pure function.
//! Invariants: one fetch at a time, whoever waits; between two lies a pause, whatever callers send; a set that works is
//! used until a better one is there or it is too old; nobody waits longer than one fetch may take.
//! Spec: 2026-07-28 basic/authorization, "Token Handling"; RFC 7517 5

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::address::is_private_address;
use crate::fetch::fetch_body;
use crate::keys::{JwtAlgorithm, KeySet};
use crate::{AuthError, Fetch, FetchRequest, InvalidOption};

/// A JWK set at an address.
///
/// A set is fetched when the first token needs it, again behind a token after 10 minutes, and at once for a key that it
/// does not have, so that rotated keys are found. Fetches are at least 10 seconds apart, however many tokens name
/// unknown keys; each may take 5 seconds and 256 KiB. While the address does not answer, or answers with anything else
/// than usable keys, the last good set serves for up to 24 hours; without one, callers are answered with 503.
///
/// A fetch runs in a task of its own on the current tokio runtime, so that a caller who goes away ends it for nobody
/// else; it ends with its time limit.
#[derive(Clone)]
pub struct Jwks(Arc<Shared>);

struct Shared {
    url: Box<str>,
    fetch: Arc<dyn Fetch>,
    policy: Policy,
    state: Mutex<State>,
    landed: Notify,
}

/// When to ask.
#[derive(Debug, Clone, Copy)]
struct Policy {
    /// How long a set is not questioned.
    fresh: Duration,
    /// How long it serves if no newer one is to be had.
    stale: Duration,
    /// The least time between the end of a fetch and the next.
    pause: Duration,
    time_limit: Duration,
}

#[derive(Default)]
struct State {
    good: Option<(Arc<KeySet>, Instant)>,
    /// When the last fetch ended.
    ended: Option<Instant>,
    flying: bool,
}

/// What to do for one token.
#[derive(Debug)]
enum Plan {
    Use(Arc<KeySet>),
    /// Use the set, and ask for a newer one meanwhile.
    UseAndRenew(Arc<KeySet>),
    /// Ask, and wait for it.
    Fetch,
    /// Wait for who asks already.
    Wait,
    Refuse(AuthError),
}

const MAXIMUM_BYTES: usize = 256 * 1024;
const PROVIDER: &str = "jwt";

impl Jwks {
    /// The set at `url`, read through `fetch`.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] if `url` is neither `https` nor on a loopback host.
    pub fn new(url: &str, fetch: Arc<dyn Fetch>) -> Result<Self, InvalidOption> {
        if !is_private_address(url) {
            return Err(InvalidOption::new(PROVIDER, "key set", "needs an https address"));
        }
        let (state, landed) = (Mutex::default(), Notify::new());
        Ok(Self(Arc::new(Shared { url: url.into(), fetch, policy: Policy::default(), state, landed })))
    }

    /// Replaces how long a set is not questioned, between 1 second and 24 hours. Default: 10 minutes.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] outside those bounds.
    pub fn with_freshness(self, fresh: Duration) -> Result<Self, InvalidOption> {
        if fresh < Duration::from_secs(1) || fresh > self.0.policy.stale {
            return Err(InvalidOption::new(PROVIDER, "freshness", "must be between a second and a day"));
        }
        let policy = Policy { fresh, ..self.0.policy };
        let (url, fetch) = (self.0.url.clone(), self.0.fetch.clone());
        Ok(Self(Arc::new(Shared { url, fetch, policy, state: Mutex::default(), landed: Notify::new() })))
    }

    /// The set, if it has such a key and need not be questioned.
    pub(crate) fn at_hand(&self, key_id: Option<&str>, algorithm: JwtAlgorithm) -> Option<Arc<KeySet>> {
        match plan(&self.0.policy, &self.0.state(), Instant::now(), key_id, algorithm) {
            Plan::Use(keys) => Some(keys),
            Plan::UseAndRenew(_) | Plan::Fetch | Plan::Wait | Plan::Refuse(_) => None,
        }
    }

    /// The set that has such a key, asked for where that helps.
    pub(crate) async fn keys(&self, key_id: Option<&str>, algorithm: JwtAlgorithm) -> Result<Arc<KeySet>, AuthError> {
        loop {
            // Begun before the state is read, so that no landing in between is missed.
            let landing = self.0.landed.notified();
            let chosen = self.choose(key_id, algorithm);
            match chosen {
                Plan::Use(keys) => return Ok(keys),
                Plan::UseAndRenew(keys) => {
                    self.depart();
                    return Ok(keys);
                }
                Plan::Refuse(error) => return Err(error),
                Plan::Fetch => self.depart(),
                Plan::Wait => {}
            }
            landing.await;
        }
    }

    /// Plans, and takes off in the same moment if that is the plan.
    fn choose(&self, key_id: Option<&str>, algorithm: JwtAlgorithm) -> Plan {
        let mut state = self.0.state();
        let plan = plan(&self.0.policy, &state, Instant::now(), key_id, algorithm);
        state.flying |= matches!(plan, Plan::UseAndRenew(_) | Plan::Fetch);
        plan
    }

    /// Fetches in a task of its own.
    fn depart(&self) {
        let flight = Flight(Arc::clone(&self.0));
        #[expect(clippy::disallowed_methods, reason = "one fetch serves all who wait; it ends with its time limit")]
        tokio::spawn(async move { flight.run().await });
    }
}

impl fmt::Debug for Jwks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Jwks").field("url", &self.0.url).finish_non_exhaustive()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            fresh: Duration::from_secs(600),
            stale: Duration::from_secs(24 * 3600),
            pause: Duration::from_secs(10),
            time_limit: Duration::from_secs(5),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fetch under way. However it ends, those who wait are told.
struct Flight(Arc<Shared>);

impl Flight {
    async fn run(self) {
        let shared = &self.0;
        let request = FetchRequest::new(&shared.url).with_bounds(MAXIMUM_BYTES, shared.policy.time_limit);
        let outcome = match fetch_body(&*shared.fetch, request).await {
            Ok(body) => KeySet::parse(&body).map_err(|error| format!("the answer {error}")),
            Err(reason) => Err(reason),
        };
        match outcome {
            Ok(keys) => shared.state().good = Some((Arc::new(keys), Instant::now())),
            Err(reason) => tracing::warn!(url = %shared.url, reason, "the key set was not renewed"),
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.flying = false;
        state.ended = Some(Instant::now());
        drop(state);
        self.0.landed.notify_waiters();
    }
}

fn plan(policy: &Policy, state: &State, now: Instant, key_id: Option<&str>, algorithm: JwtAlgorithm) -> Plan {
    let age = |since: Instant| now.saturating_duration_since(since);
    let may_fetch = !state.flying && state.ended.is_none_or(|ended| age(ended) >= policy.pause);
    let good = state.good.as_ref().filter(|(_, fetched)| age(*fetched) < policy.stale);
    match good {
        Some((keys, fetched)) if keys.fits(key_id, algorithm) => {
            if age(*fetched) >= policy.fresh && may_fetch {
                Plan::UseAndRenew(Arc::clone(keys))
            } else {
                Plan::Use(Arc::clone(keys))
            }
        }
        _ if state.flying => Plan::Wait,
        _ if may_fetch => Plan::Fetch,
        // The set was asked for a moment ago: the key is nobody's.
        Some(_) => Plan::Refuse(AuthError::InvalidToken),
        None => Plan::Refuse(AuthError::Unavailable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Arc<KeySet> {
        let text =
            r#"{"keys":[{"kty":"OKP","kid":"k1","crv":"Ed25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#;
        Arc::new(KeySet::parse(text.as_bytes()).unwrap())
    }

    /// In words, for a set fetched and a fetch ended so many seconds ago.
    fn planned(fetched: Option<u64>, ended: Option<u64>, flying: bool, key_id: &str) -> &'static str {
        let start = Instant::now();
        let now = start + Duration::from_secs(200_000);
        let ago = |seconds: u64| now - Duration::from_secs(seconds);
        let state = State { good: fetched.map(|seconds| (keys(), ago(seconds))), ended: ended.map(ago), flying };
        match plan(&Policy::default(), &state, now, Some(key_id), JwtAlgorithm::EdDsa) {
            Plan::Use(_) => "use",
            Plan::UseAndRenew(_) => "use and renew",
            Plan::Fetch => "fetch",
            Plan::Wait => "wait",
            Plan::Refuse(AuthError::InvalidToken) => "nobody's",
            Plan::Refuse(_) => "unavailable",
        }
    }

    #[test]
    fn when_a_set_is_asked_for() {
        const DAY: u64 = 24 * 3600;
        for (fetched, ended, flying, key_id, expected) in [
            (None, None, false, "k1", "fetch"),
            (None, None, true, "k1", "wait"),
            (None, Some(9), false, "k1", "unavailable"),
            (None, Some(10), false, "k1", "fetch"),
            (Some(0), Some(0), false, "k1", "use"),
            (Some(599), Some(599), false, "k1", "use"),
            (Some(600), Some(600), false, "k1", "use and renew"),
            (Some(600), Some(600), true, "k1", "use"),
            (Some(700), Some(9), false, "k1", "use"),
            (Some(700), Some(10), false, "k1", "use and renew"),
            (Some(DAY - 1), Some(9), false, "k1", "use"),
            (Some(DAY), Some(9), false, "k1", "unavailable"),
            (Some(DAY), Some(10), false, "k1", "fetch"),
            (Some(DAY), Some(10), true, "k1", "wait"),
            (Some(5), Some(5), false, "k2", "nobody's"),
            (Some(10), Some(10), false, "k2", "fetch"),
            (Some(10), Some(10), true, "k2", "wait"),
            (Some(700), Some(9), false, "k2", "nobody's"),
        ] {
            let plan = planned(fetched, ended, flying, key_id);
            assert_eq!(plan, expected, "{fetched:?} {ended:?} {flying} {key_id}");
        }
    }
}
