//! The published examples decode into the types that their folders name and encode again without loss.
//!
//! The examples are not part of this repository. They are looked for in the folder that `MCP_SPEC_EXAMPLES` names, or
//! else beside the repository; without them the test says so and passes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use mcp_wire::capability::{ClientCapabilities, ServerCapabilities};
use mcp_wire::params::Params;
use mcp_wire::types::{
    CacheHints, CallToolResult, CancelledParams, CompleteParams, CompleteResult, ContentBlock, CreateMessageParams,
    CreateMessageResult, DiscoverResult, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams,
    GetPromptResult, InputRequest, InputRequests, InputRequiredResult, InputResponses, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListRootsParams, ListRootsResult, ListToolsResult, ListenParams,
    LogMessageParams, MetaObject, ModelPreferences, ProgressParams, ReadResourceResult, Resource, ResourceContents,
    ResourceUpdatedParams, Root, SamplingContent, SamplingMessage, SubscriptionsAcknowledgedParams, Tool,
};
use mcp_wire::{
    DecodeLimits, Frame, Message, Notification, RawJson, Request, Response, RpcError, encode_error,
    encode_notification, encode_request, encode_result,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Decodes and encodes an example; gives both back as what was expected and what came out.
type Trip = fn(&RawJson) -> Result<(Value, Value), String>;

/// Folders whose examples are no message and no part of one that has a type here.
const NOT_COVERED: &[(&str, &str)] = &[
    ("BooleanSchema", "requested schemas are carried as raw text"),
    ("NumberSchema", "requested schemas are carried as raw text"),
    ("StringSchema", "requested schemas are carried as raw text"),
    ("TitledMultiSelectEnumSchema", "requested schemas are carried as raw text"),
    ("TitledSingleSelectEnumSchema", "requested schemas are carried as raw text"),
    ("UntitledMultiSelectEnumSchema", "requested schemas are carried as raw text"),
    ("UntitledSingleSelectEnumSchema", "requested schemas are carried as raw text"),
    ("SubscriptionsListenResult", "has no member but those that the engine writes; its response is covered"),
];

fn trip_of(folder: &str) -> Option<Trip> {
    Some(match folder {
        "AudioContent" | "EmbeddedResource" | "ImageContent" | "ResourceLink" | "TextContent" => whole::<ContentBlock>,
        "ToolResultContent" | "ToolUseContent" => whole::<SamplingContent>,
        "BlobResourceContents" | "TextResourceContents" => whole::<ResourceContents>,
        "ClientCapabilities" => whole::<ClientCapabilities>,
        "CreateMessageRequestParams" => whole::<CreateMessageParams>,
        "CreateMessageResult" => whole::<CreateMessageResult>,
        "ElicitRequestFormParams" => both::<ElicitFormParams, ElicitParams>,
        "ElicitRequestURLParams" => both::<ElicitUrlParams, ElicitParams>,
        "ElicitResult" => whole::<ElicitResult>,
        "InputRequests" => whole::<InputRequests>,
        "InputResponses" => whole::<InputResponses>,
        "ListRootsResult" => whole::<ListRootsResult>,
        "ModelPreferences" => whole::<ModelPreferences>,
        "Resource" => whole::<Resource>,
        "Root" => whole::<Root>,
        "SamplingMessage" => whole::<SamplingMessage>,
        "ServerCapabilities" => whole::<ServerCapabilities>,
        "Tool" => whole::<Tool>,

        "CancelledNotificationParams" => whole::<CancelledParams>,
        "LoggingMessageNotificationParams" => whole::<LogMessageParams>,
        "ProgressNotificationParams" => whole::<ProgressParams>,
        "ResourceUpdatedNotificationParams" => whole::<ResourceUpdatedParams>,

        "CallToolResult" => result::<CallToolResult>,
        "CompleteResult" => result::<CompleteResult>,
        "DiscoverResult" => result::<DiscoverResult>,
        "GetPromptResult" => result::<GetPromptResult>,
        "InputRequiredResult" => result::<InputRequiredResult>,
        "ListPromptsResult" => result::<ListPromptsResult>,
        "ListResourceTemplatesResult" => result::<ListResourceTemplatesResult>,
        "ListResourcesResult" => result::<ListResourcesResult>,
        "ListToolsResult" => result::<ListToolsResult>,
        "ReadResourceResult" => result::<ReadResourceResult>,

        "CallToolResultResponse" => response::<CallToolResult>,
        "CompleteResultResponse" => response::<CompleteResult>,
        "DiscoverResultResponse" => response::<DiscoverResult>,
        "GetPromptResultResponse" => response::<GetPromptResult>,
        "ListPromptsResultResponse" => response::<ListPromptsResult>,
        "ListResourceTemplatesResultResponse" => response::<ListResourceTemplatesResult>,
        "ListResourcesResultResponse" => response::<ListResourcesResult>,
        "ListToolsResultResponse" => response::<ListToolsResult>,
        "ReadResourceResultResponse" => response::<ReadResourceResult>,
        "SubscriptionsListenResultResponse" => response::<MetaObject>,

        "CompleteRequestParams" => request_params::<CompleteParams>,
        "CallToolRequestParams" | "GetPromptRequestParams" | "PaginatedRequestParams" => known_params,

        "CompleteRequest" => request::<CompleteParams>,
        "SubscriptionsListenRequest" => request::<ListenParams>,
        "CallToolRequest"
        | "DiscoverRequest"
        | "GetPromptRequest"
        | "ListPromptsRequest"
        | "ListResourceTemplatesRequest"
        | "ListResourcesRequest"
        | "ListToolsRequest"
        | "ReadResourceRequest" => known_request,

        "CreateMessageRequest" => input_request::<CreateMessageParams>,
        "ElicitRequest" => input_request::<ElicitParams>,
        "ListRootsRequest" => input_request::<ListRootsParams>,

        "CancelledNotification" => notification::<CancelledParams>,
        "LoggingMessageNotification" => notification::<LogMessageParams>,
        "ProgressNotification" => notification::<ProgressParams>,
        "ResourceUpdatedNotification" => notification::<ResourceUpdatedParams>,
        "SubscriptionsAcknowledgedNotification" => notification::<SubscriptionsAcknowledgedParams>,
        "PromptListChangedNotification" | "ResourceListChangedNotification" | "ToolListChangedNotification" => {
            notification::<Map<String, Value>>
        }

        "InternalError" | "InvalidParamsError" | "MethodNotFoundError" | "ParseError" => whole::<RpcError>,
        "HeaderMismatchError" | "MissingRequiredClientCapabilityError" | "UnsupportedProtocolVersionError" => {
            error_response
        }
        _ => return None,
    })
}

#[test]
fn every_published_example_survives_decoding_and_encoding() {
    let folder = examples();
    let Ok(entries) = fs::read_dir(&folder) else {
        say("NOT RUN: published_examples: the folder is not here (MCP_SPEC_EXAMPLES may name another)");
        return;
    };
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    let (mut passed, mut faults) = (0_usize, Vec::new());
    for folder in &folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        if let Some((_, reason)) = NOT_COVERED.iter().find(|(listed, _)| *listed == name) {
            say(&format!("not covered: {name}: {reason}"));
            continue;
        }
        let Some(trip) = trip_of(name) else {
            faults.push(format!("{name}: no type is named for this folder, and it is not listed as not covered"));
            continue;
        };
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match check(&file, trip) {
                Ok(()) => passed += 1,
                Err(fault) => faults.push(format!("{name}/{}: {fault}", file.file_name().unwrap().display())),
            }
        }
    }
    say(&format!("{passed} examples passed"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(passed > 0, "{} holds no examples", folder.display());
}

fn examples() -> PathBuf {
    match env::var_os("MCP_SPEC_EXAMPLES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec/examples"),
    }
}

