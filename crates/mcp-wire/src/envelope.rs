//! JSON-RPC frames: decode what arrived, encode what leaves.
//!
//! Why here: every transport and both engines meet the same envelope rules, checked once.
//! Invariants: parameters and results are slices of the received frame; an encoded frame holds no raw newline; an error
//! carries the request's id whenever it could be read.
//! Spec: 2026-07-28 basic/index, "Messages"

use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
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

/// Writes the frame of a successful response.
///
/// # Errors
/// When the result cannot be written as JSON.
pub fn encode_result<T: Serialize + ?Sized>(id: &RequestId, result: &T) -> Result<Bytes, serde_json::Error> {
    let mut frame = Vec::with_capacity(512);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut frame);
    frame.extend_from_slice(br#","result":"#);
    serde_json::to_writer(&mut frame, result)?;
    frame.push(b'}');
    Ok(finish_frame(frame))
}

/// As [`encode_result`], for a body that encodes as an object and gets more members in front: `members` writes them,
/// separated by commas, or writes nothing.
///
/// # Errors
/// When the body or a member cannot be written as JSON.
pub fn encode_result_with<T: Serialize + ?Sized>(
    id: &RequestId,
    body: &T,
    members: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<Bytes, serde_json::Error> {
    let mut frame = Vec::with_capacity(512);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut frame);
    frame.extend_from_slice(br#","result":{"#);
    let before = frame.len();
    members(&mut frame)?;
    let joint = frame.len();
    serde_json::to_writer(&mut frame, body)?;
    if frame.get(joint..) == Some(b"{}") {
        frame.truncate(joint);
        frame.push(b'}');
    } else if joint == before {
        // Nothing in front: the body's own brace would stand behind ours.
        frame.remove(joint);
    } else if let Some(brace) = frame.get_mut(joint) {
        *brace = b',';
    }
    frame.push(b'}');
    Ok(finish_frame(frame))
}

/// As [`encode_result`], for a result whose members `members` writes as text, separated by commas; `capacity` is how many
/// bytes they will take.
#[must_use]
pub fn encode_result_members(id: &RequestId, capacity: usize, members: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut frame = Vec::with_capacity(capacity.saturating_add(128));
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut frame);
    frame.extend_from_slice(br#","result":{"#);
    members(&mut frame);
    frame.extend_from_slice(b"}}");
    finish_frame(frame)
}

/// Writes the frame of an error response. Without an id the member is left out, or `null` where `null_id` asks for it.
#[must_use]
pub fn encode_error(id: Option<&RequestId>, error: &RpcError, null_id: bool) -> Bytes {
    let mut frame = Vec::with_capacity(256);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    match id {
        Some(id) => {
            frame.extend_from_slice(br#""id":"#);
            id.write_json(&mut frame);
            frame.push(b',');
        }
        None if null_id => frame.extend_from_slice(br#""id":null,"#),
        None => {}
    }
    frame.extend_from_slice(br#""error":"#);
    let start = frame.len();
    if serde_json::to_writer(&mut frame, error).is_err() {
        // Only a `data` that is not JSON could fail, and `RawJson` rules that out.
        frame.truncate(start);
        frame.extend_from_slice(br#"{"code":-32603,"message":"internal error"}"#);
    }
    frame.push(b'}');
    finish_frame(frame)
}

/// Writes the frame of a request.
///
/// # Errors
/// When the parameters cannot be written as JSON.
pub fn encode_request<T: Serialize + ?Sized>(
    id: &RequestId,
    method: &str,
    params: &T,
) -> Result<Bytes, serde_json::Error> {
    let mut frame = Vec::with_capacity(512);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut frame);
    frame.extend_from_slice(br#","method":"#);
    serde_json::to_writer(&mut frame, method)?;
    frame.extend_from_slice(br#","params":"#);
    serde_json::to_writer(&mut frame, params)?;
    frame.push(b'}');
    Ok(finish_frame(frame))
}

/// Writes the frame of a notification; without parameters the member is left out.
///
/// # Errors
/// When the parameters cannot be written as JSON.
pub fn encode_notification<T: Serialize + ?Sized>(
    method: &str,
    params: Option<&T>,
) -> Result<Bytes, serde_json::Error> {
    let mut frame = Vec::with_capacity(256);
    frame.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    serde_json::to_writer(&mut frame, method)?;
    if let Some(params) = params {
        frame.extend_from_slice(br#","params":"#);
        serde_json::to_writer(&mut frame, params)?;
    }
    frame.push(b'}');
    Ok(finish_frame(frame))
}

/// Joins the responses of a batch into one array.
#[must_use]
pub fn join_batch(responses: &[Bytes]) -> Bytes {
    let mut frame = Vec::with_capacity(responses.iter().map(|response| response.len() + 1).sum::<usize>() + 1);
    frame.push(b'[');
    for (index, response) in responses.iter().enumerate() {
        if index > 0 {
            frame.push(b',');
        }
        frame.extend_from_slice(response);
    }
    frame.push(b']');
    Bytes::from(frame)
}

/// Raw text from a handler may be pretty-printed. In valid JSON a raw line break can only be white space between
/// tokens, so a blank in its place keeps the meaning and the framing of lines and events.
fn finish_frame(mut frame: Vec<u8>) -> Bytes {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', frame.get(from..).unwrap_or_default()) {
        if let Some(byte) = frame.get_mut(from + at) {
            *byte = b' ';
        }
        from += at + 1;
    }
    Bytes::from(frame)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &str) -> Frame {
        Frame::decode(&Bytes::from(text.to_owned()), DecodeLimits::default())
    }

    fn refused(text: &str) -> (i64, Option<RequestId>, String) {
        match decode(text) {
            Frame::Malformed(error) => (error.to_rpc().code.0, error.id().cloned(), error.to_string()),
            other => panic!("{text} was taken as {other:?}"),
        }
    }

    #[test]
    fn parameters_are_read_with_their_message_and_found_whole_in_it() {
        let frame = r#" {"params" : {"name":"x","_meta":{"progressToken":1}} ,"id":1,"jsonrpc":"2.0","method":"m"} "#;
        let Frame::One(Message::Request(request)) = decode(frame) else { panic!("no request") };
        assert_eq!(request.params.name.as_ref().unwrap().as_str(), "\"x\"");
        assert_eq!(request.params.keys.progress_token.as_ref().unwrap().as_str(), "1");
        assert_eq!(request.params.raw().unwrap().as_str(), r#"{"name":"x","_meta":{"progressToken":1}}"#);
        let batch = format!(r#"[{{"jsonrpc":"2.0","method":"n","p\u0061rams":{{"uri":"u"}}}},{frame}]"#);
        let Frame::Batch(messages) = decode(&batch) else { panic!("no batch") };
        let Ok(Message::Notification(first)) = &messages[0] else { panic!("no notification") };
        assert_eq!(first.params.raw().unwrap().as_str(), r#"{"uri":"u"}"#);
        assert_eq!(messages[1].as_ref().unwrap(), &Message::Request(request));
    }

    #[test]
    fn parameters_that_readers_could_see_differently_are_the_fault_of_their_request() {
        for params in [r#"{"name":1,"name":1}"#, r#"{"_meta":[]}"#, r#"{"_meta":{"traceparent":1,"traceparent":2}}"#] {
            let (code, id, text) = refused(&format!(r#"{{"params":{params},"jsonrpc":"2.0","method":"m","id":7}}"#));
            assert_eq!((code, id), (-32602, Some(RequestId::from(7))), "{params}");
            assert!(text.starts_with("params: "), "{text}");
        }
        // What is wrong with the message itself counts first.
        assert_eq!(refused(r#"{"params":{"_meta":[]},"method":"m","id":7}"#).0, -32600);
        assert_eq!(refused(r#"{"params":{"_meta":[]},"method":"m","id":7"#).0, -32700);
    }

    #[test]
    fn the_three_kinds_of_messages_are_told_apart() {
        let Frame::One(Message::Request(request)) =
            decode(r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"x"}}"#)
        else {
            panic!("not a request")
        };
        assert_eq!((request.id, request.method), (RequestId::from(0), Method::ToolsCall));
        assert_eq!(request.params.raw().unwrap().as_str(), r#"{"name":"x"}"#);
        for params in ["", r#","params":null"#, r#","params":{}"#] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/initialized"{params}}}"#);
            assert!(matches!(decode(&text), Frame::One(Message::Notification(_))), "{text}");
        }
        for outcome in [r#""result":{}"#, r#""error":{"code":-1,"message":"no"}"#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":"a",{outcome},"extra":1}}"#);
            assert!(matches!(decode(&text), Frame::One(Message::Response(_))), "{text}");
        }
        assert!(matches!(
            decode(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#),
            Frame::One(Message::Response(Response { id: None, .. }))
        ));
    }

    #[test]
    fn text_that_is_not_json_is_a_parse_error() {
        for text in ["", "   ", "{", "nonsense", r#"{"jsonrpc":"2.0",}"#, "{}{}", "[", "\u{feff}{}"] {
            assert_eq!(refused(text).0, -32700, "{text}");
        }
        let broken = Frame::decode(&Bytes::from_static(b"{\"a\":\"\xff\"}"), DecodeLimits::default());
        assert!(matches!(broken, Frame::Malformed(DecodeError::NotJson(_))));
    }

    #[test]
    fn json_that_is_no_message_is_an_invalid_request_and_keeps_its_id() {
        let id = Some(RequestId::from(3));
        for (text, expected) in [
            ("7", None),
            ("\"x\"", None),
            ("{}", None),
            (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, id.clone()),
            (r#"{"id":3,"method":"ping"}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3,"method":1}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping","result":{}}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":""}}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3,"result":[]}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3,"error":"no"}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3,"method":"a","method":"b"}"#, id.clone()),
            (r#"{"jsonrpc":"2.0","id":3,"id":4,"method":"a"}"#, id),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":7.5,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
            ("[]", None),
        ] {
            let (code, id, reason) = refused(text);
            assert_eq!((code, id), (-32600, expected), "{text}");
            assert!(!reason.is_empty());
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused_before_decoding() {
        let nested = |levels: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
                "[".repeat(levels),
                "]".repeat(levels)
            )
        };
        assert!(matches!(decode(&nested(62)), Frame::One(_)));
        assert_eq!(refused(&nested(63)).0, -32600);
        assert_eq!(refused(&nested(500_000)).0, -32600);
    }

    #[test]
    fn a_bad_element_of_a_batch_spoils_only_itself() {
        let Frame::Batch(elements) = decode(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},1,{"jsonrpc":"2.0","id":2}]"#)
        else {
            panic!("not a batch")
        };
        assert!(elements[0].is_ok() && elements[1].is_err() && elements[2].is_err());
        assert_eq!(elements[2].as_ref().unwrap_err().id(), Some(&RequestId::from(2)));
        let many = format!("[{}]", vec!["1"; 101].join(","));
        assert_eq!(refused(&many).0, -32600);
    }

    #[test]
    fn a_frame_never_holds_a_raw_line_break() {
        let pretty: RawJson = serde_json::from_str("{\n  \"a\": \"x\\ny\"\r\n}").unwrap();
        let frame = encode_result(&RequestId::from(1), &pretty).unwrap();
        assert!(!frame.contains(&b'\n') && !frame.contains(&b'\r'));
        let value: serde_json::Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(value["result"]["a"], "x\ny");
    }

    #[test]
    fn an_error_without_id_leaves_it_out_or_says_null() {
        let error = RpcError::invalid_params("no");
        assert_eq!(encode_error(None, &error, false), r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"no"}}"#);
        assert_eq!(
            encode_error(None, &error, true),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}"#
        );
        assert_eq!(
            encode_error(Some(&RequestId::from("")), &error.with_data(serde_json::json!({"uri": "x"})), true),
            r#"{"jsonrpc":"2.0","id":"","error":{"code":-32602,"message":"no","data":{"uri":"x"}}}"#
        );
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_the_same(id in any::<i64>(), name in "\\PC{0,20}", text in "\\PC{0,40}") {
            let id = RequestId::from(id);
            let params = serde_json::json!({ "text": text });
            let frame = encode_request(&id, &name, &params).unwrap();
            let Frame::One(Message::Request(request)) = Frame::decode(&frame, DecodeLimits::default()) else {
                return Err(TestCaseError::fail("not a request"));
            };
            prop_assert_eq!(request.id, id);
            prop_assert_eq!(request.method.as_str(), name);
            prop_assert_eq!(request.params.raw().unwrap().parse::<serde_json::Value>().unwrap(), params);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let _ = Frame::decode(&Bytes::from(bytes), DecodeLimits::default());
        }

        #[test]
        fn no_json_makes_it_panic(text in "[\\[\\]{}:,\"a-z0-9.jsonrpc \\\\]{0,64}") {
            let _ = Frame::decode(&Bytes::from(text), DecodeLimits::default());
        }
    }
}
