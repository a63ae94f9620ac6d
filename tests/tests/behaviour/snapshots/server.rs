//! A server that uses every member that a revision ever had, so that each snapshot shows what its revision leaves.

use mcp_core::{
    CompletionRequest, Completions, Elicited, Form, FormSchema, HandlerError, Limits, ListRoots, NoArguments, Prompt,
    PromptReply, RequestContext, Resource, ResourceReply, ResourceTemplate, Sample, Server, ServerBuilder, Tool,
    ToolReply, Visit, completer, completer_of,
};
use mcp_wire::RawJson;
use mcp_wire::capability::ClientCapability;
use mcp_wire::types::{
    Annotations, CacheHints, CacheScope, ContentBlock, CreateMessageParams, Icon, IconTheme, Implementation,
    IncludeContext, LoggingLevel, MetaObject, ModelPreferences, PromptArgument, PromptMessage, ResourceContents, Role,
    SamplingContent, SamplingMessage, ToolAnnotations, ToolChoice, ToolChoiceMode, ToolResultContent, ToolUseContent,
};
use serde_json::{Map, Value, json};

use crate::ask::asking;

pub(super) fn everything() -> ServerBuilder {
    let mut limits = Limits::default();
    // All of every list but that of the tools.
    limits.page = 7;
    let mut builder = Server::builder("snapshots", "1")
        .info(information())
        .instructions("Call everything once.")
        .limits(limits)
        .cache(CacheHints::new(1_000, CacheScope::Public));
    for tool in answering().into_iter().chain(questioning()) {
        builder = builder.tool(tool);
    }
    builder.resource(text()).resource(blob()).resource_template(family()).prompt(prompt())
}

fn information() -> Implementation {
    Implementation::new("snapshots", "1")
        .with_title("Snapshots")
        .with_description("Says everything that there is to say")
        .with_website_url("https://example.com/snapshots")
        .with_icons(icons())
}

fn icons() -> Vec<Icon> {
    let icon = Icon::new("https://example.com/icon.png").with_mime_type("image/png");
    vec![icon.with_sizes(vec!["48x48".to_owned()]).with_theme(IconTheme::Dark)]
}

fn meta(key: &str) -> MetaObject {
    MetaObject::from_iter([(format!("com.example/{key}"), json!({ "own": [1, "two"] }))])
}

fn hints() -> Annotations {
    let hints = Annotations::new().with_audience(vec![Role::User, Role::Assistant]).with_priority(0.5);
    hints.with_last_modified("2025-01-12T15:00:58Z")
}

fn answering() -> Vec<Tool> {
    let object = json!({ "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"] });
    let annotations = ToolAnnotations::new().with_title("Adds").with_read_only(true).with_destructive(false);
    vec![
        Tool::raw("add", json!({ "type": "object", "properties": { "a": { "type": "integer" } } }), add)
            .title("Add")
            .description("Adds two numbers.")
            .annotations(annotations.with_idempotent(true).with_open_world(false))
            .icons(icons())
            .meta(meta("tool"))
            .output_schema(object),
        Tool::plain("list", |_: NoArguments| ToolReply::new(Vec::new()).with_structured(json!([1, 2])))
            .output_schema(json!({ "type": "array", "items": { "type": "integer" } })),
        Tool::plain("contents", |_: NoArguments| ToolReply::new(contents()).with_meta(meta("result"))),
        Tool::plain("fail", |_: NoArguments| Err::<String, _>(HandlerError::tell("This did not work."))),
        Tool::typed("tell", tell),
        asking("need_model", |_| async { Ok(String::new()) }).needs(ClientCapability::Sampling),
    ]
}

async fn add(_: RawJson, _: RequestContext) -> Result<ToolReply, HandlerError> {
    Ok(ToolReply::text("3").with_structured(json!({ "sum": 3 })))
}

/// Every kind of content, with everything that content can have.
fn contents() -> Vec<ContentBlock> {
    let link = mcp_wire::types::Resource::new("test://text", "text").with_title("Text").with_description("A text.");
    let link = link.with_mime_type("text/plain").with_size(4).with_icons(icons()).with_meta(meta("link"));
    let text = ResourceContents::text("test://text", "said").with_mime_type("text/plain").with_meta(meta("contents"));
    [
        ContentBlock::text("said"),
        ContentBlock::image(b"picture", "image/png"),
        ContentBlock::audio(b"sound", "audio/wav"),
        ContentBlock::resource(text),
        ContentBlock::resource(ResourceContents::blob("test://blob", b"bytes")),
        ContentBlock::link(link),
    ]
    .map(|block| block.with_annotations(hints()).with_meta(meta("block")))
    .into()
}

async fn tell(_: NoArguments, context: RequestContext) -> Result<&'static str, HandlerError> {
    context.progress(0.5, None, None);
    context.progress(1.0, Some(2.0), Some("half done"));
    context.log_as(LoggingLevel::Warning, Some("snapshots"), json!({ "event": "called" }));
    Ok("told")
}

