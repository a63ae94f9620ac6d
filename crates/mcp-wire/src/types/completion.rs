//! Completion: suggestions for the value of an argument that somebody is typing.
//!
//! Why here: the values of `completion/complete`.
//! Invariants: what we send holds at most [`CompletionValues::MOST`] suggestions.
//! Spec: 2026-07-28 server/utilities/completion, "Data Types"

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::MetaObject;

/// What `completion/complete` asks with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteParams {
    /// The prompt or the template that has the argument.
    #[serde(rename = "ref", deserialize_with = "super::object")]
    pub reference: Reference,
    /// The argument and what was typed so far.
    #[serde(deserialize_with = "super::object")]
    pub argument: CompletionArgument,
    /// What is already known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
}

impl CompleteParams {
    /// Asks for suggestions for the argument `name`, of which `value` was typed so far.
    pub fn new(reference: Reference, name: impl Into<String>, value: impl Into<String>) -> Self {
        let argument = CompletionArgument { name: name.into(), value: value.into() };
        Self { reference, argument, context: None }
    }

    /// Tells the values that other arguments already have.
    #[must_use]
    pub fn with_known_arguments(mut self, arguments: BTreeMap<String, String>) -> Self {
        self.context = Some(CompletionContext { arguments: Some(arguments) });
        self
    }
}

/// What has arguments to complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The name for programs.
        name: String,
        /// The name for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A resource or a template of resources.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The address or the pattern of addresses.
        uri: String,
    },
}

impl Reference {
    /// The prompt of this name.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt { name: name.into(), title: None }
    }

    /// The resource or template with this address or pattern.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

/// The argument whose value is being typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompletionArgument {
    /// Its name.
    pub name: String,
    /// What was typed so far.
    pub value: String,
}

/// What is already known while a value is being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompletionContext {
    /// The values that other arguments already have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

/// Suggestions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompletionValues {
    /// The suggestions, best first.
    pub values: Vec<String>,
    /// How many there are altogether, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl CompletionValues {
    /// How many suggestions an answer may hold.
    pub const MOST: usize = 100;

    /// The first hundred of these suggestions; when there are more, the answer says how many.
    #[must_use]
    pub fn new(mut values: Vec<String>) -> Self {
        if values.len() <= Self::MOST {
            return Self { values, total: None, has_more: None };
        }
        let total = u64::try_from(values.len()).ok();
        values.truncate(Self::MOST);
        Self { values, total, has_more: Some(true) }
    }

    /// Says how many there are altogether.
    #[must_use]
    pub fn with_total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    setters! {
        /// Says whether there are more than these.
        with_has_more(has_more: bool);
    }
}

/// The answer to `completion/complete`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// The suggestions.
    pub completion: CompletionValues,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl CompleteResult {
    /// An answer of these suggestions.
    #[must_use]
    pub fn new(completion: CompletionValues) -> Self {
        Self { completion, meta: None }
    }

    setters! {
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_reference_is_tagged_by_its_type() {
        let prompt = CompleteParams::new(Reference::prompt("p"), "language", "py")
            .with_known_arguments([("framework".to_owned(), "flask".to_owned())].into());
        let wire = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "language", "value": "py"},
            "context": {"arguments": {"framework": "flask"}}});
        assert_eq!(serde_json::to_value(&prompt).unwrap(), wire);
        assert_eq!(serde_json::from_value::<CompleteParams>(wire).unwrap(), prompt);

        let resource = CompleteParams::new(Reference::resource("test://{id}"), "id", "");
        let wire =
            json!({"argument": {"name": "id", "value": ""}, "ref": {"uri": "test://{id}", "type": "ref/resource"}});
        assert_eq!(serde_json::to_value(&resource).unwrap(), wire);
        assert_eq!(serde_json::from_value::<CompleteParams>(wire).unwrap(), resource);
    }

    #[test]
    fn unknown_references_are_refused() {
        for bad in [json!({"type": "ref/tool", "name": "t"}), json!({"name": "p"}), json!({"type": "ref/prompt"})] {
            assert!(serde_json::from_value::<Reference>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_answer_holds_a_hundred_suggestions_at_most() {
        let many = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        let all = CompletionValues::new(many(100));
        assert_eq!((all.values.len(), all.total, all.has_more), (100, None, None));
        let some = CompletionValues::new(many(101));
        assert_eq!(some.values, many(100));
        assert_eq!((some.total, some.has_more), (Some(101), Some(true)));
        let wire = serde_json::to_value(CompleteResult::new(CompletionValues::new(many(1)).with_total(7))).unwrap();
        assert_eq!(wire, json!({"completion": {"values": ["0"], "total": 7}}));
    }
}
