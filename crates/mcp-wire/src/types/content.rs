//! Content blocks: text, pictures, sound, resources and links to resources.
//!
//! Why here: tool results, prompts and sampling are all made of them.
//! Invariants: a block is encoded member by member, without a tree in between; a block of an unknown type is an error.
//! Spec: 2026-07-28 server/tools, "Tool Result"

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{Annotations, MetaObject, Resource, ResourceContents};

/// One piece of content; `type` tells which on the wire.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// Sound (from 2025-03-26).
    Audio(AudioContent),
    /// A resource that can be read (from 2025-06-18).
    ResourceLink(Resource),
    /// A resource with its contents.
    Resource(EmbeddedResource),
}

impl ContentBlock {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The bytes of its text or data, which is nearly all that large content takes as JSON.
    #[must_use]
    pub fn bulk(&self) -> usize {
        match self {
            Self::Text(text) => text.text.len(),
            Self::Image(image) => image.data.len(),
            Self::Audio(audio) => audio.data.len(),
            Self::ResourceLink(_) => 0,
            Self::Resource(embedded) => embedded.resource.bulk(),
        }
    }

    /// A picture of this media type; encodes the bytes.
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(bytes, mime_type))
    }

    /// Sound of this media type; encodes the bytes.
    pub fn audio(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(bytes, mime_type))
    }

    /// A resource with its contents.
    #[must_use]
    pub fn resource(resource: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource::new(resource))
    }

    /// A resource that can be read.
    #[must_use]
    pub fn link(resource: Resource) -> Self {
        Self::ResourceLink(resource)
    }

    /// The text, if the block is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(block) = self { Some(&block.text) } else { None }
    }

    /// Sets the hints, whatever the block is.
    #[must_use]
    pub fn with_annotations(mut self, annotations: Annotations) -> Self {
        *self.annotations_mut() = Some(annotations);
        self
    }

    /// Sets further facts, whatever the block is.
    #[must_use]
    pub fn with_meta(mut self, meta: MetaObject) -> Self {
        *self.meta_mut() = Some(meta);
        self
    }

    pub(crate) fn annotations_mut(&mut self) -> &mut Option<Annotations> {
        match self {
            Self::Text(block) => &mut block.annotations,
            Self::Image(block) => &mut block.annotations,
            Self::Audio(block) => &mut block.annotations,
            Self::ResourceLink(block) => &mut block.annotations,
            Self::Resource(block) => &mut block.annotations,
        }
    }

    pub(crate) fn meta_mut(&mut self) -> &mut Option<MetaObject> {
        match self {
            Self::Text(block) => &mut block.meta,
            Self::Image(block) => &mut block.meta,
            Self::Audio(block) => &mut block.meta,
            Self::ResourceLink(block) => &mut block.meta,
            Self::Resource(block) => &mut block.meta,
        }
    }
}

/// Text, without the tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl TextContent {
    /// A text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), annotations: None, meta: None }
    }
}

/// A picture, without the tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// The bytes as base64 (standard alphabet, padded).
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Hints about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ImageContent {
    /// A picture of this media type; encodes the bytes.
    pub fn new(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self { data: STANDARD.encode(bytes), mime_type: mime_type.into(), annotations: None, meta: None }
    }
}

/// Sound, without the tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// The bytes as base64 (standard alphabet, padded).
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Hints about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl AudioContent {
    /// Sound of this media type; encodes the bytes.
    pub fn new(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self { data: STANDARD.encode(bytes), mime_type: mime_type.into(), annotations: None, meta: None }
    }
}

/// A resource with its contents, without the tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// Hints about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl EmbeddedResource {
    /// A resource with these contents.
    #[must_use]
    pub fn new(resource: ResourceContents) -> Self {
        Self { resource, annotations: None, meta: None }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Block)
    }
}

/// Decodes a block. Nearly everybody writes `type` first, so that the rest decodes straight into the right struct; a
/// block that has it elsewhere takes the way over a tree.
struct Block;

impl<'de> Visitor<'de> for Block {
    type Value = ContentBlock;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ContentBlock, A::Error> {
        let Some(first) = map.next_key::<Borrowed<'_>>()? else {
            return Err(de::Error::missing_field("type"));
        };
        if first.0 == "type" {
            let kind = map.next_value::<Borrowed<'_>>()?;
            return block(&kind.0, MapAccessDeserializer::new(map));
        }
        let mut members = MetaObject::new();
        members.insert(first.0.into_owned(), map.next_value()?);
        while let Some((name, value)) = map.next_entry()? {
            members.insert(name, value);
        }
        let Some(kind) = members.remove("type") else {
            return Err(de::Error::missing_field("type"));
        };
        let kind = kind.as_str().ok_or_else(|| de::Error::custom("`type` is not a string"))?;
        block(kind, serde_json::Value::Object(members)).map_err(de::Error::custom)
    }
}

