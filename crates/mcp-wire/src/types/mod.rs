//! The protocol's values: what requests ask with, what results answer with, what notifications say.
//!
//! Why here: one set of types, shaped after the newest revision, serves every revision; `downgrade` fits them to older ones.
//! Invariants: unknown members are ignored; schemas and structured values stay the text that they were; what the engine
//! writes into every result (`resultType`, caching hints, the server's name) stands in no type here.
//! Spec: 2026-07-28 schema, "Common Types"

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::RawJson;

/// Chained setters of optional members, one line each.
macro_rules! setters {
    ($($(#[$attribute:meta])* $setter:ident($field:ident: $type:ty);)+) => {$(
        $(#[$attribute])*
        #[must_use]
        pub fn $setter(mut self, $field: impl Into<$type>) -> Self {
            self.$field = Some($field.into());
            self
        }
    )+};
}

mod cancelled;
mod completion;
mod content;
mod discover;
mod elicitation;
mod initialize;
mod logging;
mod mrtr;
mod progress;
mod prompt;
mod resource;
mod roots;
mod sampling;
mod subscription;
mod tool;

pub use cancelled::*;
pub use completion::*;
pub use content::*;
pub use discover::*;
pub use elicitation::*;
pub use initialize::*;
pub use logging::*;
pub use mrtr::*;
pub use progress::*;
pub use prompt::*;
pub use resource::*;
pub use roots::*;
pub use sampling::*;
pub use subscription::*;
pub use tool::*;

/// The members of a `_meta` object, or of any object whose names are not ours to know.
pub type MetaObject = serde_json::Map<String, serde_json::Value>;

/// Who speaks, or for whom something is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints about content: for whom, how important, how fresh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// For whom the content is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0 (optional) to 1 (in effect required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When the content last changed, as an ISO 8601 date and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// No hints yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Says for whom the content is meant.
        with_audience(audience: Vec<Role>);
        /// Sets the importance, from 0 to 1.
        with_priority(priority: f64);
        /// Sets the time of the last change, as an ISO 8601 date and time.
        with_last_modified(last_modified: String);
    }
}

/// A picture that stands for a tool, a prompt, a resource or a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// An `https:` or `data:` URI. Consumers must distrust it: other schemes and foreign hosts are for them to refuse.
    pub src: String,
    /// The media type, where the source does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any` for scalable pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background for which it is drawn; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

/// The background for which an icon is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IconTheme {
    /// Light backgrounds.
    Light,
    /// Dark backgrounds.
    Dark,
}

impl Icon {
    /// An icon at this address.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: None, theme: None }
    }

    setters! {
        /// Sets the media type.
        with_mime_type(mime_type: String);
        /// Sets the sizes, such as `48x48` or `any`.
        with_sizes(sizes: Vec<String>);
        /// Says for which background the icon is drawn.
        with_theme(theme: IconTheme);
    }
}

/// The name and version of a program that speaks the protocol. For display and logs; it proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The version, in the program's own scheme.
    pub version: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the program does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where people can read about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
}

impl Implementation {
    /// A program by name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            description: None,
            website_url: None,
            icons: None,
        }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Says what the program does.
        with_description(description: String);
        /// Says where people can read about it.
        with_website_url(website_url: String);
        /// Sets the pictures.
        with_icons(icons: Vec<Icon>);
    }
}

/// How long and for whom a result may be kept. Default: not at all (0 ms, private).
///
/// Decoding never fails over a peer's odd hint: what is absent, negative or unknown counts as the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CacheHints {
    /// Milliseconds for which the result stays fresh; 0: not reusable.
    #[serde(default, deserialize_with = "milliseconds")]
    pub ttl_ms: u64,
    /// Who may be given the kept result.
    #[serde(default, deserialize_with = "known_scope")]
    pub cache_scope: CacheScope,
}

/// Who may be given a kept result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// Any caller.
    Public,
    /// Only callers with the same authorization.
    #[default]
    Private,
}

impl CacheHints {
    /// These hints.
    #[must_use]
    pub const fn new(ttl_ms: u64, cache_scope: CacheScope) -> Self {
        Self { ttl_ms, cache_scope }
    }
}

fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    // The cast saturates: negative becomes 0.
    Option::<f64>::deserialize(deserializer).map(|number| number.unwrap_or_default() as u64)
}

fn known_scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CacheScope, D::Error> {
    let scope = Option::<String>::deserialize(deserializer)?;
    Ok(if scope.as_deref() == Some("public") { CacheScope::Public } else { CacheScope::Private })
}

/// Decodes a member that has to be an object: a derived decoder takes an array of the members' values as well.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Object<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_map(Object(PhantomData))
}

/// Decodes a member for which `null` is a value of its own and only absence means none.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_member_has_its_name_on_the_wire() {
        let icon = Icon::new("https://example.com/i.png")
            .with_mime_type("image/png")
            .with_sizes(vec!["48x48".to_owned(), "any".to_owned()])
            .with_theme(IconTheme::Dark);
        let program = Implementation::new("p", "1.0")
            .with_title("P")
            .with_description("d")
            .with_website_url("https://example.com")
            .with_icons(vec![icon]);
        let expected = json!({
            "name": "p",
            "version": "1.0",
            "title": "P",
            "description": "d",
            "websiteUrl": "https://example.com",
            "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48", "any"],
                "theme": "dark"}],
        });
        assert_eq!(serde_json::to_value(&program).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Implementation>(expected).unwrap(), program);

        let hints = Annotations::new()
            .with_audience(vec![Role::User, Role::Assistant])
            .with_priority(0.25)
            .with_last_modified("2025-01-12T15:00:58Z");
        let expected =
            json!({"audience": ["user", "assistant"], "priority": 0.25, "lastModified": "2025-01-12T15:00:58Z"});
        assert_eq!(serde_json::to_value(&hints).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Annotations>(expected).unwrap(), hints);
    }

    #[test]
    fn odd_caching_hints_count_as_none() {
        let private = |ttl_ms| CacheHints::new(ttl_ms, CacheScope::Private);
        for (wire, expected) in [
            (r#"{"ttlMs":60000,"cacheScope":"public"}"#, CacheHints::new(60_000, CacheScope::Public)),
            (r#"{"ttlMs":5.0,"cacheScope":"private","tools":[]}"#, private(5)),
            (r#"{"ttlMs":-1,"cacheScope":"shared"}"#, private(0)),
            (r#"{"ttlMs":null,"cacheScope":null}"#, private(0)),
            ("{}", CacheHints::default()),
        ] {
            assert_eq!(serde_json::from_str::<CacheHints>(wire).unwrap(), expected, "{wire}");
        }
        let wire = serde_json::to_string(&CacheHints::new(7, CacheScope::Public)).unwrap();
        assert_eq!(wire, r#"{"ttlMs":7,"cacheScope":"public"}"#);
    }
}
