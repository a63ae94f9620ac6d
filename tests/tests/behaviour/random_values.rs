//! Whatever handlers make up, what a client of any revision gets is what that revision's published schema says.
//!
//! Why here: values go the whole way, from a handler through the words of the revision to a frame, and only the schemas
//! know all that a revision lacks.

mod made_up;

use mcp_core::testing::{Reply, TestClient};
use mcp_core::{
    Completions, Form, HandlerError, Principal, Prompt, PromptReply, Resource, ResourceReply, ResourceTemplate, Sample,
    Server, Tool, ToolReply, completer,
};
use mcp_wire::types::{Implementation, PromptArgument, PromptMessage};
use mcp_wire::{RawJson, Revision};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Map, Value, json};

use crate::ask::asking;
use crate::schemas::{self, Schemas};
use made_up::MadeUp;

#[test]
fn what_handlers_make_up_is_said_as_the_schema_of_each_revision_has_it() {
    let config = Config { cases: 32, failure_persistence: None, ..Config::default() };
    for revision in Revision::ALL {
        let Some(schemas) = schemas::published(revision, "random_values") else { continue };
        let outcome = TestRunner::new(config.clone()).run(&made_up::values(), |made_up| {
            let heard =
                tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(hear(made_up, revision));
            heard.iter().try_for_each(|heard| heard.check(&schemas)).map_err(TestCaseError::fail)
        });
        assert!(outcome.is_ok(), "{revision}: {}", outcome.unwrap_err());
    }
}

/// A message of the server and the definition that it has to be.
struct Heard(&'static str, Value);

impl Heard {
    fn check(&self, schemas: &Schemas) -> Result<(), String> {
        let Self(definition, message) = self;
        schemas.check("JSONRPCMessage", message)?;
        schemas.check(definition, message.get("result").unwrap_or(message))
    }
}

/// Calls everything once as a client of the revision.
async fn hear(made_up: MadeUp, revision: Revision) -> Vec<Heard> {
    let capabilities = json!({ "sampling": { "tools": {}, "context": {} }, "elicitation": { "form": {}, "url": {} } });
    let server = serving(made_up);
    let client = TestClient::connect(&server, revision, capabilities, Principal::anonymous()).await.unwrap();
    let client = client.answering(|asked| match &*asked.method {
        "elicitation/create" => json!({ "action": "decline" }),
        _ => json!({ "role": "assistant", "content": { "type": "text", "text": "" }, "model": "" }),
    });
    let mut heard = Vec::new();
    let completed =
        json!({ "ref": { "type": "ref/prompt", "name": "prompt" }, "argument": { "name": "a", "value": "" } });
    for (definition, method, params) in [
        ("ListToolsResult", "tools/list", json!({})),
        ("CallToolResult", "tools/call", json!({ "name": "tool", "arguments": {}, "_meta": { "progressToken": 1 } })),
        ("CallToolResult", "tools/call", json!({ "name": "ask_model", "arguments": {} })),
        ("CallToolResult", "tools/call", json!({ "name": "ask_user", "arguments": {} })),
        ("ListResourcesResult", "resources/list", json!({})),
        ("ListResourceTemplatesResult", "resources/templates/list", json!({})),
        ("ReadResourceResult", "resources/read", json!({ "uri": "test://resource" })),
        ("ListPromptsResult", "prompts/list", json!({})),
        ("GetPromptResult", "prompts/get", json!({ "name": "prompt", "arguments": { "a": "" } })),
        ("CompleteResult", "completion/complete", completed),
    ] {
        let Reply { response, notifications, questions, .. } = client.request(method, params).await.unwrap();
        heard.extend(notifications.into_iter().map(|notice| Heard("ProgressNotification", notice)));
        heard.extend(questions.into_iter().map(|asked| {
            let definition =
                if asked.method == "elicitation/create" { "ElicitRequest" } else { "CreateMessageRequest" };
            Heard(definition, json!({ "jsonrpc": "2.0", "id": 1, "method": asked.method, "params": asked.params }))
        }));
        assert!(response.get("result").is_some(), "{method}: {response}");
        heard.push(Heard(definition, response));
    }
    heard
}

/// A server with one of everything, all of it made up.
fn serving(made_up: MadeUp) -> Server {
    let MadeUp { title, meta, annotations, icons, hints, schema, structured, blocks, contents, to_model, form } =
        made_up;
    let (result_meta, messages) =
        (meta.clone(), blocks.iter().cloned().map(PromptMessage::assistant).collect::<Vec<_>>());
    let progress_message = title.clone();
    let tool = Tool::raw("tool", json!({ "type": "object" }), move |_: RawJson, context| {
        context.progress(0.5, Some(1.0), Some(&progress_message));
        let mut reply = ToolReply::new(blocks.clone()).with_meta(result_meta.clone());
        reply.structured = structured.clone().map(RawJson::from);
        std::future::ready(Ok::<_, HandlerError>(reply))
    });
    let tool = tool.title(&*title).description(&*title).annotations(hints).icons(icons.clone()).meta(meta.clone());
    let ask_model = asking("ask_model", move |context| {
        let question = Sample(to_model.clone());
        std::future::ready(context.ask("model", question).map(|_| String::new()))
    });
    let ask_user = asking("ask_user", move |context| {
        let question = Form::<Map<String, Value>>::with_schema("Who?", form.clone());
        std::future::ready(context.ask("user", question).map(|_| String::new()))
    });
    let resource = Resource::new("test://resource", "resource", move |_, _| {
        std::future::ready(Ok(ResourceReply::new(contents.clone())))
    });
    let family =
        ResourceTemplate::new("test://family/{id}", "family", |request, _| std::future::ready(Ok(request.text(""))));
    let prompt = Prompt::new("prompt", move |_, _| std::future::ready(Ok(PromptReply::new(messages.clone()))));
    let argument = PromptArgument::new("a").with_title(&*title).with_description(&*title);
    let values = vec![title.clone(); 3];
    let completer = completer(move |_| std::future::ready(Ok(Completions::new(values.clone()))));
    let info = Implementation::new("random", "1").with_title(&*title).with_description(&*title);
    Server::builder("random", "1")
        .info(info.with_icons(icons.clone()))
        .instructions(&*title)
        .tool(tool.output_schema(schema).without_result_check())
        .tool(ask_model)
        .tool(ask_user)
        .resource(resource.title(&*title).annotations(annotations.clone()).icons(icons.clone()).meta(meta.clone()))
        .resource_template(family.title(&*title).annotations(annotations).icons(icons.clone()).meta(meta.clone()))
        .prompt(prompt.title(&*title).argument(argument).complete("a", completer).icons(icons).meta(meta))
        .build()
        .unwrap()
}
