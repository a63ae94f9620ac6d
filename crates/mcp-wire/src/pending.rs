//! Requests that are under way and whoever waits for their answers.
//!
//! Why here: both engines number requests and match answers; the table is plain data without a runtime.
//! Invariants: ids are never used twice; the table never holds more than its limit.

use std::collections::BTreeMap;

use crate::RequestId;

/// Ids that were handed out and the values that wait for their answers.
#[derive(Debug)]
pub struct Pending<T> {
    next: i64,
    limit: usize,
    /// Nearly always empty, which an ordered map is in three words.
    waiting: BTreeMap<i64, T>,
}

/// As many requests are under way as the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} requests are already under way")]
#[non_exhaustive]
pub struct PendingFull {
    /// The limit in force.
    pub limit: usize,
}

impl<T> Pending<T> {
    /// An empty table for at most `limit` requests at a time. Ids start at 1.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { next: 1, limit, waiting: BTreeMap::new() }
    }

    /// Takes the next id for a request whose answer goes to `waiter`.
    ///
    /// # Errors
    /// When the limit is reached; the waiter is dropped.
    pub fn register(&mut self, waiter: T) -> Result<RequestId, PendingFull> {
        if self.waiting.len() >= self.limit {
            return Err(PendingFull { limit: self.limit });
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.waiting.insert(id, waiter);
        Ok(RequestId::from(id))
    }

    /// Whoever waits for the answer to `id`, who then waits no longer.
    ///
    /// The digits of an id as a string are that id: some peers have one kind of id only, and no string is ever handed out.
    pub fn complete(&mut self, id: &RequestId) -> Option<T> {
        let number = match id.as_str() {
            None => id.as_i64()?,
            Some(text) => text.parse().ok().filter(|number: &i64| number.to_string() == text)?,
        };
        self.waiting.remove(&number)
    }

    /// Everyone who waits: the conversation is over.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.waiting).into_values()
    }

    /// How many requests are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reaches_its_waiter_once() {
        let mut pending = Pending::new(2);
        let first = pending.register("first").unwrap();
        let second = pending.register("second").unwrap();
        assert_ne!(first, second);
        assert_eq!(pending.complete(&second), Some("second"));
        assert_eq!(pending.complete(&second), None);
        assert_eq!(pending.complete(&first), Some("first"));
    }

    #[test]
    fn an_id_may_come_back_as_a_string_of_its_digits_and_no_other() {
        let mut pending = Pending::new(1);
        pending.register("waiting").unwrap();
        for other in ["", "01", "+1", " 1", "1.0", "1e0", "0x1", "2", "one", "99999999999999999999"] {
            assert_eq!(pending.complete(&RequestId::from(other)), None, "{other:?}");
        }
        assert_eq!(pending.complete(&RequestId::from("1")), Some("waiting"));
        assert_eq!(pending.complete(&RequestId::from(1)), None);
    }

    #[test]
    fn a_full_table_refuses_and_a_finished_request_makes_room() {
        let mut pending = Pending::new(1);
        let id = pending.register(()).unwrap();
        assert_eq!(pending.register(()), Err(PendingFull { limit: 1 }));
        pending.complete(&id);
        assert_ne!(pending.register(()).unwrap(), id);
    }

    #[test]
    fn draining_ends_every_wait() {
        let mut pending = Pending::new(3);
        pending.register(1).unwrap();
        pending.register(2).unwrap();
        let mut left: Vec<_> = pending.drain().collect();
        left.sort_unstable();
        assert_eq!(left, [1, 2]);
        assert!(pending.is_empty());
    }
}