fn check(file: &Path, trip: Trip) -> Result<(), String> {
    let text = fs::read(file).map_err(shown)?;
    let json = RawJson::from_bytes(Bytes::from(text)).map_err(shown)?;
    let (expected, found) = trip(&json)?;
    if same(&expected, &found) { Ok(()) } else { Err(format!("\n  expected {expected}\n  found    {found}")) }
}

/// The example is the type.
fn whole<T: DeserializeOwned + Serialize>(json: &RawJson) -> Result<(Value, Value), String> {
    let decoded: T = json.parse().map_err(shown)?;
    Ok((value(json)?, value(&RawJson::from_serialize(&decoded).map_err(shown)?)?))
}

/// The example is either type.
fn both<T, U>(json: &RawJson) -> Result<(Value, Value), String>
where
    T: DeserializeOwned + Serialize,
    U: DeserializeOwned + Serialize,
{
    let (expected, first) = whole::<T>(json)?;
    let (_, second) = whole::<U>(json)?;
    if first == second { Ok((expected, first)) } else { Err(format!("read as two types: {first} and {second}")) }
}

/// The example is a result: the type, plus what the engine writes into every result.
fn result<T: DeserializeOwned + Serialize>(json: &RawJson) -> Result<(Value, Value), String> {
    let (expected, mut found) = whole::<T>(json)?;
    for (name, value) in written_by_the_engine(json)? {
        found.as_object_mut().ok_or("no object")?.insert(name, value);
    }
    Ok((expected, found))
}

/// `resultType` as it stands, and the hints as [`CacheHints`] reads them where they stand.
fn written_by_the_engine(json: &RawJson) -> Result<Map<String, Value>, String> {
    let members: Map<String, Value> = json.parse().map_err(shown)?;
    let hints: CacheHints = json.parse().map_err(shown)?;
    let hints = serde_json::to_value(hints).map_err(shown)?;
    let mut written = Map::new();
    for name in ["resultType", "ttlMs", "cacheScope"] {
        if let Some(value) = members.get(name) {
            written.insert(name.to_owned(), hints.get(name).unwrap_or(value).clone());
        }
    }
    Ok(written)
}