fn block<'de, D: Deserializer<'de>>(kind: &str, members: D) -> Result<ContentBlock, D::Error> {
    const KINDS: &[&str] = &["text", "image", "audio", "resource_link", "resource"];

    fn read<'de, D: Deserializer<'de>, T: DeserializeOwned>(members: D) -> Result<T, D::Error> {
        T::deserialize(members)
    }

    match kind {
        "text" => read(members).map(ContentBlock::Text),
        "image" => read(members).map(ContentBlock::Image),
        "audio" => read(members).map(ContentBlock::Audio),
        "resource_link" => read(members).map(ContentBlock::ResourceLink),
        "resource" => read(members).map(ContentBlock::Resource),
        unknown => Err(de::Error::unknown_variant(unknown, KINDS)),
    }
}

/// A string that is not copied unless it holds escapes.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::types::Role;

    fn samples() -> [(ContentBlock, Value); 5] {
        let link = Resource::new("file:///a", "a").with_size(3);
        let inner = ResourceContents::text("test://a", "inner");
        [
            (ContentBlock::text("said"), json!({"type": "text", "text": "said"})),
            (ContentBlock::image(b"x", "image/png"), json!({"type": "image", "data": "eA==", "mimeType": "image/png"})),
            (
                ContentBlock::audio(b"xyz", "audio/wav"),
                json!({"type": "audio", "data": "eHl6", "mimeType": "audio/wav"}),
            ),
            (ContentBlock::link(link), json!({"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3})),
            (
                ContentBlock::resource(inner),
                json!({"type": "resource", "resource": {"uri": "test://a", "text": "inner"}}),
            ),
        ]
    }

    #[test]
    fn blocks_are_tagged_by_their_type() {
        for (block, wire) in samples() {
            let text = serde_json::to_string(&block).unwrap();
            assert!(text.starts_with(r#"{"type":""#), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wire);
            assert_eq!(serde_json::from_str::<ContentBlock>(&text).unwrap(), block);
        }
    }

    #[test]
    fn the_type_may_stand_anywhere() {
        for (block, wire) in samples() {
            // Values sort their members, so that some come before `type`.
            let text = wire.to_string();
            assert_eq!(serde_json::from_str::<ContentBlock>(&text).unwrap(), block, "{text}");
            assert_eq!(serde_json::from_value::<ContentBlock>(wire).unwrap(), block);
        }
    }

    #[test]
    fn members_of_other_kinds_are_ignored() {
        for text in [
            r#"{"type":"text","text":"said","size":"big","data":{},"new":[1e999]}"#,
            r#"{"size":"big","type":"text","text":"said","data":{}}"#,
            r#"{"t\u0079pe":"te\u0078t","text":"said"}"#,
        ] {
            assert_eq!(serde_json::from_str::<ContentBlock>(text).unwrap(), ContentBlock::text("said"), "{text}");
        }
    }

    #[test]
    fn blocks_of_no_known_type_are_refused() {
        for bad in [
            r#"{"type":"video","data":"","mimeType":""}"#,
            r#"{"data":"","mimeType":"","type":"video"}"#,
            r#"{"text":"said"}"#,
            r#"{"text":"said","type":1}"#,
            r#"{"type":null,"text":"said"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"image","data":""}"#,
            "{}",
            r#""text""#,
        ] {
            assert!(serde_json::from_str::<ContentBlock>(bad).is_err(), "{bad}");
        }
        let error = serde_json::from_str::<ContentBlock>(r#"{"type":"video"}"#).unwrap_err();
        assert!(error.to_string().starts_with("unknown variant `video`"), "{error}");
    }

    proptest! {
        #[test]
        fn blocks_survive_the_wire(
            which in 0_usize..5,
            text in ".*",
            // Eighths, because not every decimal fraction survives serde_json's parser to the last bit.
            priority in proptest::option::of((0_u8..=8).prop_map(|eighths| f64::from(eighths) / 8.0)),
            name in ".*",
            with_meta: bool,
        ) {
            let [(first, _), rest @ ..] = samples();
            let mut block = match which {
                0 => ContentBlock::text(text),
                _ => rest.into_iter().map(|(block, _)| block).nth(which - 1).unwrap_or(first),
            };
            if let Some(priority) = priority {
                let hints = Annotations::new().with_audience(vec![Role::User]).with_priority(priority);
                block = block.with_annotations(hints);
            }
            if with_meta {
                block = block.with_meta(MetaObject::from_iter([(name, json!({"type": "image"}))]));
            }
            let wire = serde_json::to_string(&block).unwrap();
            prop_assert_eq!(&serde_json::from_str::<ContentBlock>(&wire).unwrap(), &block);
            let tree: Value = serde_json::from_str(&wire).unwrap();
            prop_assert_eq!(serde_json::from_str::<ContentBlock>(&tree.to_string()).unwrap(), block);
        }
    }
}
