//! Random values of every type survive encoding and decoding, with members that nobody knows among theirs, and damaged
//! text never makes a decoder panic.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use mcp_wire::capability::{
    ClientCapabilities, ElicitationCapability, PromptsCapability, ResourcesCapability, RootsCapability,
    SamplingCapability, ServerCapabilities, ToolsCapability,
};
use mcp_wire::types::*;
use mcp_wire::{ErrorCode, RawJson, RequestId, RpcError};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

/// What choices are made from: bytes, so that a failing case shrinks to a short one. Used up, it chooses the least.
struct Choices {
    bytes: std::vec::IntoIter<u8>,
    depth: usize,
}

impl Choices {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into_iter(), depth: 0 }
    }

    fn byte(&mut self) -> u8 {
        self.bytes.next().unwrap_or(0)
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    fn pick<T: Clone>(&mut self, options: &[T]) -> T {
        let index = usize::from(self.byte()) % options.len();
        options[index].clone()
    }
}

trait Random: Sized {
    fn random(choices: &mut Choices) -> Self;
}

impl Random for bool {
    fn random(choices: &mut Choices) -> Self {
        choices.below(2) == 1
    }
}

impl Random for u64 {
    fn random(choices: &mut Choices) -> Self {
        match choices.below(4) {
            0 => Self::from(choices.byte()),
            1 => Self::MAX - Self::from(choices.byte()),
            2 => (1 << 53) + Self::from(choices.byte()),
            _ => Self::from_be_bytes(std::array::from_fn(|_| choices.byte())),
        }
    }
}

impl Random for i64 {
    fn random(choices: &mut Choices) -> Self {
        u64::random(choices).cast_signed()
    }
}

/// Short decimals, which the parser reads exactly; of longer ones it may miss the last bit.
impl Random for f64 {
    fn random(choices: &mut Choices) -> Self {
        let number = (i64::random(choices) % 1_000_000_000_000) as Self;
        number / choices.pick(&[1.0, 4.0, 1000.0])
    }
}

impl Random for String {
    fn random(choices: &mut Choices) -> Self {
        const PIECES: &[&str] =
            &["a", "type", "\"", "\\", "\n", "\u{0}", "ä", "€", "😀", "\u{2028}", "/", " ", "{", "]", "null", "7"];
        (0..choices.below(5)).map(|_| choices.pick(PIECES)).collect()
    }
}

impl<T: Random> Random for Option<T> {
    fn random(choices: &mut Choices) -> Self {
        bool::random(choices).then(|| T::random(choices))
    }
}

impl<T: Random> Random for Vec<T> {
    fn random(choices: &mut Choices) -> Self {
        (0..choices.below(4)).map(|_| T::random(choices)).collect()
    }
}

impl<T: Random> Random for BTreeMap<String, T> {
    fn random(choices: &mut Choices) -> Self {
        Vec::random(choices).into_iter().collect()
    }
}

impl<A: Random, B: Random> Random for (A, B) {
    fn random(choices: &mut Choices) -> Self {
        (A::random(choices), B::random(choices))
    }
}

impl Random for Value {
    fn random(choices: &mut Choices) -> Self {
        choices.depth += 1;
        let value = match choices.below(if choices.depth > 3 { 5 } else { 7 }) {
            0 => Self::Null,
            1 => bool::random(choices).into(),
            2 => i64::random(choices).into(),
            3 => Number::from_f64(f64::random(choices)).map_or(Self::Null, Self::Number),
            4 => String::random(choices).into(),
            5 => Vec::<Self>::random(choices).into(),
            _ => MetaObject::random(choices).into(),
        };
        choices.depth -= 1;
        value
    }
}

impl Random for MetaObject {
    fn random(choices: &mut Choices) -> Self {
        Vec::random(choices).into_iter().collect()
    }
}

impl<T: Random> Random for Box<T> {
    fn random(choices: &mut Choices) -> Self {
        Self::new(T::random(choices))
    }
}

