//! Questions to the client's model, and its answers.
//!
//! Why here: a server asks in both eras, a client answers, and the shapes are the same.
//! Invariants: a message holds a list of blocks here; on the wire one block stands alone, which older revisions require,
//! and several are an array. The inputs and structured results of tools stay raw.
//! Spec: 2026-07-28 client/sampling, "Protocol Messages"

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::present;
use super::progress::serialize_optional_number;
use crate::types::{AudioContent, ContentBlock, ImageContent, MetaObject, Role, TextContent, Tool};
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

/// One block of a message; `type` tells which on the wire.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingContent {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// A sound.
    Audio(AudioContent),
    /// The model wants a tool called.
    ToolUse(ToolUseContent),
    /// What the tool said.
    ToolResult(ToolResultContent),
}

impl SamplingContent {
    /// A block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }
}

/// The model wants a tool called; without the tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUseContent {
    /// Names this use; its result carries the same id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The tool's arguments: an object.
    pub input: RawJson,
    /// Metadata of the block.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ToolUseContent {
    /// A call of the tool `name`.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: RawJson) -> Self {
        Self { id: id.into(), name: name.into(), input, meta: None }
    }

    setters! {
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// What a tool said to a use; without the tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// The id of the use.
    pub tool_use_id: String,
    /// What was said.
    pub content: Vec<ContentBlock>,
    /// The same as a value; any JSON, `null` included.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub structured_content: Option<RawJson>,
    /// Whether the tool failed; absent means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata of the block.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ToolResultContent {
    /// A result of the use `tool_use_id`.
    #[must_use]
    pub fn new(tool_use_id: impl Into<String>, content: Vec<ContentBlock>) -> Self {
        Self { tool_use_id: tool_use_id.into(), content, structured_content: None, is_error: None, meta: None }
    }

    setters! {
        /// Adds the result as a value.
        with_structured_content(structured_content: RawJson);
        /// Says whether the tool failed.
        with_is_error(is_error: bool);
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

fn serialize_blocks<S: Serializer>(blocks: &[SamplingContent], serializer: S) -> Result<S::Ok, S::Error> {
    match blocks {
        [block] => block.serialize(serializer),
        blocks => blocks.serialize(serializer),
    }
}

fn deserialize_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SamplingContent>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<SamplingContent>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a content block or an array of them")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Ok(vec![SamplingContent::deserialize(MapAccessDeserializer::new(map))?])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut blocks = Vec::new();
            while let Some(block) = seq.next_element()? {
                blocks.push(block);
            }
            Ok(blocks)
        }
    }

    deserializer.deserialize_any(OneOrMany)
}

/// An integer in any spelling that JSON Schema takes for one, such as `100.0`.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = RequestId::deserialize(deserializer)?;
    // A text shows with its quotation marks and is no number either.
    number.to_string().parse().map_err(|_| de::Error::custom(format!("expected a whole number, not {number}")))
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Block)
    }
}

/// Decodes a block. Nearly everybody writes `type` first, so that the rest decodes straight into the right struct; a
/// block that has it elsewhere is put together again from its raw members, so that the input keeps its text.
struct Block;

impl<'de> Visitor<'de> for Block {
    type Value = SamplingContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SamplingContent, A::Error> {
        let mut kind: Option<String> = None;
        let mut members: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name != "type" {
                members.push((name, map.next_value()?));
                continue;
            }
            if kind.is_some() {
                return Err(de::Error::duplicate_field("type"));
            }
            let value: String = map.next_value()?;
            if members.is_empty() {
                return block(&value, MapAccessDeserializer::new(map));
            }
            kind = Some(value);
        }
        let Some(kind) = kind else { return Err(de::Error::missing_field("type")) };
        let text = serde_json::to_string(&Members(&members)).map_err(de::Error::custom)?;
        block(&kind, &mut serde_json::Deserializer::from_str(&text)).map_err(de::Error::custom)
    }
}

/// Members in their order, written as an object.
struct Members<'a>(&'a [(String, Box<RawValue>)]);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn block<'de, D: Deserializer<'de>>(kind: &str, members: D) -> Result<SamplingContent, D::Error> {
    const KINDS: &[&str] = &["text", "image", "audio", "tool_use", "tool_result"];

    match kind {
        "text" => TextContent::deserialize(members).map(SamplingContent::Text),
        "image" => ImageContent::deserialize(members).map(SamplingContent::Image),
        "audio" => AudioContent::deserialize(members).map(SamplingContent::Audio),
        "tool_use" => ToolUseContent::deserialize(members).map(SamplingContent::ToolUse),
        "tool_result" => ToolResultContent::deserialize(members).map(SamplingContent::ToolResult),
        unknown => Err(de::Error::unknown_variant(unknown, KINDS)),
    }
}
