//! Questions inside a result, and the answers inside the next request.
//!
//! Why here: three methods of the modern era and the tasks extension ask this way.
//! Invariants: questions keep their order and their keys are unique; parameters stay raw, so that an answer can be
//! matched with exactly what was asked.
//! Spec: 2026-07-28 basic/patterns/mrtr, "Protocol Messages"

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::RawJson;
use crate::types::MetaObject;

/// One question: a request without an envelope.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequest {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`; others arrive too and are the reader's to refuse.
    pub method: String,
    /// An object; an absent one reads as an empty one, and is written.
    pub params: RawJson,
}

impl InputRequest {
    /// A question with these parameters, which must be an object.
    #[must_use]
    pub fn new(method: impl Into<String>, params: RawJson) -> Self {
        Self { method: method.into(), params }
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            method: String,
            #[serde(default)]
            params: Option<RawJson>,
        }

        let Wire { method, params } = Wire::deserialize(deserializer)?;
        let params = params.unwrap_or(RawJson::EMPTY_OBJECT);
        if !params.is_object() {
            return Err(de::Error::custom(format!(
                "\"params\" must be an object, not {}",
                params.kind().with_article()
            )));
        }
        Ok(Self { method, params })
    }
}

/// Questions by key, in the order in which they were asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputRequests(Vec<(String, InputRequest)>);

impl InputRequests {
    /// No question yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a question at the end; one with the same key is replaced where it stands and handed back.
    ///
    /// Looks at every key, as questions are few.
    pub fn insert(&mut self, key: impl Into<String>, request: InputRequest) -> Option<InputRequest> {
        let key = key.into();
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => Some(std::mem::replace(known, request)),
            None => {
                self.0.push((key, request));
                None
            }
        }
    }

    /// The question under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&InputRequest> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, request)| request)
    }

    /// The questions in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &InputRequest)> {
        self.0.iter().map(|(key, request)| (key.as_str(), request))
    }

    /// How many questions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for InputRequests {
    type Item = (String, InputRequest);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Serialize for InputRequests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for InputRequests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = InputRequests;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of requests")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InputRequests, A::Error> {
                let mut entries: Vec<(String, InputRequest)> = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                let mut seen = HashSet::with_capacity(entries.len());
                match entries.iter().find(|(key, _)| !seen.insert(key.as_str())) {
                    Some((key, _)) => Err(de::Error::custom(format!("{key:?} occurs more than once"))),
                    None => Ok(InputRequests(entries)),
                }
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// The answers by key: bare results of the methods that were asked, still to be checked.
pub type InputResponses = BTreeMap<String, RawJson>;

/// A result that asks instead of answering. At least one of the members is present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// The questions; absent when the client is only asked to come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What the client hands back untouched with its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl InputRequiredResult {
    /// Asks these questions, without state.
    #[must_use]
    pub fn new(input_requests: InputRequests) -> Self {
        Self { input_requests: Some(input_requests), request_state: None, meta: None }
    }

    /// Asks nothing, but to come back with this state.
    #[must_use]
    pub fn come_back(request_state: impl Into<String>) -> Self {
        Self { input_requests: None, request_state: Some(request_state.into()), meta: None }
    }

    setters! {
        /// Adds state.
        with_request_state(request_state: String);
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &'static str) -> RawJson {
        RawJson::from_bytes(text.into()).unwrap()
    }

    #[test]
    fn questions_keep_their_order_and_their_raw_parameters() {
        let text =
            r#"{"z":{"method":"elicitation/create","params":{"b":1.0,"a":2}},"a":{"method":"roots/list","params":{}}}"#;
        let requests: InputRequests = serde_json::from_str(text).unwrap();
        assert_eq!(requests.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["z", "a"]);
        assert_eq!(requests.get("z").unwrap().params, raw(r#"{"b":1.0,"a":2}"#));
        assert_eq!(serde_json::to_string(&requests).unwrap(), text);
    }

    #[test]
    fn a_key_that_occurs_twice_is_refused_in_any_spelling() {
        for text in [
            r#"{"a":{"method":"roots/list"},"a":{"method":"roots/list"}}"#,
            r#"{"a":{"method":"roots/list"},"b":{"method":"roots/list"},"\u0061":{"method":"roots/list"}}"#,
        ] {
            let error = serde_json::from_str::<InputRequests>(text).unwrap_err();
            assert!(error.to_string().contains("\"a\" occurs more than once"), "{error}");
        }
    }

    #[test]
    fn absent_and_null_parameters_read_as_an_empty_object_and_others_are_refused() {
        for text in [r#"{"method":"roots/list"}"#, r#"{"method":"roots/list","params":null}"#] {
            assert_eq!(serde_json::from_str::<InputRequest>(text).unwrap().params, RawJson::EMPTY_OBJECT);
        }
        for text in [r#"{"method":"roots/list","params":[]}"#, r#"{"params":{}}"#, "[]", r#""roots/list""#] {
            assert!(serde_json::from_str::<InputRequest>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_question_with_a_known_key_replaces_the_old_one_where_it_stands() {
        let mut requests = InputRequests::new();
        let (first, second) = (InputRequest::new("roots/list", raw("{}")), InputRequest::new("x", raw("{}")));
        assert_eq!(requests.insert("a", first.clone()), None);
        assert_eq!(requests.insert("b", first.clone()), None);
        assert_eq!(requests.insert("a", second.clone()), Some(first.clone()));
        assert_eq!(requests.len(), 2);
        assert_eq!(requests.into_iter().collect::<Vec<_>>(), [("a".to_owned(), second), ("b".to_owned(), first)]);
    }

    #[test]
    fn many_keys_are_read_in_less_than_quadratic_time() {
        let entries: Vec<_> = (0..100_000).map(|n| format!(r#""{n}":{{"method":"x"}}"#)).collect();
        let text = format!("{{{}}}", entries.join(","));
        assert_eq!(serde_json::from_str::<InputRequests>(&text).unwrap().len(), 100_000);
    }

    #[test]
    fn a_result_has_only_the_members_it_was_given() {
        let state_only = InputRequiredResult::come_back("s");
        assert_eq!(serde_json::to_string(&state_only).unwrap(), r#"{"requestState":"s"}"#);
        let mut requests = InputRequests::new();
        requests.insert("r", InputRequest::new("roots/list", RawJson::EMPTY_OBJECT));
        let both = InputRequiredResult::new(requests).with_request_state("s");
        let text = r#"{"inputRequests":{"r":{"method":"roots/list","params":{}}},"requestState":"s"}"#;
        assert_eq!(serde_json::to_string(&both).unwrap(), text);
        assert_eq!(serde_json::from_str::<InputRequiredResult>(text).unwrap(), both);
    }
}