/// JSON text with blanks, and numbers that no decoder may round.
impl Random for RawJson {
    fn random(choices: &mut Choices) -> Self {
        match choices.below(3) {
            0 => Self::from(Value::random(choices)),
            1 => object(choices),
            _ => Self::from_bytes(format!("[ {}.0 , 1e400 ]", u64::random(choices)).into()).unwrap(),
        }
    }
}

fn object(choices: &mut Choices) -> RawJson {
    let text = format!("{{ \"n\" : {}.50, \"n\": {} }}", u64::random(choices), Value::random(choices));
    RawJson::from_bytes(text.into()).unwrap()
}

impl Random for RequestId {
    fn random(choices: &mut Choices) -> Self {
        match choices.below(3) {
            0 => Self::from(i64::random(choices)),
            1 => Self::from(String::random(choices).as_str()),
            _ => Self::from_json(&format!("{}000000", u64::random(choices))).unwrap(),
        }
    }
}

macro_rules! one_of {
    ($($type:ident { $($variant:ident),* })*) => {$(
        impl Random for $type {
            fn random(choices: &mut Choices) -> Self {
                choices.pick(&[$(Self::$variant),*])
            }
        }
    )*};
}

one_of! {
    Role { User, Assistant }
    IconTheme { Light, Dark }
    CacheScope { Public, Private }
    TaskSupport { Forbidden, Optional, Required }
    ElicitAction { Accept, Decline, Cancel }
    IncludeContext { None, ThisServer, AllServers }
    ToolChoiceMode { Auto, Required, None }
    LoggingLevel { Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency }
}

macro_rules! one_holding {
    ($($type:ident { $($variant:ident),* })*) => {$(
        impl Random for $type {
            fn random(choices: &mut Choices) -> Self {
                let make: fn(&mut Choices) -> Self =
                    choices.pick(&[$(|choices| Self::$variant(Random::random(choices))),*]);
                make(choices)
            }
        }
    )*};
}

one_holding! {
    ContentBlock { Text, Image, Audio, ResourceLink, Resource }
    SamplingContent { Text, Image, Audio, ToolUse, ToolResult }
    ElicitParams { Form, Url }
    ResourceBody { Text, Blob }
}

// Each type by its constructor with the types of the arguments, the members that are set afterwards, and those for which
// `null` means that they are absent, so that they get an object.
macro_rules! random {
    ($($type:ident::$make:ident($($argument:ty),*) $({ $($member:ident),* $(; $object:ident)? })?)*) => {$(
        impl Random for $type {
            fn random(choices: &mut Choices) -> Self {
                let value = Self::$make($(<$argument>::random(choices)),*);
                $(
                    let mut value = value;
                    $(value.$member = Random::random(choices);)*
                    $(value.$object = bool::random(choices).then(|| object(choices).into());)?
                )?
                value
            }
        }
    )*};
}

