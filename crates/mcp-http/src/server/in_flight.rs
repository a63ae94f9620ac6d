//! Requests under way, counted over all callers.
//!
//! Why here: what is bounded for each caller is not bounded for all of them, and everybody can be many callers.
//! Invariants: a place is given back when it is dropped, whatever became of its request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many are under way.
#[derive(Debug, Default)]
pub(super) struct InFlight(Arc<AtomicUsize>);

/// The place of one request.
#[derive(Debug)]
pub(super) struct Counted(Arc<AtomicUsize>);

impl InFlight {
    /// A place, unless `most` are taken.
    pub(super) fn enter(&self, most: usize) -> Option<Counted> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(Arc::clone(&self.0));
        (before < most).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
}
