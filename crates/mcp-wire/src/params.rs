//! The parameters of a request, looked at once: the `_meta` keys and the members that name the request's target.
//!
//! Why here: the era, the mirrored headers, the checks and the methods all read the same few members; one pass serves
//! them all and nothing is copied.
//! Invariants: a member that occurs twice is refused, so that no two readers can see different values.
//! Spec: 2026-07-28 basic/index, "`_meta`"

use std::borrow::Cow;
use std::fmt;

use bytestring::ByteString;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::RawJson;

/// The `_meta` key of the claimed revision.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `_meta` key of what the client can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key of what the client is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The `_meta` key of the least severe log message wanted.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `_meta` key that ties a notification to its subscription.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The `_meta` key of what the server is.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The `_meta` key that ties a message to a core task.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The parameters of a message: the members that more than one layer reads, each untouched text, and [`Self::raw`] the
/// whole of them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Params {
    /// The known keys of `_meta`; the whole of it is [`meta_of`] the parameters.
    pub keys: MetaKeys,
    /// `name` of a tool or prompt.
    pub name: Option<RawJson>,
    /// `uri` of a resource.
    pub uri: Option<RawJson>,
    /// `taskId`
    pub task_id: Option<RawJson>,
    /// `arguments` of a tool or prompt.
    pub arguments: Option<RawJson>,
    /// `inputResponses` of a retried request.
    pub input_responses: Option<RawJson>,
    /// `requestState` of a retried request.
    pub request_state: Option<RawJson>,
    /// `cursor` of a list.
    pub cursor: Option<RawJson>,
    /// `task` of a legacy call.
    pub task: Option<RawJson>,
    whole: Whole,
}

/// Where the whole parameters are.
#[derive(Clone, Debug, Default)]
enum Whole {
    #[default]
    Absent,
    Here(RawJson),
    /// The member `params` of this message, found when asked for: most methods never ask, and delimiting the member would
    /// cost a second pass over every message.
    Within(ByteString),
}

/// The keys of `_meta` that the protocol knows; each is untouched text.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MetaKeys {
    /// [`PROTOCOL_VERSION`]
    pub protocol_version: Option<RawJson>,
    /// [`CLIENT_CAPABILITIES`]
    pub client_capabilities: Option<RawJson>,
    /// [`CLIENT_INFO`]
    pub client_info: Option<RawJson>,
    /// [`LOG_LEVEL`]
    pub log_level: Option<RawJson>,
    /// `progressToken`
    pub progress_token: Option<RawJson>,
    /// `traceparent`
    pub traceparent: Option<RawJson>,
    /// `tracestate`
    pub tracestate: Option<RawJson>,
    /// `baggage`
    pub baggage: Option<RawJson>,
}

/// Why parameters could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
#[non_exhaustive]
pub struct ParamsError(pub String);

impl Params {
    /// Looks at the members of `params`; absent parameters have none.
    ///
    /// # Errors
    /// When a member or a `_meta` key occurs twice, or `_meta` is not an object.
    pub fn read(params: Option<&RawJson>) -> Result<Self, ParamsError> {
        let Some(params) = params else { return Ok(Self::default()) };
        let mut read = Self { whole: Whole::Here(params.clone()), ..Self::default() };
        let mut json = serde_json::Deserializer::from_str(params.as_str());
        let members = Members { text: params.shared_text(), params: &mut read };
        members.deserialize(&mut json).map_err(|error| ParamsError(plain(&error)))?;
        Ok(read)
    }

    /// The whole parameters, untouched; `None` if the message has none.
    #[must_use]
    pub fn raw(&self) -> Option<RawJson> {
        match &self.whole {
            Whole::Absent => None,
            Whole::Here(params) => Some(params.clone()),
            Whole::Within(message) => {
                let mut json = serde_json::Deserializer::from_str(message);
                // It was found there once, when the message was decoded.
                One { text: message, name: "params" }.deserialize(&mut json).ok().flatten()
            }
        }
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        // Everything else is read from it.
        self.raw() == other.raw()
    }
}

