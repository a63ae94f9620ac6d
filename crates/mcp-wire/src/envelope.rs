//! JSON-RPC frames that arrive, decoded.
//!
//! Why here: every transport and both engines meet the same envelope rules, checked once.
//! Invariants: parameters and results are slices of the received frame; an error carries the request's id whenever it
//! could be read.
//! Spec: 2026-07-28 basic/index, "Messages"

use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::params::{Params, ParamsError, Within};
use crate::{ErrorCode, Method, RawJson, RequestId, RpcError};

/// A message that expects a response.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "JSON-RPC 2.0 is closed")]
pub struct Request {
    /// Chosen by the sender; echoed in the response with the same JSON type.
    pub id: RequestId,
    /// What is asked for.
    pub method: Method,
    /// Boxed: a message moves through several hands.
    pub params: Box<Params>,
}

/// A message that expects no response.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "JSON-RPC 2.0 is closed")]
pub struct Notification {
    /// What happened.
    pub method: Method,
    /// Boxed as those of a request.
    pub params: Box<Params>,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "JSON-RPC 2.0 is closed")]
pub struct Response {
    /// The id of the request; `None` in an error about a frame whose id could not be read.
    pub id: Option<RequestId>,
    /// An object, or an error.
    pub outcome: Result<RawJson, RpcError>,
}

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 is closed")]
pub enum Message {
    /// Expects a response.
    Request(Request),
    /// Expects none.
    Notification(Notification),
    /// Ends a request of ours.
    Response(Response),
}

/// What one frame (an HTTP body, a line) holds.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 is closed")]
pub enum Frame {
    /// A single message.
    One(Message),
    /// An array of messages, as one revision has them; never empty.
    Batch(Vec<Result<Message, DecodeError>>),
    /// Not a message.
    Malformed(DecodeError),
}

/// Bounds on what is decoded; everything beyond is refused before it costs memory.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// Deepest nesting of arrays and objects. Default 64.
    pub depth: usize,
    /// Most elements of a batch. Default 100.
    pub batch: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { depth: 64, batch: 100 }
    }
}

/// Why a frame is no message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not JSON at all: -32700.
    #[error("the body is not valid JSON: {0}")]
    NotJson(String),
    /// JSON, but nested too deeply: -32600.
    #[error("the message is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit in force.
        limit: usize,
    },
    /// A batch with no or too many elements: -32600.
    #[error("{0}")]
    Batch(String),
    /// A message whose parameters no two readers need see alike: -32602.
    #[error("params: {error}")]
    Params {
        /// What was wrong.
        error: ParamsError,
        /// The id, where it is a request's.
        id: Option<RequestId>,
    },
    /// JSON, but not a JSON-RPC 2.0 message: -32600.
    #[error("{reason}")]
    Invalid {
        /// What was wrong and what is right.
        reason: String,
        /// The id, where it could be read.
        id: Option<RequestId>,
    },
}

impl DecodeError {
    /// The id of the request that the frame meant to be, where it could be read.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Params { id, .. } | Self::Invalid { id, .. } => id.as_ref(),
            Self::NotJson(_) | Self::TooDeep { .. } | Self::Batch(_) => None,
        }
    }

    /// The error to answer with.
    #[must_use]
    pub fn to_rpc(&self) -> RpcError {
        let code = match self {
            Self::NotJson(_) => ErrorCode::PARSE_ERROR,
            Self::Params { .. } => ErrorCode::INVALID_PARAMS,
            Self::TooDeep { .. } | Self::Batch(_) | Self::Invalid { .. } => ErrorCode::INVALID_REQUEST,
        };
        RpcError::new(code, self.to_string())
    }
}

impl Frame {
    /// Decodes one frame. Never fails: a frame that is no message is [`Frame::Malformed`].
    #[must_use]
    pub fn decode(frame: &Bytes, limits: DecodeLimits) -> Self {
        match decode(frame, limits) {
            Ok(frame) => frame,
            Err(error) => Self::Malformed(error),
        }
    }
}

