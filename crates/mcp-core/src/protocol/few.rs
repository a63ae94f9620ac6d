//! A map of few entries, which costs nothing while it is empty.
//!
//! Why here: every call carries several of these and most calls never put anything in; they are made and dropped with it.
//! Invariants: sorted by key, so that it is written in the same order each time.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A map from texts, sorted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Few<V>(Vec<(String, V)>);

impl<V> Default for Few<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Few<V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        let place = self.place(key).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    /// Replaces what has the key.
    pub(crate) fn insert(&mut self, key: String, value: V) {
        match self.place(&key) {
            Ok(place) => {
                if let Some(entry) = self.0.get_mut(place) {
                    entry.1 = value;
                }
            }
            Err(place) => self.0.insert(place, (key, value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        let place = self.place(key).ok()?;
        Some(self.0.remove(place).1)
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(each, _)| each.as_str().cmp(key))
    }
}

impl<V> From<BTreeMap<String, V>> for Few<V> {
    fn from(map: BTreeMap<String, V>) -> Self {
        Self(map.into_iter().collect())
    }
}

impl<V> FromIterator<(String, V)> for Few<V> {
    fn from_iter<T: IntoIterator<Item = (String, V)>>(entries: T) -> Self {
        Self::from(entries.into_iter().collect::<BTreeMap<_, _>>())
    }
}

impl<V: Serialize> Serialize for Few<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Few<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_does_what_a_sorted_map_does(steps in proptest::collection::vec(("[a-d]{0,2}", any::<Option<u8>>()), 0..40)) {
            let (mut few, mut map) = (Few::default(), BTreeMap::new());
            for (key, value) in steps {
                match value {
                    Some(value) => {
                        few.insert(key.clone(), value);
                        map.insert(key, value);
                    }
                    None => prop_assert_eq!(few.remove(&key), map.remove(&key)),
                }
                prop_assert_eq!(&few, &Few::from(map.clone()));
                prop_assert_eq!(serde_json::to_string(&few).unwrap(), serde_json::to_string(&map).unwrap());
                prop_assert!(map.iter().all(|(key, value)| few.get(key) == Some(value)));
                prop_assert_eq!(few.is_empty(), map.is_empty());
            }
            let text = serde_json::to_string(&few).unwrap();
            prop_assert_eq!(serde_json::from_str::<Few<u8>>(&text).unwrap(), few);
        }
    }
}
