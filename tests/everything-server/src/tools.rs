//! Tools that answer by themselves: content of every kind, failures, progress, log messages, changes to tell of.
//!
//! Why here: these are the first handlers to read; those that ask the client something are in `asking`.
//! Invariants: a tool that changes a list leaves it as it was.
//! Spec: 2026-07-28 server/tools, basic/utilities/progress, server/utilities/logging

use std::time::Duration;

use mcp_core::{HandlerError, NoArguments, Prompt, PromptReply, RequestContext, ResultExt as _, Structured, Tool};
use mcp_wire::RawJson;
use mcp_wire::types::{ContentBlock, LoggingLevel, ResourceContents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::resources::{RED_PIXEL, TONE, WATCHED};

/// How long the slow tools pause between their steps.
const STEP: Duration = Duration::from_millis(50);

/// The tools in the order in which they are listed.
pub(crate) fn all() -> Vec<Tool> {
    vec![
        Tool::plain("test_simple_text", |_: NoArguments| "This is a simple text response for testing.")
            .description("Answers a text."),
        Tool::plain("test_image_content", |_: NoArguments| ContentBlock::image(RED_PIXEL, "image/png"))
            .description("Answers a picture."),
        Tool::plain("test_audio_content", |_: NoArguments| ContentBlock::audio(TONE, "audio/wav"))
            .description("Answers a sound."),
        Tool::plain("test_embedded_resource", embedded_resource).description("Answers a resource with its contents."),
        Tool::plain("test_multiple_content_types", several_kinds)
            .description("Answers a text, a picture and a resource."),
        Tool::plain("test_error_handling", fail).description("Always fails, and says so to the model."),
        Tool::typed("test_tool_with_progress", report_progress).description("Tells how far it is, in three steps."),
        Tool::typed("test_tool_with_logging", log_steps).description("Writes a log message at each of three steps."),
        Tool::typed("test_logging_tool", log_once).description("Writes one log message, if the client wants any."),
        Tool::typed("test_reconnection", let_go)
            .description("Lets the client's stream go and answers when the client comes back for the rest."),
        Tool::plain("test_custom_header", |arguments: Mirrored| format!("The header said: {}", arguments.value))
            .description("Takes an argument that HTTP clients repeat in a header."),
        Tool::raw("json_schema_2020_12_tool", contact_schema(), describe_contact)
            .description("Takes a contact whose schema uses definitions, conditions and combinations."),
        Tool::typed("test_trigger_tool_change", change_tools).description("Adds a tool and takes it away again."),
        Tool::typed("test_trigger_prompt_change", change_prompts).description("Adds a prompt and takes it away again."),
        Tool::typed("test_trigger_resource_update", update_resource)
            .description("Tells whoever subscribed to the watched resource that it changed."),
        Tool::plain("test_structured_content", measure)
            .description("Answers what a program can read, with its schema."),
    ]
}

fn embedded_resource(_: NoArguments) -> ContentBlock {
    ContentBlock::resource(
        ResourceContents::text("test://embedded-resource", "This is an embedded resource.")
            .with_mime_type("text/plain"),
    )
}

fn several_kinds(_: NoArguments) -> Vec<ContentBlock> {
    let resource = ResourceContents::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    vec![
        ContentBlock::text("Several kinds of content:"),
        ContentBlock::image(RED_PIXEL, "image/png"),
        ContentBlock::resource(resource.with_mime_type("application/json")),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// Where to measure.
    city: String,
}

/// What was measured.
#[derive(Serialize, JsonSchema)]
struct Weather {
    city: String,
    celsius: f64,
    sunny: bool,
}

fn measure(place: Place) -> Structured<Weather> {
    Structured(Weather { city: place.city, celsius: 21.5, sunny: true })
}

fn fail(_: NoArguments) -> Result<String, HandlerError> {
    Err(HandlerError::tell("This tool always fails; there is nothing to be done about it."))
}

async fn report_progress(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    context.progress(0.0, Some(100.0), Some("started"));
    tokio::time::sleep(STEP).await;
    context.progress(50.0, Some(100.0), Some("half done"));
    tokio::time::sleep(STEP).await;
    context.progress(100.0, Some(100.0), Some("done"));
    Ok("All three steps are done.")
}

async fn log_steps(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    context.log(LoggingLevel::Info, "Tool execution started");
    tokio::time::sleep(STEP).await;
    context.log(LoggingLevel::Info, "Tool processing data");
    tokio::time::sleep(STEP).await;
    context.log(LoggingLevel::Info, "Tool execution completed");
    Ok("All three steps were logged.")
}

async fn log_once(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    context.log_as(LoggingLevel::Info, Some("test_logging_tool"), json!({ "event": "called" }));
    Ok("The call was logged for whoever wants to know.")
}

async fn let_go(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    context.release_stream(2 * STEP);
    tokio::time::sleep(4 * STEP).await;
    Ok("The answer waited until you came back.")
}

/// One argument that is repeated in a header.
#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    /// Repeated by HTTP clients as `Mcp-Param-Value`.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

/// A schema that no Rust type has; it reaches clients as it is written here.
fn contact_schema() -> RawJson {
    RawJson::from(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    }))
}

async fn describe_contact(contact: RawJson, _context: RequestContext) -> Result<String, HandlerError> {
    Ok(format!("The contact fits the schema: {contact}"))
}

async fn change_tools(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    let server = context.server();
    let passing = Tool::plain("test_passing_tool", |_: NoArguments| "Hardly anybody gets to see this.")
        .description("Is there for a moment only.");
    server.add_tool(passing).or_tell()?;
    server.remove_tool("test_passing_tool");
    Ok("The list of tools changed, and changed back.")
}

async fn change_prompts(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    let server = context.server();
    let passing = Prompt::new("test_passing_prompt", async |_arguments, _context| {
        Ok(PromptReply::user("Hardly anybody gets to see this."))
    });
    server.add_prompt(passing.description("Is there for a moment only.")).or_tell()?;
    server.remove_prompt("test_passing_prompt");
    Ok("The list of prompts changed, and changed back.")
}

async fn update_resource(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    context.server().resource_updated(WATCHED);
    Ok("Whoever watches the resource was told.")
}
