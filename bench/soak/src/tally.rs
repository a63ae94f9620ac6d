//! What happened: how often, how long small calls took, and what was wrong.
//!
//! Why here: every client adds to it, and what is printed and judged is read from it.
//! Invariants: nothing that was wrong is forgotten, however often; of its texts the first are kept.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// Texts of wrong answers that are kept.
const TEXTS: usize = 20;

/// Counts of one run.
#[derive(Default)]
pub(crate) struct Tally {
    /// Valid requests whose answers were right.
    answered: Cell<u64>,
    /// What the clients did otherwise, by kind: refusals that were due, streams that were cut as they should be.
    other: RefCell<BTreeMap<&'static str, u64>>,
    wrong: Cell<u64>,
    texts: RefCell<Vec<String>>,
    /// Microseconds of the small calls, since the last interval and before.
    lately: RefCell<Vec<u32>>,
    before: RefCell<Vec<u32>>,
}

/// Two quantiles of the small calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) calls: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) longest: Duration,
}

impl Tally {
    /// The answer to a valid request was right.
    pub(crate) fn right(&self) {
        self.answered.set(self.answered.get() + 1);
    }

    /// A small call was answered rightly, after this time.
    pub(crate) fn small(&self, time: Duration) {
        self.right();
        self.lately.borrow_mut().push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    /// Something else went as it should.
    pub(crate) fn count(&self, kind: &'static str) {
        *self.other.borrow_mut().entry(kind).or_default() += 1;
    }

    /// Something did not go as it should.
    pub(crate) fn wrong(&self, text: String) {
        self.wrong.set(self.wrong.get() + 1);
        let mut texts = self.texts.borrow_mut();
        if texts.len() < TEXTS {
            texts.push(text);
        }
    }

    pub(crate) fn answered(&self) -> u64 {
        self.answered.get()
    }

    pub(crate) fn wrongs(&self) -> u64 {
        self.wrong.get()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.texts.borrow().clone()
    }

    pub(crate) fn others(&self) -> BTreeMap<&'static str, u64> {
        self.other.borrow().clone()
    }

    /// The small calls since this was asked last.
    pub(crate) fn interval(&self) -> Times {
        let lately = std::mem::take(&mut *self.lately.borrow_mut());
        let times = times(lately.clone());
        self.before.borrow_mut().extend(lately);
        times
    }

    /// All small calls since the last [`Self::begin`].
    pub(crate) fn whole(&self) -> Times {
        times(self.before.borrow().clone())
    }

    /// Forgets the times of the warm-up.
    pub(crate) fn begin(&self) {
        self.before.borrow_mut().clear();
    }
}

fn times(mut micros: Vec<u32>) -> Times {
    micros.sort_unstable();
    let at = |hundredths: usize| {
        let index = (micros.len() * hundredths / 100).min(micros.len().saturating_sub(1));
        Duration::from_micros(micros.get(index).copied().unwrap_or_default().into())
    };
    Times { calls: micros.len(), p50: at(50), p99: at(99), longest: at(100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_interval_and_of_the_whole() {
        let tally = Tally::default();
        (1..=100).for_each(|millis| tally.small(Duration::from_millis(millis)));
        let first = tally.interval();
        assert_eq!((first.calls, first.p50, first.p99), (100, Duration::from_millis(51), Duration::from_millis(100)));
        assert_eq!(tally.interval(), Times::default(), "nothing since");
        tally.begin();
        tally.small(Duration::from_millis(7));
        tally.interval();
        assert_eq!((tally.whole().calls, tally.whole().longest), (1, Duration::from_millis(7)));
        assert_eq!(tally.answered(), 101);
    }

    #[test]
    fn what_was_wrong_is_counted_beyond_its_texts() {
        let tally = Tally::default();
        (0..50).for_each(|number| tally.wrong(number.to_string()));
        assert_eq!((tally.wrongs(), tally.texts().len()), (50, TEXTS));
    }
}
