//! What a server offers, as an immutable snapshot that is swapped on every change.
//!
//! Why here: requests read without a lock and see one consistent state; changes are rare and may copy.
//! Invariants: entries keep the order of their registration; an entry's number is never used again, so that cursors hold.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use mcp_wire::Revision;
use serde::Serialize;

use crate::prompt::PromptEntry;
use crate::resource::{ResourceEntry, TemplateEntry};
use crate::tool::ToolEntry;

/// Everything that is registered at one moment.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    pub(crate) tools: Table<ToolEntry>,
    pub(crate) resources: Table<ResourceEntry>,
    pub(crate) templates: Table<TemplateEntry>,
    pub(crate) prompts: Table<PromptEntry>,
}

/// Entries of one kind, by key and in order.
pub(crate) struct Table<E> {
    by_key: HashMap<Arc<str>, u64>,
    ordered: Vec<(u64, Arc<E>)>,
    next: u64,
}

/// What a table needs to know of its entries.
pub(crate) trait Entry {
    /// The name or URI that requests use.
    fn key(&self) -> &str;
    /// Encodes the entry as the lists of this revision show it.
    fn render(&self, revision: Revision) -> Bytes;
    /// Where rendered entries are kept.
    fn rendered(&self) -> &Rendered;
}

/// The encoded forms of an entry, made when first shown.
#[derive(Debug, Default)]
pub(crate) struct Rendered([OnceLock<Bytes>; Revision::ALL.len()]);

impl Rendered {
    /// The form for a revision.
    pub(crate) fn of(&self, revision: Revision, render: impl FnOnce() -> Bytes) -> &[u8] {
        let slot = Revision::ALL.iter().position(|each| *each == revision).and_then(|index| self.0.get(index));
        slot.map_or(&[], |slot| slot.get_or_init(render))
    }
}

/// Encodes a definition on one line; one that cannot be encoded is left out of lists by being empty.
pub(crate) fn encode<T: Serialize>(definition: &T) -> Bytes {
    serde_json::to_vec(definition).map(mcp_wire::on_one_line).unwrap_or_default()
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), ordered: Vec::new(), next: 1 }
    }
}

impl<E> Clone for Table<E> {
    fn clone(&self) -> Self {
        Self { by_key: self.by_key.clone(), ordered: self.ordered.clone(), next: self.next }
    }
}

impl<E: Entry> Table<E> {
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<&Arc<E>>
    where
        Arc<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let sequence = self.by_key.get(key)?;
        let index = self.ordered.binary_search_by_key(sequence, |(sequence, _)| *sequence).ok()?;
        self.ordered.get(index).map(|(_, entry)| entry)
    }

    /// Adds an entry at the end; `false` when its key is taken.
    pub(crate) fn insert(&mut self, entry: E) -> bool {
        let key: Arc<str> = Arc::from(entry.key());
        if self.by_key.contains_key(&key) {
            return false;
        }
        self.by_key.insert(key, self.next);
        self.ordered.push((self.next, Arc::new(entry)));
        self.next += 1;
        true
    }

    /// Removes an entry; `false` when there was none.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let Some(sequence) = self.by_key.remove(key) else { return false };
        self.ordered.retain(|(each, _)| *each != sequence);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<E>> {
        self.ordered.iter().map(|(_, entry)| entry)
    }

    /// At most `limit` entries of those that are shown after number `after`, and the number of the last one where more
    /// follow.
    pub(crate) fn page(
        &self,
        after: u64,
        limit: usize,
        is_shown: impl Fn(&str) -> bool,
    ) -> (Vec<&Arc<E>>, Option<u64>) {
        let start = self.ordered.partition_point(|(sequence, _)| *sequence <= after);
        let rest = self.ordered.get(start..).unwrap_or_default();
        let mut shown = rest.iter().filter(|(_, entry)| is_shown(entry.key()));
        let mut page = Vec::with_capacity(limit.min(rest.len()));
        let mut last = None;
        for (sequence, entry) in shown.by_ref().take(limit) {
            page.push(entry);
            last = Some(*sequence);
        }
        (page, last.filter(|_| shown.next().is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Name(String, Rendered);

    impl Entry for Name {
        fn key(&self) -> &str {
            &self.0
        }
        fn render(&self, _revision: Revision) -> Bytes {
            Bytes::new()
        }
        fn rendered(&self) -> &Rendered {
            &self.1
        }
    }

    fn table(names: &[&str]) -> Table<Name> {
        let mut table = Table::default();
        for name in names {
            assert!(table.insert(Name((*name).to_owned(), Rendered::default())));
        }
        table
    }

    fn names<'a>(page: &[&'a Arc<Name>]) -> Vec<&'a str> {
        page.iter().map(|entry| entry.key()).collect()
    }

    fn all(_key: &str) -> bool {
        true
    }

    #[test]
    fn pages_neither_skip_nor_repeat_what_survives_a_change() {
        let mut table = table(&["a", "b", "c", "d", "e"]);
        let (page, next) = table.page(0, 2, all);
        assert_eq!(names(&page), ["a", "b"]);
        let next = next.unwrap();
        table.remove("b");
        table.remove("a");
        table.insert(Name("a".to_owned(), Rendered::default()));
        let (page, next) = table.page(next, 2, all);
        assert_eq!(names(&page), ["c", "d"]);
        let (page, next) = table.page(next.unwrap(), 2, all);
        assert_eq!((names(&page), next), (vec!["e", "a"], None));
    }

    #[test]
    fn a_page_is_filled_with_what_is_shown_and_the_last_one_knows_that_it_is() {
        let table = table(&["a", "-", "b", "c", "-2", "-3"]);
        let visible = |key: &str| !key.starts_with('-');
        let (page, next) = table.page(0, 2, visible);
        assert_eq!(names(&page), ["a", "b"]);
        let (page, next) = table.page(next.unwrap(), 2, visible);
        assert_eq!((names(&page), next), (vec!["c"], None), "what is hidden behind it does not count");
        let (page, next) = table.page(0, 2, |_| false);
        assert_eq!((names(&page), next), (Vec::new(), None));
    }

    #[test]
    fn a_key_is_taken_once_and_free_again_when_removed() {
        let mut table = table(&["a"]);
        assert!(!table.insert(Name("a".to_owned(), Rendered::default())));
        assert!(table.remove("a") && !table.remove("a"));
        assert!(table.get("a").is_none());
        assert!(table.insert(Name("a".to_owned(), Rendered::default())));
        assert!(table.get("a").is_some());
    }
}
