//! Resources: how they are listed, read and watched.
//!
//! Why here: the values of the `resources/*` methods; contents also travel inside content blocks.
//! Invariants: contents are either text or base64, never both; on the wire the body is flat beside the URI.
//! Spec: 2026-07-28 server/resources, "Data Types"

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Annotations, Icon, MetaObject};

/// A resource as it stands in a list or in a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it holds, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The size in bytes before any encoding, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Hints about the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl Resource {
    /// A resource by address and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            annotations: None,
            icons: None,
            meta: None,
        }
    }

    /// Sets the size in bytes.
    #[must_use]
    pub fn with_size(mut self, size: u64) -> Self {
        self.size = Some(size);
        self
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Says what the resource holds.
        with_description(description: String);
        /// Sets the media type.
        with_mime_type(mime_type: String);
        /// Sets the hints.
        with_annotations(annotations: Annotations);
        /// Sets the pictures.
        with_icons(icons: Vec<Icon>);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// A family of resources with a common pattern of addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The pattern of the addresses (RFC 6570).
    pub uri_template: String,
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the resources hold, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if all of them have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints about the contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ResourceTemplate {
    /// A template by pattern and name.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
            icons: None,
            meta: None,
        }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Says what the resources hold.
        with_description(description: String);
        /// Sets the media type.
        with_mime_type(mime_type: String);
        /// Sets the hints.
        with_annotations(annotations: Annotations);
        /// Sets the pictures.
        with_icons(icons: Vec<Icon>);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// What a resource, or a part of one, holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// The address of the resource or of the part.
    pub uri: String,
    /// The media type, if known.
    pub mime_type: Option<String>,
    /// The content.
    pub body: ResourceBody,
    /// Further facts.
    pub meta: Option<MetaObject>,
}

/// The content of a resource. On the wire it is the member `text` or `blob` beside the address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes as base64 (standard alphabet, padded).
    Blob(String),
}

impl ResourceContents {
    /// The bytes of its text or base64, which is nearly all that large contents take as JSON.
    #[must_use]
    pub fn bulk(&self) -> usize {
        match &self.body {
            ResourceBody::Text(body) | ResourceBody::Blob(body) => body.len(),
        }
    }

    /// Text at this address.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), mime_type: None, body: ResourceBody::Text(text.into()), meta: None }
    }

    /// Bytes at this address; encodes them.
    pub fn blob(uri: impl Into<String>, bytes: &[u8]) -> Self {
        Self { uri: uri.into(), mime_type: None, body: ResourceBody::Blob(STANDARD.encode(bytes)), meta: None }
    }

    setters! {
        /// Sets the media type.
        with_mime_type(mime_type: String);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = 2 + usize::from(self.mime_type.is_some()) + usize::from(self.meta.is_some());
        let mut object = serializer.serialize_struct("ResourceContents", members)?;
        object.serialize_field("uri", &self.uri)?;
        if let Some(mime_type) = &self.mime_type {
            object.serialize_field("mimeType", mime_type)?;
        }
        match &self.body {
            ResourceBody::Text(text) => object.serialize_field("text", text)?,
            ResourceBody::Blob(blob) => object.serialize_field("blob", blob)?,
        }
        if let Some(meta) = &self.meta {
            object.serialize_field("_meta", meta)?;
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Flat {
            uri: String,
            mime_type: Option<String>,
            text: Option<String>,
            blob: Option<String>,
            #[serde(rename = "_meta")]
            meta: Option<MetaObject>,
        }

        let Flat { uri, mime_type, text, blob, meta } = Flat::deserialize(deserializer)?;
        let body = match (text, blob) {
            (Some(text), None) => ResourceBody::Text(text),
            (None, Some(blob)) => ResourceBody::Blob(blob),
            (None, None) => return Err(de::Error::custom("resource contents have neither `text` nor `blob`")),
            (Some(_), Some(_)) => return Err(de::Error::custom("resource contents have both `text` and `blob`")),
        };
        Ok(Self { uri, mime_type, body, meta })
    }
}