random! {
    Annotations::new() { audience, priority, last_modified }
    Icon::new(String) { mime_type, sizes, theme }
    Implementation::new(String, String) { title, description, website_url, icons }

    RootsCapability::default() { list_changed }
    SamplingCapability::default() { context, tools }
    ElicitationCapability::default() { form, url }
    PromptsCapability::default() { list_changed }
    ResourcesCapability::default() { subscribe, list_changed }
    ToolsCapability::default() { list_changed }

    TextContent::new(String) { annotations, meta }
    EmbeddedResource::new(ResourceContents) { annotations, meta }
    Resource::new(String, String) { title, description, mime_type, size, annotations, icons, meta }
    ResourceTemplate::new(String, String) { title, description, mime_type, annotations, icons, meta }
    ReadResourceResult::new(Vec<ResourceContents>) { meta }
    ListResourcesResult::new(Vec<Resource>) { next_cursor, meta }
    ListResourceTemplatesResult::new(Vec<ResourceTemplate>) { next_cursor, meta }
    ResourceUpdatedParams::new(String)
    SubscribeParams::new(String)

    ToolAnnotations::new() { title, read_only_hint, destructive_hint, idempotent_hint, open_world_hint }
    ToolExecution::default() { task_support }
    Tool::new(String, RawJson) { title, description, annotations, execution, icons, meta; output_schema }
    CallToolResult::new(Vec<ContentBlock>) { structured_content, is_error, meta }
    ListToolsResult::new(Vec<Tool>) { next_cursor, meta }

    PromptArgument::new(String) { title, description, required }
    Prompt::new(String) { title, description, arguments, icons, meta }
    PromptMessage::new(Role, ContentBlock)
    GetPromptResult::new(Vec<PromptMessage>) { description, meta }
    ListPromptsResult::new(Vec<Prompt>) { next_cursor, meta }

    CompletionContext::default() { arguments }
    CompleteParams::new(Reference, String, String) { context }
    CompletionValues::new(Vec<String>) { total, has_more }
    CompleteResult::new(CompletionValues) { meta }

    CancelledParams::default() { request_id, reason, meta }
    ProgressToken::from(RequestId)
    ProgressParams::new(ProgressToken, f64) { total, message, meta }
    SetLevelParams::new(LoggingLevel)
    LogMessageParams::new(LoggingLevel, RawJson) { logger, meta }
    Root::new(String) { name, meta }
    ListRootsParams::new() { meta }
    ListRootsResult::new(Vec<Root>) { meta }

    SubscriptionFilter::new() {
        tools_list_changed, prompts_list_changed, resources_list_changed, resource_subscriptions, task_ids
    }
    ListenParams::new(SubscriptionFilter) { meta }
    SubscriptionsAcknowledgedParams::new(SubscriptionFilter) { meta }
    InitializeParams::new(String, ClientCapabilities, Implementation) { meta }
    InitializeResult::new(String, ServerCapabilities, Implementation) { instructions, meta }
    DiscoverResult::new(Vec<String>, ServerCapabilities) { instructions, meta }
    InputRequiredResult::default() { input_requests, request_state, meta }

    ElicitUrlParams::new(String, String) { elicitation_id, meta }
    ElicitResult::new(ElicitAction) { meta; content }
    ElicitationCompleteParams::new(String)

    ModelHint::default() { name }
    ModelPreferences::new() { hints, cost_priority, speed_priority, intelligence_priority }
    ToolChoice::default() { mode }
    ToolUseContent::new(String, String, RawJson) { meta }
    ToolResultContent::new(String, Vec<ContentBlock>) { structured_content, is_error, meta }
    SamplingMessage::new(Role, Vec<SamplingContent>) { meta }
    CreateMessageParams::new(Vec<SamplingMessage>, u64) {
        model_preferences, system_prompt, include_context, temperature, stop_sequences, tools, tool_choice, meta;
        metadata
    }
    CreateMessageResult::new(String, Vec<SamplingContent>) { role, stop_reason, meta }
}

impl Random for ClientCapabilities {
    fn random(choices: &mut Choices) -> Self {
        let mut value = Self::new();
        value.roots = Random::random(choices);
        value.sampling = Random::random(choices);
        value.elicitation = Random::random(choices);
        value.tasks = Option::<MetaObject>::random(choices).map(|tasks| Box::new(tasks.into()));
        value.experimental = Random::random(choices);
        value.extensions = Random::random(choices);
        value
    }
}

impl Random for ServerCapabilities {
    fn random(choices: &mut Choices) -> Self {
        let mut value = Self::new();
        value.experimental = Random::random(choices);
        value.logging = Random::random(choices);
        value.completions = Random::random(choices);
        value.prompts = Random::random(choices);
        value.resources = Random::random(choices);
        value.tools = Random::random(choices);
        value.tasks = Option::<MetaObject>::random(choices).map(|tasks| Box::new(tasks.into()));
        value.extensions = Random::random(choices);
        value
    }
}

impl Random for CacheHints {
    fn random(choices: &mut Choices) -> Self {
        // Milliseconds are read as a double, which is exact for some 285,000 years.
        Self::new(u64::random(choices) % (1 << 53), Random::random(choices))
    }
}