fn response<T: DeserializeOwned + Serialize>(json: &RawJson) -> Result<(Value, Value), String> {
    let Message::Response(Response { id: Some(id), outcome: Ok(outcome) }) = message(json)? else {
        return Err("no response with a result".to_owned());
    };
    let (_, encoded) = result::<T>(&outcome)?;
    frames(json, encode_result(&id, &encoded))
}

fn error_response(json: &RawJson) -> Result<(Value, Value), String> {
    let Message::Response(Response { id, outcome: Err(error) }) = message(json)? else {
        return Err("no response with an error".to_owned());
    };
    frames(json, Ok(encode_error(id.as_ref(), &error, false)))
}

/// The example is the parameters of a request whose `_meta` is read apart from the type.
fn request_params<T: DeserializeOwned + Serialize>(json: &RawJson) -> Result<(Value, Value), String> {
    let (expected, mut found) = whole::<T>(json)?;
    Params::read(Some(json)).map_err(shown)?;
    let meta = mcp_wire::params::meta_of(json);
    if let Some(meta) = meta {
        let meta = value(&meta)?;
        let read = found.as_object_mut().ok_or("no object")?.entry("_meta").or_insert_with(|| meta.clone());
        if *read != meta {
            return Err(format!("_meta is {meta} and was read as {read}"));
        }
    }
    Ok((expected, found))
}

/// The example is the parameters of a request that needs no type: the members are those of [`Params`].
fn known_params(json: &RawJson) -> Result<(Value, Value), String> {
    let params = Params::read(Some(json)).map_err(shown)?;
    let meta = mcp_wire::params::meta_of(json);
    let mut found = Map::new();
    for (name, member) in [
        ("_meta", &meta),
        ("name", &params.name),
        ("uri", &params.uri),
        ("arguments", &params.arguments),
        ("cursor", &params.cursor),
    ] {
        if let Some(member) = member {
            found.insert(name.to_owned(), value(member)?);
        }
    }
    Ok((value(json)?, Value::Object(found)))
}

fn request<T: DeserializeOwned + Serialize>(json: &RawJson) -> Result<(Value, Value), String> {
    request_with(json, request_params::<T>)
}

fn known_request(json: &RawJson) -> Result<(Value, Value), String> {
    request_with(json, known_params)
}

fn request_with(json: &RawJson, trip: Trip) -> Result<(Value, Value), String> {
    let Message::Request(Request { id, method, params }) = message(json)? else {
        return Err("no request".to_owned());
    };
    let params = params.raw().ok_or("no parameters")?;
    let (_, encoded) = trip(&params)?;
    frames(json, encode_request(&id, method.as_str(), &encoded))
}

/// The example is a question inside a result. Absent parameters are written as an empty object, and a question has no
/// id, though one of the examples shows one.
fn input_request<T: DeserializeOwned + Serialize>(json: &RawJson) -> Result<(Value, Value), String> {
    let decoded: InputRequest = json.parse().map_err(shown)?;
    let (_, params) = whole::<T>(&decoded.params)?;
    let encoded = InputRequest::new(decoded.method, RawJson::from(params));
    let mut expected = value(json)?;
    let members = expected.as_object_mut().ok_or("no object")?;
    members.remove("id");
    members.entry("params").or_insert_with(|| Value::Object(Map::new()));
    Ok((expected, serde_json::to_value(&encoded).map_err(shown)?))
}

fn notification<T: DeserializeOwned + Serialize>(json: &RawJson) -> Result<(Value, Value), String> {
    let Message::Notification(Notification { method, params }) = message(json)? else {
        return Err("no notification".to_owned());
    };
    let params = params.raw().ok_or("no parameters")?;
    let (_, encoded) = request_params::<T>(&params)?;
    frames(json, encode_notification(method.as_str(), Some(&encoded)))
}

fn message(json: &RawJson) -> Result<Message, String> {
    match Frame::decode(&json.clone().into_bytes(), DecodeLimits::default()) {
        Frame::One(Message::Request(request)) if matches!(request.method, mcp_wire::Method::Other(_)) => {
            Err(format!("{} is not a known method", request.method))
        }
        Frame::One(message) => Ok(message),
        other => Err(format!("no single message: {other:?}")),
    }
}

fn frames(json: &RawJson, encoded: Result<Bytes, serde_json::Error>) -> Result<(Value, Value), String> {
    Ok((value(json)?, serde_json::from_slice(&encoded.map_err(shown)?).map_err(shown)?))
}

fn value(json: &RawJson) -> Result<Value, String> {
    json.parse().map_err(shown)
}

/// Equal, where numbers are equal by value: `50` and `50.0` are.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

fn shown(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[expect(clippy::print_stdout, reason = "what a test did not cover is said by name")]
fn say(text: &str) {
    println!("{text}");
}