/// The answer to `resources/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The parts of the resource. Never empty: a missing resource is an error.
    pub contents: Vec<ResourceContents>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ReadResourceResult {
    /// An answer of these parts.
    #[must_use]
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self { contents, meta: None }
    }

    setters! {
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// The answer to `resources/list`: one page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourcesResult {
    /// The resources of this page.
    pub resources: Vec<Resource>,
    /// Where the next page starts; absent: there is none. The empty string is a cursor too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ListResourcesResult {
    /// The last or only page.
    #[must_use]
    pub fn new(resources: Vec<Resource>) -> Self {
        Self { resources, next_cursor: None, meta: None }
    }

    setters! {
        /// Says where the next page starts.
        with_next_cursor(next_cursor: String);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// The answer to `resources/templates/list`: one page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourceTemplatesResult {
    /// The templates of this page.
    pub resource_templates: Vec<ResourceTemplate>,
    /// Where the next page starts; absent: there is none. The empty string is a cursor too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ListResourceTemplatesResult {
    /// The last or only page.
    #[must_use]
    pub fn new(resource_templates: Vec<ResourceTemplate>) -> Self {
        Self { resource_templates, next_cursor: None, meta: None }
    }

    setters! {
        /// Says where the next page starts.
        with_next_cursor(next_cursor: String);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// What `notifications/resources/updated` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceUpdatedParams {
    /// The resource that changed, maybe a part of the one that is watched.
    pub uri: String,
}

impl ResourceUpdatedParams {
    /// This resource changed.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

/// What `resources/subscribe` and `resources/unsubscribe` ask with (up to 2025-11-25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscribeParams {
    /// The resource to watch, or to watch no longer.
    pub uri: String,
}

impl SubscribeParams {
    /// Concerning this resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_body_is_flat_beside_the_address() {
        let text = ResourceContents::text("test://a", "hi").with_mime_type("text/plain");
        assert_eq!(serde_json::to_string(&text).unwrap(), r#"{"uri":"test://a","mimeType":"text/plain","text":"hi"}"#);
        let blob = ResourceContents::blob("test://b", &[0xfb, 0xff, 0xfe, 0])
            .with_meta(MetaObject::from_iter([("k".to_owned(), json!(1))]));
        assert_eq!(serde_json::to_string(&blob).unwrap(), r#"{"uri":"test://b","blob":"+//+AA==","_meta":{"k":1}}"#);
    }

    #[test]
    fn contents_have_exactly_one_body() {
        for bad in [r#"{"uri":"u"}"#, r#"{"uri":"u","text":"","blob":""}"#, r#"{"text":""}"#] {
            assert!(serde_json::from_str::<ResourceContents>(bad).is_err(), "{bad}");
        }
        let empty: ResourceContents = serde_json::from_str(r#"{"uri":"u","text":"","blob":null}"#).unwrap();
        assert_eq!(empty.body, ResourceBody::Text(String::new()));
    }

    #[test]
    fn every_member_has_its_name_on_the_wire() {
        let resource = Resource::new("file:///a", "a")
            .with_title("A")
            .with_description("d")
            .with_mime_type("text/plain")
            .with_size(u64::MAX)
            .with_annotations(Annotations::new().with_priority(1.0).with_last_modified("2025-01-12T15:00:58Z"))
            .with_icons(vec![Icon::new("https://example.com/i.svg")])
            .with_meta(MetaObject::new());
        let mut expected = json!({
            "uri": "file:///a",
            "name": "a",
            "title": "A",
            "description": "d",
            "mimeType": "text/plain",
            "size": u64::MAX,
            "annotations": {"priority": 1.0, "lastModified": "2025-01-12T15:00:58Z"},
            "icons": [{"src": "https://example.com/i.svg"}],
            "_meta": {},
        });
        assert_eq!(serde_json::to_value(&resource).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Resource>(expected.clone()).unwrap(), resource);

        let template = ResourceTemplate::new("test://{id}", "t").with_title("T");
        expected = json!({"uriTemplate": "test://{id}", "name": "t", "title": "T"});
        assert_eq!(serde_json::to_value(&template).unwrap(), expected);
        let page = ListResourceTemplatesResult::new(vec![template]);
        assert_eq!(serde_json::to_value(&page).unwrap(), json!({"resourceTemplates": [expected]}));
    }

    proptest! {
        #[test]
        fn contents_survive_the_wire(uri in ".*", text in ".*", bytes: Vec<u8>, mime in proptest::option::of(".*")) {
            for mut contents in [ResourceContents::text(&*uri, text), ResourceContents::blob(&*uri, &bytes)] {
                contents.mime_type.clone_from(&mime);
                let wire = serde_json::to_string(&contents).unwrap();
                prop_assert_eq!(serde_json::from_str::<ResourceContents>(&wire).unwrap(), contents);
            }
        }
    }
}