impl Random for ImageContent {
    fn random(choices: &mut Choices) -> Self {
        let mut value = Self::new(String::random(choices).as_bytes(), String::random(choices));
        value.annotations = Random::random(choices);
        value.meta = Random::random(choices);
        value
    }
}

impl Random for AudioContent {
    fn random(choices: &mut Choices) -> Self {
        let mut value = Self::new(String::random(choices).as_bytes(), String::random(choices));
        value.annotations = Random::random(choices);
        value.meta = Random::random(choices);
        value
    }
}

impl Random for ResourceContents {
    fn random(choices: &mut Choices) -> Self {
        let mut value = Self::text(String::random(choices), "");
        value.body = Random::random(choices);
        value.mime_type = Random::random(choices);
        value.meta = Random::random(choices);
        value
    }
}

impl Random for Reference {
    fn random(choices: &mut Choices) -> Self {
        if bool::random(choices) {
            Self::Resource { uri: Random::random(choices) }
        } else {
            Self::Prompt { name: Random::random(choices), title: Random::random(choices) }
        }
    }
}

impl Random for ElicitFormParams {
    fn random(choices: &mut Choices) -> Self {
        let mut value = Self::new(String::random(choices), RawJson::EMPTY_OBJECT);
        value.requested_schema = object(choices);
        if bool::random(choices) {
            value = value.without_mode();
        }
        value.meta = Random::random(choices);
        value
    }
}

impl Random for InputRequest {
    fn random(choices: &mut Choices) -> Self {
        Self::new(String::random(choices), object(choices))
    }
}

impl Random for InputRequests {
    fn random(choices: &mut Choices) -> Self {
        let mut value = Self::new();
        for (key, request) in Vec::<(String, InputRequest)>::random(choices) {
            value.insert(key, request);
        }
        value
    }
}

impl Random for RpcError {
    fn random(choices: &mut Choices) -> Self {
        let mut value = Self::new(ErrorCode(i64::random(choices)), String::random(choices));
        value.data = bool::random(choices).then(|| object(choices));
        value
    }
}

/// The value comes back from its text, and its text from the value that came back.
fn comes_back<T>(value: &T) -> Result<String, TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let text = serde_json::to_string(value).unwrap();
    let decoded: T = serde_json::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
    prop_assert_eq!(&decoded, value, "{}", text);
    let raw = RawJson::from_serialize(value).unwrap();
    prop_assert_eq!(&raw.parse::<T>().unwrap(), value);
    prop_assert_eq!(serde_json::to_string(&decoded).unwrap(), text.as_str());
    Ok(text)
}

/// The value comes back although the sender has members of its own, first and last.
fn ignores_unknown_members<T>(value: &T, text: &str) -> Result<(), TestCaseError>
where
    T: DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let members = text.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
    let comma = if members.is_empty() { "" } else { "," };
    let more = format!("{{\"x-first\":[1.5,{{}}]{comma}{members},\"x-last\":null}}");
    let decoded: T = serde_json::from_str(&more).map_err(|error| TestCaseError::fail(format!("{error}: {more}")))?;
    prop_assert_eq!(&decoded, value, "{}", more);
    Ok(())
}

/// Damaged text is refused or means something that can be written; it never makes the decoder panic.
fn bears_damage<T: Serialize + DeserializeOwned>(text: &str, choices: &mut Choices) -> Result<(), TestCaseError> {
    let characters: Vec<char> = text.chars().collect();
    let at = usize::from(u16::from_be_bytes([choices.byte(), choices.byte()])) % characters.len();
    let patch = choices.pick(&["", "\"", "{", "}", "[", "null", "-1", "1.5", ",", ":"]);
    let damaged: String =
        characters[..at].iter().copied().chain(patch.chars()).chain(characters[at + 1..].iter().copied()).collect();
    if let Ok(decoded) = serde_json::from_str::<T>(&damaged) {
        prop_assert!(serde_json::to_string(&decoded).is_ok(), "{}", damaged);
    }
    Ok(())
}