fn decode(frame: &Bytes, limits: DecodeLimits) -> Result<Frame, DecodeError> {
    let text = ByteString::try_from(frame.clone())
        .map_err(|error| DecodeError::NotJson(format!("it is not UTF-8 from byte {} on", error.valid_up_to())))?;
    if crate::depth::exceeds(text.as_bytes(), limits.depth) {
        return Err(DecodeError::TooDeep { limit: limits.depth });
    }
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => decode_message(&text).map(Frame::One),
        Some(b'[') => decode_batch(&text, limits.batch),
        _ => {
            let _: IgnoredAny = serde_json::from_str(&text).map_err(not_json)?;
            Err(invalid("a message is a JSON object", None))
        }
    }
}

/// In one pass if the parameters can be read, else in a second one that says why not, and for which request.
fn decode_message(text: &ByteString) -> Result<Message, DecodeError> {
    let envelope = match Envelope::read(text, true) {
        Ok(envelope) => envelope,
        Err(_) => Envelope::read(text, false).map_err(not_json)?,
    };
    envelope.into_message(text)
}

fn decode_batch(text: &ByteString, limit: usize) -> Result<Frame, DecodeError> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
    if elements.is_empty() {
        return Err(DecodeError::Batch("a batch holds at least one message".to_owned()));
    }
    if elements.len() > limit {
        return Err(DecodeError::Batch(format!("a batch holds at most {limit} messages")));
    }
    let decode_element = |element: &RawValue| {
        if !element.get().starts_with('{') {
            return Err(invalid("each element of a batch is a JSON object", None));
        }
        decode_message(&text.slice_ref(element.get()))
    };
    Ok(Frame::Batch(elements.into_iter().map(decode_element).collect()))
}

#[expect(clippy::needless_pass_by_value, reason = "has the shape that map_err takes")]
fn not_json(error: serde_json::Error) -> DecodeError {
    DecodeError::NotJson(error.to_string())
}

fn invalid(reason: impl Into<String>, id: Option<RequestId>) -> DecodeError {
    DecodeError::Invalid { reason: reason.into(), id }
}

/// The members of any message, undecoded. Flat on purpose: an untagged enum would buffer the frame and lose raw text.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: EnvelopeParams<'a>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    repeated: Option<&'static str>,
}

#[derive(Default)]
enum EnvelopeParams<'a> {
    #[default]
    Absent,
    Read(Box<Params>),
    Delimited(&'a RawValue),
}

impl<'a> Envelope<'a> {
    /// Reads the members of a message, and those of its parameters with them or not.
    fn read(message: &'a ByteString, with_params: bool) -> Result<Self, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(message);
        let envelope = Members { message, with_params }.deserialize(&mut json)?;
        json.end()?;
        Ok(envelope)
    }