/// Reads the member `params` of `message` while the message itself is read.
pub(crate) struct Within<'m> {
    pub(crate) message: &'m ByteString,
}

impl<'de> DeserializeSeed<'de> for Within<'_> {
    type Value = Box<Params>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Box<Params>, D::Error> {
        // Filled in its place: it is a large value.
        let mut params = Box::<Params>::default();
        params.whole = Whole::Within(self.message.clone());
        Members { text: self.message, params: &mut params }.deserialize(deserializer)?;
        Ok(params)
    }
}

/// `_meta` of some parameters, whole and untouched; for handlers, which rarely look at it.
#[must_use]
pub fn meta_of(params: &RawJson) -> Option<RawJson> {
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let meta: Meta<'_> = params.parse_borrowed().ok()?;
    meta.meta.map(|meta| params.part(meta))
}

/// The member `name` of an object, untouched; for members that only some requests have.
///
/// # Errors
/// When it occurs twice, or `object` is no object.
pub fn member_of(object: &RawJson, name: &str) -> Result<Option<RawJson>, ParamsError> {
    let mut json = serde_json::Deserializer::from_str(object.as_str());
    One { text: object.shared_text(), name }.deserialize(&mut json).map_err(|error| ParamsError(plain(&error)))
}

/// The parser adds a position that means nothing to whoever sent the message.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text.get(..at).unwrap_or_default().to_owned(),
        None => text,
    }
}

/// Fills `params` with the members that it knows.
struct Members<'t> {
    text: &'t ByteString,
    params: &'t mut Params,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { text, params } = self;
        let mut meta_seen = false;
        while let Some(member) = map.next_key::<Member>()? {
            let (slot, name) = match member {
                Member::Meta => {
                    if std::mem::replace(&mut meta_seen, true) {
                        return Err(repeated("_meta"));
                    }
                    map.next_value_seed(Keys { text, keys: &mut params.keys })?;
                    continue;
                }
                Member::Name => (&mut params.name, "name"),
                Member::Uri => (&mut params.uri, "uri"),
                Member::TaskId => (&mut params.task_id, "taskId"),
                Member::Arguments => (&mut params.arguments, "arguments"),
                Member::InputResponses => (&mut params.input_responses, "inputResponses"),
                Member::RequestState => (&mut params.request_state, "requestState"),
                Member::Cursor => (&mut params.cursor, "cursor"),
                Member::Task => (&mut params.task, "task"),
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            fill(slot, name, text, map.next_value()?)?;
        }
        Ok(())
    }
}

struct One<'t> {
    text: &'t ByteString,
    name: &'t str,
}

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Option<RawJson>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<RawJson>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Option<RawJson>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<RawJson>, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            if name == self.name {
                fill(&mut found, self.name, self.text, map.next_value()?)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct Keys<'t> {
    text: &'t ByteString,
    keys: &'t mut MetaKeys,
}

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object as _meta")
    }

    /// Some clients write `null` for "nothing".
    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { text, keys } = self;
        while let Some(key) = map.next_key::<Key>()? {
            let (slot, name) = match key {
                Key::ProtocolVersion => (&mut keys.protocol_version, PROTOCOL_VERSION),
                Key::ClientCapabilities => (&mut keys.client_capabilities, CLIENT_CAPABILITIES),
                Key::ClientInfo => (&mut keys.client_info, CLIENT_INFO),
                Key::LogLevel => (&mut keys.log_level, LOG_LEVEL),
                Key::ProgressToken => (&mut keys.progress_token, "progressToken"),
                Key::Traceparent => (&mut keys.traceparent, "traceparent"),
                Key::Tracestate => (&mut keys.tracestate, "tracestate"),
                Key::Baggage => (&mut keys.baggage, "baggage"),
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            fill(slot, name, text, map.next_value()?)?;
        }
        Ok(())
    }
}

fn fill<E: de::Error>(slot: &mut Option<RawJson>, name: &str, text: &ByteString, value: &RawValue) -> Result<(), E> {
    if slot.is_some() {
        return Err(repeated(name));
    }
    *slot = Some(RawJson::slice_of(text, value));
    Ok(())
}

