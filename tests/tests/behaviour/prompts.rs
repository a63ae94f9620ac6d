//! Prompts: their arguments, and what they are filled in with.
//!
//! Spec: 2026-07-28 server/prompts, "Getting a Prompt" and "Error Handling"

use mcp_core::{HandlerError, Prompt, PromptArguments, PromptReply, Server, ServerBuilder};
use mcp_tests::{Lane, lanes};
use mcp_wire::types::{ContentBlock, Icon, PromptArgument, PromptMessage};
use serde_json::json;

lanes! {
    everywhere {
        a_prompt_is_filled_in,
        an_unknown_prompt_is_invalid_params,
        a_required_argument_that_is_missing_is_invalid_params_and_named,
        arguments_are_an_object_of_strings,
        what_a_handler_fails_with_tells_nothing_of_itself,
        a_prompt_can_ask_too,
    }
    legacy "only older revisions lack anything" {
        prompts_come_down_to_each_revision,
    }
}

fn server() -> ServerBuilder {
    let greet = Prompt::new("greet", |arguments: PromptArguments, _context| async move {
        let text = format!("Greet {} {}", arguments.text("name"), arguments.value("how").unwrap_or("kindly"));
        Ok(PromptReply::user(text))
    });
    let greet = greet.description("Greets").required("name", "whom").optional("how", "how");
    Server::builder("s", "1").prompt(greet)
}

async fn a_prompt_is_filled_in(lane: Lane) {
    let client = lane.connect(server()).await;
    let arguments = json!({ "name": "Ann", "unknown": "x" });
    let reply = client.request("prompts/get", json!({ "name": "greet", "arguments": arguments })).await;
    assert_eq!(reply.result()["description"], "Greets");
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": "Greet Ann kindly" } }]);
    assert_eq!(reply.result()["messages"], messages);
}

async fn an_unknown_prompt_is_invalid_params(lane: Lane) {
    let client = lane.connect(server()).await;
    for params in [json!({ "name": "Greet" }), json!({}), json!({ "name": null }), json!({ "name": ["greet"] })] {
        assert_eq!(client.request("prompts/get", params.clone()).await.code(), -32602, "{params}");
    }
}

async fn a_required_argument_that_is_missing_is_invalid_params_and_named(lane: Lane) {
    let client = lane.connect(server()).await;
    for params in [
        json!({ "name": "greet" }),
        json!({ "name": "greet", "arguments": null }),
        json!({ "name": "greet", "arguments": { "how": "loudly", "Name": "Ann" } }),
    ] {
        let reply = client.request("prompts/get", params).await;
        assert_eq!(reply.code(), -32602);
        assert!(reply.message().contains("name"), "{}", reply.text);
    }
    let empty = json!({ "name": "greet", "arguments": { "name": "" } });
    assert!(client.request("prompts/get", empty).await.response.get("result").is_some(), "empty is not missing");
}

async fn arguments_are_an_object_of_strings(lane: Lane) {
    let client = lane.connect(server()).await;
    for arguments in
        [json!(["Ann"]), json!("Ann"), json!({ "name": 7 }), json!({ "name": null }), json!({ "name": {} })]
    {
        let params = json!({ "name": "greet", "arguments": arguments });
        assert_eq!(client.request("prompts/get", params.clone()).await.code(), -32602, "{params}");
    }
}

async fn what_a_handler_fails_with_tells_nothing_of_itself(lane: Lane) {
    let failing = Prompt::new("fails", |_, _| async {
        let number: u8 = "secret".parse()?;
        Ok(PromptReply::user(number.to_string()))
    });
    let panicking = Prompt::new("panics", |_, _| async { panic!("the secret of the handler") });
    let telling = Prompt::new("tells", |_, _| async { Err(HandlerError::tell("not on a Sunday")) });
    let client = lane.connect(server().prompt(failing).prompt(panicking).prompt(telling)).await;
    for name in ["fails", "panics"] {
        let reply = client.request("prompts/get", json!({ "name": name })).await;
        assert_eq!(*reply.error(), json!({ "code": -32603, "message": "internal error" }), "{name}");
    }
    let told = client.request("prompts/get", json!({ "name": "tells" })).await;
    assert_eq!((told.code(), told.message()), (-32603, "not on a Sunday"));
}

async fn a_prompt_can_ask_too(lane: Lane) {
    let asking = Prompt::new("asks", |_, context: mcp_core::RequestContext| async move {
        let roots = context.ask("roots", mcp_core::ListRoots)?;
        Ok(PromptReply::user(format!("Look in {}", roots[0].uri)))
    });
    let client = lane.connect(server().prompt(asking)).await;
    let interview = client
        .interview_for("prompts/get", json!({ "name": "asks" }), |question| {
            assert_eq!(question.method, "roots/list");
            json!({ "roots": [{ "uri": "file:///work" }] })
        })
        .await;
    assert_eq!(interview.reply.result()["messages"][0]["content"]["text"], "Look in file:///work");
}

/// Checklist 38: an R3 session never receives `icons`, `execution`, titled enums, priming events or `resultType`. (Here:
/// of prompts.)
async fn prompts_come_down_to_each_revision(lane: Lane) {
    let audio = Prompt::new("audio", |_, _| async {
        Ok(PromptReply::new(vec![PromptMessage::user(ContentBlock::audio(b"noise", "audio/wav"))]))
    });
    let audio = audio
        .title("Audio")
        .icons(vec![Icon::new("https://example.com/i.png")])
        .argument(PromptArgument::new("a").with_title("A"));
    let server = Server::builder("s", "1").prompt(audio).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let rules = lane.revision().rules();
        let reply = client.request("prompts/list", json!({})).await;
        let listed = &reply.result()["prompts"][0];
        assert_eq!(listed.get("title").is_some(), rules.structured, "{lane:?}");
        assert_eq!(listed["arguments"][0].get("title").is_some(), rules.structured, "{lane:?}");
        assert_eq!(listed.get("icons").is_some(), rules.icons, "{lane:?}");
        let reply = client.request("prompts/get", json!({ "name": "audio" })).await;
        let kind = if rules.audio { "audio" } else { "text" };
        assert_eq!(reply.result()["messages"][0]["content"]["type"], kind, "{lane:?}");
    }
}