macro_rules! round_trips {
    ($name:ident, $check:ident: $($type:ident),* $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

            #[test]
            fn $name(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
                $($check::<$type>(&bytes)?;)*
            }
        }
    };
}

fn open_object<T>(bytes: &[u8]) -> Result<(), TestCaseError>
where
    T: Random + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let mut choices = Choices::new(bytes.to_vec());
    let value = T::random(&mut choices);
    let text = comes_back(&value)?;
    ignores_unknown_members(&value, &text)?;
    bears_damage::<T>(&text, &mut choices)
}

fn other_value<T>(bytes: &[u8]) -> Result<(), TestCaseError>
where
    T: Random + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let mut choices = Choices::new(bytes.to_vec());
    let value = T::random(&mut choices);
    let text = comes_back(&value)?;
    bears_damage::<T>(&text, &mut choices)
}

round_trips!(common_types_come_back, open_object:
    Annotations, Icon, Implementation, CacheHints, RpcError);
round_trips!(capabilities_come_back, open_object:
    ClientCapabilities, RootsCapability, SamplingCapability, ElicitationCapability,
    ServerCapabilities, PromptsCapability, ResourcesCapability, ToolsCapability);
round_trips!(content_comes_back, open_object:
    ContentBlock, TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceContents);
round_trips!(resources_come_back, open_object:
    Resource, ResourceTemplate, ReadResourceResult, ListResourcesResult, ListResourceTemplatesResult,
    ResourceUpdatedParams, SubscribeParams);
round_trips!(tools_come_back, open_object:
    Tool, ToolAnnotations, ToolExecution, CallToolResult, ListToolsResult);
round_trips!(prompts_come_back, open_object:
    Prompt, PromptArgument, PromptMessage, GetPromptResult, ListPromptsResult);
round_trips!(completion_comes_back, open_object:
    CompleteParams, CompletionContext, CompletionValues, CompleteResult, Reference);
round_trips!(notices_come_back, open_object:
    CancelledParams, ProgressParams, SetLevelParams, LogMessageParams, ElicitationCompleteParams);
round_trips!(roots_come_back, open_object: Root, ListRootsParams, ListRootsResult);
round_trips!(subscriptions_come_back, open_object:
    SubscriptionFilter, ListenParams, SubscriptionsAcknowledgedParams);
round_trips!(handshakes_come_back, open_object: InitializeParams, InitializeResult, DiscoverResult);
round_trips!(questions_come_back, open_object: InputRequest, InputRequiredResult);
round_trips!(elicitation_comes_back, open_object:
    ElicitParams, ElicitFormParams, ElicitUrlParams, ElicitResult);
round_trips!(sampling_comes_back, open_object:
    CreateMessageParams, SamplingMessage, SamplingContent, ToolUseContent, ToolResultContent,
    ModelPreferences, ModelHint, ToolChoice, CreateMessageResult);
round_trips!(maps_words_and_ids_come_back, other_value:
    InputRequests, InputResponses, MetaObject, RequestId, ProgressToken, RawJson, Role, IconTheme, CacheScope,
    TaskSupport, ElicitAction, IncludeContext, ToolChoiceMode, LoggingLevel);

#[test]
fn the_choices_reach_full_values() {
    let bytes: Vec<u8> = (0..4000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut choices = Choices::new(bytes);
    let questions: Vec<_> = (0..40).map(|_| CreateMessageParams::random(&mut choices)).collect();
    let blocks = || questions.iter().flat_map(|question| &question.messages).flat_map(|message| &message.content);
    assert!(blocks().any(|block| matches!(block, SamplingContent::ToolResult(said) if !said.content.is_empty())));
    assert!(questions.iter().any(|question| question.tools.as_ref().is_some_and(|tools| !tools.is_empty())));
    assert!(questions.iter().any(|question| question.metadata.is_some() && question.tool_choice.is_some()));
}
