//! Questions to the client's model, and its answers.
//!
//! Why here: a server asks in both eras, a client answers, and the shapes are the same.
//! Invariants: a message holds a list of blocks, whether the wire has one block or an array of them.
//! Spec: 2026-07-28 client/sampling, "Protocol Messages"

mod content;

use serde::{Deserialize, Deserializer, Serialize, de};

pub use self::content::{SamplingContent, ToolResultContent, ToolUseContent};
use self::content::{deserialize_blocks, serialize_blocks};
use super::progress::serialize_optional_number;
use crate::types::{MetaObject, Role, Tool};
use crate::{RawJson, RequestId};

/// Parameters of `sampling/createMessage`.
///
/// Encoding fails when `temperature` or a priority is not a finite number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Which kind of model is wanted; the client decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What to tell the model first; the client may change or drop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Whose context the client should add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely the model answers, in the model's own scale.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_optional_number")]
    pub temperature: Option<f64>,
    /// The most tokens of the answer.
    #[serde(deserialize_with = "whole_number")]
    pub max_tokens: u64,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// What the provider of the model understands: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawJson>,
    /// Tools that the model may call; only for a client that declared `sampling.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// How the model uses the tools; only for a client that declared `sampling.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl CreateMessageParams {
    /// Asks for the next message, with at most `max_tokens` tokens.
    #[must_use]
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self {
            messages,
            model_preferences: None,
            system_prompt: None,
            include_context: None,
            temperature: None,
            max_tokens,
            stop_sequences: None,
            metadata: None,
            tools: None,
            tool_choice: None,
            meta: None,
        }
    }

    setters! {
        /// Says which kind of model is wanted.
        with_model_preferences(model_preferences: ModelPreferences);
        /// Says what to tell the model first.
        with_system_prompt(system_prompt: String);
        /// Says whose context to add.
        with_include_context(include_context: IncludeContext);
        /// Says how freely the model answers.
        with_temperature(temperature: f64);
    }

    /// Adds a text that ends the answer.
    #[must_use]
    pub fn with_stop_sequence(mut self, text: impl Into<String>) -> Self {
        self.stop_sequences.get_or_insert_default().push(text.into());
        self
    }

    setters! {
        /// Adds what the provider of the model understands: an object.
        with_metadata(metadata: RawJson);
    }

    /// Adds a tool that the model may call.
    #[must_use]
    pub fn with_tool(mut self, tool: Tool) -> Self {
        self.tools.get_or_insert_default().push(tool);
        self
    }

    setters! {
        /// Says how the model uses the tools.
        with_tool_choice(tool_choice: ToolChoice);
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    #[serde(serialize_with = "serialize_blocks", deserialize_with = "deserialize_blocks")]
    pub content: Vec<SamplingContent>,
    /// Metadata of the message.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl SamplingMessage {
    /// A message of these blocks.
    #[must_use]
    pub fn new(role: Role, content: Vec<SamplingContent>) -> Self {
        Self { role, content, meta: None }
    }

    /// The user says a text.
    #[must_use]
    pub fn user_text(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![SamplingContent::text(text)])
    }

    /// The assistant says a text.
    #[must_use]
    pub fn assistant_text(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![SamplingContent::text(text)])
    }

    setters! {
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// Whose context a client should add to the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum IncludeContext {
    /// No one's.
    None,
    /// The asking server's; only for a client that declared `sampling.context`.
    ThisServer,
    /// That of all servers; only for a client that declared `sampling.context`.
    AllServers,
}

/// Which kind of model is wanted; hints come before priorities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names, best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How much a low price matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_optional_number")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_optional_number")]
    pub speed_priority: Option<f64>,
    /// How much ability matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_optional_number")]
    pub intelligence_priority: Option<f64>,
}

impl ModelPreferences {
    /// Any model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name, or a part of one, after those that are there.
    #[must_use]
    pub fn with_hint(mut self, name: impl Into<String>) -> Self {
        self.hints.get_or_insert_default().push(ModelHint::new(name));
        self
    }

    setters! {
        /// Says how much a low price matters, from 0 to 1.
        with_cost_priority(cost_priority: f64);
        /// Says how much speed matters, from 0 to 1.
        with_speed_priority(speed_priority: f64);
        /// Says how much ability matters, from 0 to 1.
        with_intelligence_priority(intelligence_priority: f64);
    }
}

/// A model by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelHint {
    /// The name, or a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelHint {
    /// A model whose name contains `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()) }
    }
}

/// How the model uses tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolChoice {
    /// Absent means [`ToolChoiceMode::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

impl ToolChoice {
    /// A choice that names its mode.
    #[must_use]
    pub fn new(mode: ToolChoiceMode) -> Self {
        Self { mode: Some(mode) }
    }
}

/// Whether the model may, must or must not use a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolChoiceMode {
    /// The model decides.
    Auto,
    /// It uses at least one tool.
    Required,
    /// It uses none.
    None,
}

