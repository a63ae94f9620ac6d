//! The blocks of a sampling message, and how a list of them stands on the wire.
//!
//! Why here: they are content blocks, plus what models say to tools and tools to models.
//! Invariants: one block stands alone on the wire, which older revisions require, and several are an array; the inputs
//! and structured results of tools keep their text, wherever in the block `type` stands.
//! Spec: 2026-07-28 client/sampling, "Message Content"

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::RawJson;
use crate::types::{AudioContent, ContentBlock, ImageContent, MetaObject, TextContent, present};

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

pub(super) fn serialize_blocks<S: Serializer>(blocks: &[SamplingContent], serializer: S) -> Result<S::Ok, S::Error> {
    match blocks {
        [block] => block.serialize(serializer),
        blocks => blocks.serialize(serializer),
    }
}

pub(super) fn deserialize_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SamplingContent>, D::Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &'static str) -> RawJson {
        RawJson::from_bytes(text.into()).unwrap()
    }

    fn read(text: &str) -> Result<SamplingContent, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn blocks_are_tagged_by_their_type() {
        let used = ToolUseContent::new("u-1", "add", raw(r#"{"a":1.0}"#));
        let said = ToolResultContent::new("u-1", vec![ContentBlock::text("2")])
            .with_structured_content(raw("2.50"))
            .with_is_error(false);
        for (block, text) in [
            (SamplingContent::text("hi"), r#"{"type":"text","text":"hi"}"#),
            (
                SamplingContent::Image(ImageContent::new(b"x", "image/png")),
                r#"{"type":"image","data":"eA==","mimeType":"image/png"}"#,
            ),
            (
                SamplingContent::Audio(AudioContent::new(b"x", "audio/wav")),
                r#"{"type":"audio","data":"eA==","mimeType":"audio/wav"}"#,
            ),
            (SamplingContent::ToolUse(used), r#"{"type":"tool_use","id":"u-1","name":"add","input":{"a":1.0}}"#),
            (
                SamplingContent::ToolResult(said),
                r#"{"type":"tool_result","toolUseId":"u-1","content":[{"type":"text","text":"2"}],"structuredContent":2.50,"isError":false}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&block).unwrap(), text);
            assert_eq!(read(text).unwrap(), block);
        }
    }

    #[test]
    fn an_input_keeps_its_text_wherever_the_type_stands() {
        for text in [
            r#"{"type":"tool_use","id":"u","name":"n","input":{"z":1.0,"a":18446744073709551616}}"#,
            r#"{"input":{"z":1.0,"a":18446744073709551616},"type":"tool_use","id":"u","name":"n"}"#,
            r#"{"id":"u","x\u0022":[],"name":"n","input":{"z":1.0,"a":18446744073709551616},"t\u0079pe":"tool_use"}"#,
        ] {
            let SamplingContent::ToolUse(used) = read(text).unwrap() else { panic!("{text}") };
            assert_eq!(used.input.as_str(), r#"{"z":1.0,"a":18446744073709551616}"#);
        }
    }

    #[test]
    fn a_structured_result_may_be_null_and_an_absent_one_is_none() {
        let structured = |text: &str| match read(text).unwrap() {
            SamplingContent::ToolResult(said) => said.structured_content,
            other => panic!("{other:?}"),
        };
        let null = r#"{"type":"tool_result","toolUseId":"u","content":[],"structuredContent":null}"#;
        assert_eq!(structured(null), Some(RawJson::NULL));
        assert_eq!(structured(r#"{"type":"tool_result","toolUseId":"u","content":[]}"#), None);
    }

    #[test]
    fn a_block_that_is_none_is_refused() {
        for text in [
            "{}",
            r#"{"text":"hi"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":7,"text":"hi"}"#,
            r#"{"type":"resource","resource":{"uri":"a","text":"b"}}"#,
            r#"{"text":"hi","type":"text","type":"image"}"#,
            r#"{"text":"hi","type":"text","text":"ho"}"#,
            "[]",
            r#""text""#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