    fn into_message(self, text: &ByteString) -> Result<Message, DecodeError> {
        let id = self.id.map(|raw| (raw, RequestId::from_json(raw.get())));
        let readable = id.as_ref().and_then(|(_, id)| id.clone());
        if let Some(member) = self.repeated {
            return Err(invalid(format!("\"{member}\" occurs more than once"), readable));
        }
        if self.jsonrpc.is_none_or(|version| version.get() != r#""2.0""#) {
            return Err(invalid("\"jsonrpc\" must be \"2.0\"", readable));
        }
        if let Some(method) = self.method {
            if self.result.is_some() || self.error.is_some() {
                return Err(invalid("a message has either \"method\" or one of \"result\" and \"error\"", readable));
            }
            let Some(method) = crate::raw::text_of(method.get()) else {
                return Err(invalid("\"method\" must be a string", readable));
            };
            let method = Method::from(&*method);
            let params = match self.params {
                EnvelopeParams::Absent => Box::default(),
                EnvelopeParams::Read(params) => params,
                // Some clients write `null` for "no parameters".
                EnvelopeParams::Delimited(params) if params.get() == "null" => Box::default(),
                EnvelopeParams::Delimited(params) if params.get().starts_with('{') => {
                    match Params::read(Some(&RawJson::slice_of(text, params))) {
                        Ok(params) => Box::new(params),
                        Err(error) => return Err(DecodeError::Params { error, id: readable }),
                    }
                }
                EnvelopeParams::Delimited(_) => return Err(invalid("\"params\" must be an object", readable)),
            };
            return match id {
                None => Ok(Message::Notification(Notification { method, params })),
                Some((_, Some(id))) => Ok(Message::Request(Request { id, method, params })),
                Some((raw, None)) => Err(invalid(bad_id(raw.get()), None)),
            };
        }
        let outcome = match (self.result, self.error) {
            (Some(result), None) => {
                if !result.get().starts_with('{') {
                    return Err(invalid("\"result\" must be an object", readable));
                }
                Ok(RawJson::slice_of(text, result))
            }
            (None, Some(error)) => match serde_json::from_str::<RpcError>(error.get()) {
                Ok(error) => Err(error),
                Err(_) => {
                    return Err(invalid(
                        "\"error\" must be an object with an integer \"code\" and a string \"message\"",
                        readable,
                    ));
                }
            },
            (Some(_), Some(_)) => {
                return Err(invalid("a response has either \"result\" or \"error\", not both", readable));
            }
            (None, None) => return Err(invalid("a message needs \"method\", \"result\" or \"error\"", readable)),
        };
        match id {
            Some((_, Some(id))) => Ok(Message::Response(Response { id: Some(id), outcome })),
            Some((raw, None)) if raw.get() != "null" => Err(invalid(bad_id(raw.get()), None)),
            _ if outcome.is_err() => Ok(Message::Response(Response { id: None, outcome })),
            _ => Err(invalid("a response with a \"result\" needs an \"id\"", None)),
        }
    }
}

fn bad_id(raw: &str) -> String {
    let found = match raw.as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string that is not valid Unicode",
        _ => "a number that is not an integer",
    };
    format!("\"id\" must be a string or an integer, not {found}")
}

/// Reads an [`Envelope`].
struct Members<'m> {
    message: &'m ByteString,
    with_params: bool,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Envelope<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Envelope<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(member) = map.next_key::<Member>()? {
            let (name, slot) = match member {
                Member::Jsonrpc => ("jsonrpc", &mut envelope.jsonrpc),
                Member::Id => ("id", &mut envelope.id),
                Member::Method => ("method", &mut envelope.method),
                Member::Result => ("result", &mut envelope.result),
                Member::Error => ("error", &mut envelope.error),
                Member::Params => {
                    let params = if self.with_params {
                        EnvelopeParams::Read(map.next_value_seed(Within { message: self.message })?)
                    } else {
                        EnvelopeParams::Delimited(map.next_value()?)
                    };
                    if matches!(envelope.params, EnvelopeParams::Absent) {
                        envelope.params = params;
                    } else {
                        envelope.repeated = Some("params");
                    }
                    continue;
                }
                Member::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value = map.next_value()?;
            // Two parsers may each believe another copy: a way around every check made in between.
            if slot.is_some() {
                envelope.repeated = Some(name);
            } else {
                *slot = Some(value);
            }
        }
        Ok(envelope)
    }
}

enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Unknown,
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = Member;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Member, E> {
                Ok(match name {
                    "jsonrpc" => Member::Jsonrpc,
                    "id" => Member::Id,
                    "method" => Member::Method,
                    "params" => Member::Params,
                    "result" => Member::Result,
                    "error" => Member::Error,
                    _ => Member::Unknown,
                })
            }
        }

        deserializer.deserialize_identifier(Name)
    }
}

#[cfg(test)]
mod tests;
