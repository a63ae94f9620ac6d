//! Requests under way, counted over all callers and for each.
//!
//! Why here: what is bounded within a session is not bounded for its owner, who may have many, nor for the modern era,
//! which has none; and everybody can be many callers.
//! Invariants: a place is given back when it is dropped, whatever became of its request; nothing is kept of a caller who has
//! nothing under way.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_core::Principal;

/// How many are under way.
#[derive(Debug, Default)]
pub(super) struct InFlight(Arc<Counts>);

type ByCaller = HashMap<Caller, usize, BuildHasherDefault<Folded>>;

#[derive(Debug, Default)]
struct Counts {
    all: AtomicUsize,
    by_caller: Mutex<ByCaller>,
}

/// Whose requests are counted together: the owner that the provider named, or else the address at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Caller(u64, u64);

impl Caller {
    /// `None` for an anonymous caller whose address is not known.
    pub(super) fn of(principal: &Principal, peer: Option<SocketAddr>) -> Option<Self> {
        if !principal.is_anonymous() {
            // Half of a digest tells owners apart as well, and no address is found that equals one.
            return principal.key().as_bytes().first_chunk().map(|half| Self::from(u128::from_be_bytes(*half)));
        }
        let address = match peer?.ip().to_canonical() {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            // Whoever has one address of a network has all of it.
            IpAddr::V6(address) => address.to_bits() & !u128::from(u64::MAX),
        };
        Some(Self::from(address))
    }
}

impl From<u128> for Caller {
    fn from(number: u128) -> Self {
        Self((number >> 64) as u64, number as u64)
    }
}

/// The table's hash. Callers can choose their addresses so that many hash alike, but never more at a time than have requests
/// under way, so that is not worth the price of a better one.
#[derive(Debug, Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The place of one request.
#[derive(Debug)]
pub(super) struct Counted {
    counts: Arc<Counts>,
    caller: Option<Caller>,
}

impl InFlight {
    /// A place, unless `most` are taken.
    pub(super) fn enter(&self, most: usize) -> Option<Counted> {
        let before = self.0.all.fetch_add(1, Ordering::Relaxed);
        let counted = Counted { counts: Arc::clone(&self.0), caller: None };
        (before < most).then_some(counted)
    }
}

impl Counted {
    /// Whose place it is; `false` if this caller has `most` already.
    pub(super) fn is_of(&mut self, caller: Option<Caller>, most: usize) -> bool {
        let Some(caller) = caller else { return true };
        let mut by_caller = self.counts.by_caller();
        let taken = by_caller.entry(caller).or_default();
        // Refused callers have places, so no entry is left behind empty.
        let is_free = *taken < most;
        if is_free {
            *taken += 1;
            self.caller = Some(caller);
        }
        is_free
    }
}

impl Counts {
    fn by_caller(&self) -> std::sync::MutexGuard<'_, ByCaller> {
        self.by_caller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counts.all.fetch_sub(1, Ordering::Relaxed);
        if let Some(caller) = self.caller
            && let std::collections::hash_map::Entry::Occupied(mut taken) = self.counts.by_caller().entry(caller)
        {
            *taken.get_mut() -= 1;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back_and_refusals_take_none() {
        let in_flight = InFlight::default();
        let (one, two) = (in_flight.enter(2), in_flight.enter(2));
        assert!(one.is_some() && two.is_some());
        assert!(in_flight.enter(2).is_none() && in_flight.enter(2).is_none());
        drop(one);
        let three = in_flight.enter(2);
        assert!(three.is_some() && in_flight.enter(2).is_none());
    }

    #[test]
    fn each_caller_has_places_of_its_own_and_nothing_is_kept_of_the_gone() {
        let in_flight = InFlight::default();
        // A place, if it is one of the two that each caller has.
        let enter = |caller| {
            let mut counted = in_flight.enter(9)?;
            counted.is_of(caller, 2).then_some(counted)
        };
        let (one, two) = (enter(Some(Caller(1, 1))), enter(Some(Caller(1, 1))));
        assert!(one.is_some() && two.is_some());
        assert!(enter(Some(Caller(1, 1))).is_none(), "the third of one caller");
        let other = enter(Some(Caller(1, 2)));
        assert!(other.is_some() && enter(None).is_some());
        drop(one);
        let again = enter(Some(Caller(1, 1)));
        assert!(again.is_some() && enter(Some(Caller(1, 1))).is_none());
        drop((two, again, other));
        assert!(in_flight.0.by_caller().is_empty());
        assert_eq!(in_flight.0.all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn callers_are_told_apart_by_owner_and_the_anonymous_by_network() {
        let of = |address: &str| Caller::of(&Principal::anonymous(), Some(address.parse().unwrap())).unwrap();
        assert_eq!(of("10.0.0.7:1"), of("10.0.0.7:2"));
        assert_eq!(of("10.0.0.7:1"), of("[::ffff:10.0.0.7]:1"));
        assert_ne!(of("10.0.0.7:1"), of("10.0.0.8:1"));
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::2]:1"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
        assert_eq!(Caller::of(&Principal::anonymous(), None), None);
        let (ann, bob) = (Principal::new("p", "", "ann"), Principal::new("p", "", "bob"));
        let peer = Some("10.0.0.7:1".parse().unwrap());
        assert_eq!(Caller::of(&ann, peer), Caller::of(&ann, None));
        assert_ne!(Caller::of(&ann, peer), Caller::of(&bob, peer));
    }
}