fn questioning() -> Vec<Tool> {
    vec![
        asking("ask_model", |context| async move {
            context.ask("model", Sample(conversation()))?;
            Ok("asked".to_owned())
        }),
        asking("ask_model_with_tools", |context| async move {
            context.ask("model", Sample(conversation_with_tools()))?;
            Ok("asked".to_owned())
        }),
        asking("ask_user", |context| async move {
            let form = Form::<Map<String, Value>>::with_schema("Who are you?", form()?);
            Ok(match context.ask("user", form)? {
                Elicited::Accepted(_) => "accepted".to_owned(),
                Elicited::Declined | Elicited::Cancelled => "not accepted".to_owned(),
            })
        }),
        asking("ask_user_for_several", |context| async move {
            context.ask("several", Form::<Map<String, Value>>::with_schema("Which?", several()?))?;
            Ok("asked".to_owned())
        }),
        asking("ask_user_to_visit", |context| async move {
            context.ask("visit", visit())?;
            let told = context.server().visit_completed("sign-in", context.principal());
            Ok(if told.is_ok() { "asked, and done" } else { "asked" }.to_owned())
        }),
        asking("need_visit", |context| async move { Err(context.visit_first("visit", &visit())) }),
        asking("ask_for_folders", |context| async move {
            context.ask("folders", ListRoots)?;
            Ok("asked".to_owned())
        }),
    ]
}

fn visit() -> Visit {
    Visit::new("Please sign in.", "https://example.com/sign-in").named("sign-in")
}

fn conversation() -> CreateMessageParams {
    let mut message = SamplingMessage::user_text("What is the capital of France?");
    message.meta = Some(meta("message"));
    let preferences = ModelPreferences::new().with_hint("large").with_cost_priority(0.1).with_speed_priority(0.2);
    CreateMessageParams::new(vec![message, SamplingMessage::assistant_text("Let me think.")], 100)
        .with_model_preferences(preferences.with_intelligence_priority(0.9))
        .with_system_prompt("Be brief.")
        .with_include_context(IncludeContext::ThisServer)
        .with_temperature(0.5)
        .with_stop_sequence("END")
        .with_metadata(RawJson::from(json!({ "provider": "any" })))
}

fn conversation_with_tools() -> CreateMessageParams {
    let input = RawJson::from(json!({ "city": "Paris" }));
    let used = SamplingContent::ToolUse(ToolUseContent::new("1", "weather", input));
    let gave = SamplingContent::ToolResult(ToolResultContent::new("1", vec![ContentBlock::text("rain")]));
    let messages = vec![
        SamplingMessage::user_text("What is the weather in Paris?"),
        SamplingMessage::new(Role::Assistant, vec![used]),
        SamplingMessage::new(Role::User, vec![gave]),
    ];
    CreateMessageParams::new(messages, 100)
        .with_tool(mcp_wire::types::Tool::new("weather", json!({ "type": "object" })))
        .with_tool_choice(ToolChoice::new(ToolChoiceMode::Auto))
}

fn form() -> Result<FormSchema, HandlerError> {
    let titled = [("s", "Small"), ("l", "Large")];
    Ok(FormSchema::builder()
        .string("name", |field| field.required().title("Name").description("Who you are").min_length(1).max_length(9))
        .string("mail", |field| field.format("email").default_value("a@example.com"))
        .integer("age", |field| field.minimum(0).maximum(150).default_value(30))
        .number("height", |field| field.minimum(0.5).default_value(1.5))
        .boolean("member", |field| field.default_value(true))
        .choice("colour", &["red", "blue"], |field| field.default_value("red"))
        .titled_choice("size", &titled, |field| field.default_value("s"))
        .build()?)
}

fn several() -> Result<FormSchema, HandlerError> {
    Ok(FormSchema::builder()
        .choices("colours", &["red", "blue"], |field| field.min_items(1).max_items(2).default_value(json!(["red"])))
        .titled_choices("sizes", &[("s", "Small"), ("l", "Large")], |field| field.title("Sizes"))
        .build()?)
}

fn text() -> Resource {
    Resource::new("test://text", "text", |request, _| async move {
        let contents = ResourceContents::text(request.uri, "said").with_mime_type("text/plain");
        let mut reply = ResourceReply::new(vec![contents.with_meta(meta("contents"))]);
        reply.meta = Some(meta("result"));
        Ok(reply)
    })
    .title("Text")
    .description("A text.")
    .mime_type("text/plain")
    .annotations(hints())
    .icons(icons())
    .meta(meta("resource"))
    .cache(CacheHints::new(2_000, CacheScope::Private))
}

fn blob() -> Resource {
    Resource::blob("test://blob", "blob", b"bytes".as_slice()).mime_type("application/octet-stream")
}

fn family() -> ResourceTemplate {
    ResourceTemplate::new("test://family/{id}", "family", |request, _| async move { Ok(request.text("member")) })
        .title("Family")
        .description("Texts by their id.")
        .mime_type("text/plain")
        .annotations(hints())
        .icons(icons())
        .meta(meta("template"))
        .complete("id", completer(some))
}

async fn some(_: CompletionRequest) -> Result<Completions, HandlerError> {
    let mut some = Completions::new(["one", "two"]);
    some.total = Some(5);
    Ok(some)
}

fn prompt() -> Prompt {
    Prompt::new("prompt", |arguments, _| async move {
        let mut reply = PromptReply::new(contents().into_iter().map(PromptMessage::user).collect());
        reply.messages.push(PromptMessage::assistant(ContentBlock::text(arguments.text("about"))));
        reply.description = Some("A prompt about something.".to_owned());
        reply.meta = Some(meta("result"));
        Ok(reply)
    })
    .title("Prompt")
    .description("A prompt.")
    .argument(PromptArgument::new("about").with_title("About").with_description("What about").with_required(true))
    .optional("style", "How it is said")
    .complete("style", completer_of(["brief", "long"]))
    .icons(icons())
    .meta(meta("prompt"))
}
