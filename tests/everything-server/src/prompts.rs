//! Prompts: with and without arguments, with a resource, with a picture, and one that asks the user first.
//!
//! Why here: a prompt is filled in like a tool is called, and may ask like one.
//! Spec: 2026-07-28 server/prompts

use mcp_core::{Form, HandlerError, Prompt, PromptArguments, PromptReply, RequestContext, completer_of};
use mcp_wire::types::{ContentBlock, PromptMessage, ResourceContents};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::resources::RED_PIXEL;

/// The prompts in the order in which they are listed.
pub(crate) fn all() -> Vec<Prompt> {
    vec![
        Prompt::new("test_simple_prompt", simple).description("A prompt without arguments."),
        Prompt::new("test_prompt_with_arguments", with_arguments)
            .description("A prompt that is filled in with two values.")
            .required("arg1", "The first value.")
            .required("arg2", "The second value.")
            .complete("arg1", completer_of(["test-value-1", "test-value-2", "testing"])),
        Prompt::new("test_prompt_with_embedded_resource", with_resource)
            .description("A prompt that holds a resource.")
            .required("resourceUri", "The address of the resource."),
        Prompt::new("test_prompt_with_image", with_image).description("A prompt that holds a picture."),
        Prompt::new("test_input_required_result_prompt", with_user_context)
            .description("A prompt that asks the user what to take into account."),
    ]
}

async fn simple(_: PromptArguments, _context: RequestContext) -> Result<PromptReply, HandlerError> {
    Ok(PromptReply::user("This is a simple prompt for testing."))
}

async fn with_arguments(arguments: PromptArguments, _context: RequestContext) -> Result<PromptReply, HandlerError> {
    let (first, second) = (arguments.text("arg1"), arguments.text("arg2"));
    Ok(PromptReply::user(format!("Prompt with arguments: arg1='{first}', arg2='{second}'")))
}

async fn with_resource(arguments: PromptArguments, _context: RequestContext) -> Result<PromptReply, HandlerError> {
    let contents = ResourceContents::text(arguments.text("resourceUri"), "Embedded resource content for testing.");
    Ok(PromptReply::new(vec![
        PromptMessage::user(ContentBlock::resource(contents.with_mime_type("text/plain"))),
        PromptMessage::user(ContentBlock::text("Please process the resource above.")),
    ]))
}

async fn with_image(_: PromptArguments, _context: RequestContext) -> Result<PromptReply, HandlerError> {
    Ok(PromptReply::new(vec![
        PromptMessage::user(ContentBlock::image(RED_PIXEL, "image/png")),
        PromptMessage::user(ContentBlock::text("Please describe the picture above.")),
    ]))
}

#[derive(Deserialize, JsonSchema)]
struct UserContext {
    /// What the prompt should take into account.
    context: String,
}

async fn with_user_context(_: PromptArguments, context: RequestContext) -> Result<PromptReply, HandlerError> {
    let question = Form::<UserContext>::new("What should the prompt take into account?");
    let answer = context.ask("user_context", question)?;
    let told = answer.accepted().map_or_else(|| "nothing in particular".to_owned(), |told| told.context);
    Ok(PromptReply::user(format!("Please answer with this in mind: {told}")))
}