/// Result of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// Who speaks: the assistant.
    pub role: Role,
    /// What is said.
    #[serde(serialize_with = "serialize_blocks", deserialize_with = "deserialize_blocks")]
    pub content: Vec<SamplingContent>,
    /// The model that answered.
    pub model: String,
    /// Why the answer ended: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or a provider's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl CreateMessageResult {
    /// An answer of the assistant.
    #[must_use]
    pub fn new(model: impl Into<String>, content: Vec<SamplingContent>) -> Self {
        Self { role: Role::Assistant, content, model: model.into(), stop_reason: None, meta: None }
    }

    /// The first text in the answer.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.content.iter().find_map(|block| match block {
            SamplingContent::Text(text) => Some(text.text.as_str()),
            SamplingContent::Image(_)
            | SamplingContent::Audio(_)
            | SamplingContent::ToolUse(_)
            | SamplingContent::ToolResult(_) => None,
        })
    }

    setters! {
        /// Says why the answer ended.
        with_stop_reason(stop_reason: String);
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// An integer in any spelling that JSON Schema takes for one, such as `100.0`.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = RequestId::deserialize(deserializer)?;
    // A text shows with its quotation marks and is no number either.
    number.to_string().parse().map_err(|_| de::Error::custom(format!("expected a whole number, not {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &'static str) -> RawJson {
        RawJson::from_bytes(text.into()).unwrap()
    }

    #[test]
    fn one_block_stands_alone_and_several_are_an_array() {
        let block = r#"{"type":"text","text":"a"}"#;
        for content in [block.to_owned(), format!("[{block},{block}]"), "[]".to_owned()] {
            let text = format!(r#"{{"role":"user","content":{content}}}"#);
            let message: SamplingMessage = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), text);
        }
        let array = format!(r#"{{"role":"user","content":[{block}]}}"#);
        assert_eq!(serde_json::from_str::<SamplingMessage>(&array).unwrap(), SamplingMessage::user_text("a"));
        for content in ["null", "\"a\"", "[[]]", "{}"] {
            let text = format!(r#"{{"role":"user","content":{content}}}"#);
            assert!(serde_json::from_str::<SamplingMessage>(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_question_has_only_the_members_it_was_given() {
        let plain = CreateMessageParams::new(vec![SamplingMessage::user_text("hi")], 100);
        let text = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":100}"#;
        assert_eq!(serde_json::to_string(&plain).unwrap(), text);
        let full = CreateMessageParams::new(vec![SamplingMessage::assistant_text("so?")], u64::MAX)
            .with_model_preferences(ModelPreferences::new().with_hint("small").with_cost_priority(1.0))
            .with_system_prompt("Be brief.")
            .with_include_context(IncludeContext::ThisServer)
            .with_temperature(0.5)
            .with_stop_sequence("END")
            .with_metadata(raw(r#"{"seed":1.0}"#))
            .with_tool(Tool::new("add", raw(r#"{"type":"object"}"#)))
            .with_tool_choice(ToolChoice::new(ToolChoiceMode::Required));
        let text = concat!(
            r#"{"messages":[{"role":"assistant","content":{"type":"text","text":"so?"}}],"#,
            r#""modelPreferences":{"hints":[{"name":"small"}],"costPriority":1},"systemPrompt":"Be brief.","#,
            r#""includeContext":"thisServer","temperature":0.5,"maxTokens":18446744073709551615,"#,
            r#""stopSequences":["END"],"metadata":{"seed":1.0},"#,
            r#""tools":[{"name":"add","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}"#,
        );
        assert_eq!(serde_json::to_string(&full).unwrap(), text);
        assert_eq!(serde_json::from_str::<CreateMessageParams>(text).unwrap(), full);
    }

    #[test]
    fn the_most_tokens_are_a_whole_number_in_any_spelling() {
        let read = |number: &str| {
            let text = format!(r#"{{"messages":[],"maxTokens":{number}}}"#);
            serde_json::from_str::<CreateMessageParams>(&text).map(|params| params.max_tokens).ok()
        };
        for (number, expected) in
            [("100", Some(100)), ("100.0", Some(100)), ("1e2", Some(100)), ("18446744073709551615", Some(u64::MAX))]
        {
            assert_eq!(read(number), expected, "{number}");
        }
        for number in ["-1", "1.5", "\"100\"", "null", "18446744073709551616", "[]"] {
            assert_eq!(read(number), None, "{number}");
        }
    }

    #[test]
    fn a_number_that_json_lacks_is_an_error() {
        let question = CreateMessageParams::new(Vec::new(), 1).with_temperature(f64::NAN);
        assert!(serde_json::to_string(&question).is_err());
        assert!(serde_json::to_string(&ModelPreferences::new().with_speed_priority(f64::INFINITY)).is_err());
    }

    #[test]
    fn the_text_of_an_answer_is_its_first_text() {
        let used = SamplingContent::ToolUse(ToolUseContent::new("u", "n", RawJson::EMPTY_OBJECT));
        let blocks = vec![used.clone(), SamplingContent::text("first"), SamplingContent::text("second")];
        let answer = CreateMessageResult::new("m", blocks).with_stop_reason("endTurn");
        assert_eq!(answer.text(), Some("first"));
        assert_eq!(CreateMessageResult::new("m", vec![used]).text(), None);
        let text = r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m","stopReason":"own"}"#;
        let read: CreateMessageResult = serde_json::from_str(text).unwrap();
        assert_eq!(read.text(), Some("x"));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
