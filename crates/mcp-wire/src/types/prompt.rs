//! Prompts: how they are listed and what one says.
//!
//! Why here: the values of the `prompts/*` methods.
//! Spec: 2026-07-28 server/prompts, "Data Types"

use serde::{Deserialize, Serialize};

use super::{ContentBlock, Icon, MetaObject, Role};

/// A prompt as it stands in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prompt {
    /// The name by which it is asked for, unique per server.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<PromptArgument>>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl Prompt {
    /// A prompt by name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, arguments: None, icons: None, meta: None }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Says what the prompt is for.
        with_description(description: String);
        /// Says what the prompt takes.
        with_arguments(arguments: Vec<PromptArgument>);
        /// Sets the pictures.
        with_icons(icons: Vec<Icon>);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// One argument of a prompt; its value is always a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the prompt cannot do without it. Absent: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl PromptArgument {
    /// An optional argument.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, required: None }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Says what the argument means.
        with_description(description: String);
        /// Says whether the prompt cannot do without it.
        with_required(required: bool);
    }
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// A message by this speaker.
    #[must_use]
    pub fn new(role: Role, content: ContentBlock) -> Self {
        Self { role, content }
    }

    /// A message by the person.
    #[must_use]
    pub fn user(content: ContentBlock) -> Self {
        Self::new(Role::User, content)
    }

    /// A message by the model.
    #[must_use]
    pub fn assistant(content: ContentBlock) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// The answer to `prompts/get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What the prompt is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages, in order.
    pub messages: Vec<PromptMessage>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl GetPromptResult {
    /// An answer of these messages.
    #[must_use]
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self { description: None, messages, meta: None }
    }

    setters! {
        /// Says what the prompt is for.
        with_description(description: String);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// The answer to `prompts/list`: one page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListPromptsResult {
    /// The prompts of this page.
    pub prompts: Vec<Prompt>,
    /// Where the next page starts; absent: there is none. The empty string is a cursor too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ListPromptsResult {
    /// The last or only page.
    #[must_use]
    pub fn new(prompts: Vec<Prompt>) -> Self {
        Self { prompts, next_cursor: None, meta: None }
    }

    setters! {
        /// Says where the next page starts.
        with_next_cursor(next_cursor: String);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_member_has_its_name_on_the_wire() {
        let prompt = Prompt::new("p")
            .with_title("P")
            .with_description("d")
            .with_arguments(vec![
                PromptArgument::new("a").with_title("A").with_description("d").with_required(true),
                PromptArgument::new("b"),
            ])
            .with_icons(vec![Icon::new("https://example.com/i.png")])
            .with_meta(MetaObject::from_iter([("k".to_owned(), json!(1))]));
        let expected = json!({
            "name": "p",
            "title": "P",
            "description": "d",
            "arguments": [{"name": "a", "title": "A", "description": "d", "required": true}, {"name": "b"}],
            "icons": [{"src": "https://example.com/i.png"}],
            "_meta": {"k": 1},
        });
        assert_eq!(serde_json::to_value(&prompt).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Prompt>(expected).unwrap(), prompt);
    }

    #[test]
    fn messages_name_their_speaker() {
        let result = GetPromptResult::new(vec![
            PromptMessage::user(ContentBlock::text("q")),
            PromptMessage::assistant(ContentBlock::text("a")),
        ])
        .with_description("d");
        let expected = json!({"description": "d", "messages": [
            {"role": "user", "content": {"type": "text", "text": "q"}},
            {"role": "assistant", "content": {"type": "text", "text": "a"}},
        ]});
        assert_eq!(serde_json::to_value(&result).unwrap(), expected);
        assert_eq!(serde_json::from_value::<GetPromptResult>(expected).unwrap(), result);
        assert!(
            serde_json::from_str::<PromptMessage>(r#"{"role":"system","content":{"type":"text","text":""}}"#).is_err()
        );
    }
}