fn repeated<E: de::Error>(name: &str) -> E {
    E::custom(format!("\"{name}\" occurs more than once"))
}

macro_rules! names {
    ($kind:ident { $($variant:ident = $name:pat,)* }) => {
        enum $kind {
            $($variant,)*
            Other,
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Name;

                impl Visitor<'_> for Name {
                    type Value = $kind;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a member name")
                    }

                    fn visit_str<E: de::Error>(self, name: &str) -> Result<$kind, E> {
                        Ok(match name {
                            $($name => $kind::$variant,)*
                            _ => $kind::Other,
                        })
                    }
                }

                deserializer.deserialize_identifier(Name)
            }
        }
    };
}

names!(Member {
    Meta = "_meta",
    Name = "name",
    Uri = "uri",
    TaskId = "taskId",
    Arguments = "arguments",
    InputResponses = "inputResponses",
    RequestState = "requestState",
    Cursor = "cursor",
    Task = "task",
});

names!(Key {
    ProtocolVersion = PROTOCOL_VERSION,
    ClientCapabilities = CLIENT_CAPABILITIES,
    ClientInfo = CLIENT_INFO,
    LogLevel = LOG_LEVEL,
    ProgressToken = "progressToken",
    Traceparent = "traceparent",
    Tracestate = "tracestate",
    Baggage = "baggage",
});

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn read(text: &str) -> Result<Params, ParamsError> {
        Params::read(Some(&RawJson::from_bytes(Bytes::from(text.to_owned())).unwrap()))
    }

    #[test]
    fn members_and_keys_are_slices_of_the_frame() {
        let text = r#"{"name":"echo","arguments":{"n": 9007199254740993},"x":1,
               "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":7,"own":{}}}"#;
        let params = read(text).unwrap();
        assert_eq!(params.name.unwrap().as_str(), "\"echo\"");
        assert_eq!(params.arguments.unwrap().as_str(), r#"{"n": 9007199254740993}"#);
        assert_eq!(params.keys.protocol_version.unwrap().as_str(), "\"2026-07-28\"");
        assert_eq!(params.keys.progress_token.unwrap().as_str(), "7");
        let meta = meta_of(&RawJson::from_bytes(Bytes::from_static(text.as_bytes())).unwrap()).unwrap();
        assert!(meta.as_str().ends_with("\"own\":{}}"));
    }

    #[test]
    fn escaped_member_names_are_the_same_members() {
        assert_eq!(read(r#"{"n\u0061me":"echo"}"#).unwrap().name.unwrap().as_str(), "\"echo\"");
    }

    #[test]
    fn a_member_that_occurs_twice_is_refused() {
        let twice = [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","n\u0061me":"b"}"#,
            r#"{"_meta":{},"_meta":{}}"#,
            r#"{"_meta":{"progressToken":1,"progressToken":2}}"#,
        ];
        for text in twice {
            assert!(read(text).unwrap_err().0.contains("more than once"), "{text}");
        }
    }

    #[test]
    fn one_member_is_found_by_any_spelling_of_its_name_and_refused_twice() {
        let object = |text: &str| RawJson::from_bytes(Bytes::from(text.to_owned())).unwrap();
        let found = member_of(&object(r#"{"a":1,"d\u006fc": [1, 2],"x":{"doc":3}}"#), "doc").unwrap();
        assert_eq!(found.unwrap().as_str(), "[1, 2]");
        assert_eq!(member_of(&object(r#"{"a":1}"#), "doc"), Ok(None));
        assert!(member_of(&object(r#"{"doc":1,"d\u006fc":1}"#), "doc").unwrap_err().0.contains("more than once"));
        assert!(member_of(&object("[1]"), "doc").is_err());
    }

    #[test]
    fn a_meta_that_is_no_object_is_refused_and_null_is_none() {
        assert!(read(r#"{"_meta":[]}"#).is_err());
        assert!(read(r#"{"_meta":"x"}"#).is_err());
        assert!(read(r#"{"_meta":null}"#).unwrap().keys.progress_token.is_none());
        assert!(Params::read(None).unwrap().keys.progress_token.is_none());
    }
}
