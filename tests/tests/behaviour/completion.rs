//! Completion: suggestions for the argument of a prompt and the variable of a template.
//!
//! Spec: 2026-07-28 server/utilities/completion

use mcp_core::{
    CompletionRequest, Completions, HandlerError, Prompt, PromptReply, Resource, ResourceTemplate, Server,
    ServerBuilder, completer, completer_of,
};
use mcp_tests::{Lane, lanes};
use serde_json::{Value, json};

lanes! {
    everywhere {
        what_begins_like_the_value_is_suggested,
        known_arguments_reach_the_completer,
        what_has_no_completer_suggests_nothing,
        an_unknown_reference_is_invalid_params,
        parameters_of_another_shape_are_invalid_params,
        at_most_a_hundred_values_are_sent,
        a_completer_that_fails_tells_nothing_of_itself,
    }
}

fn server() -> ServerBuilder {
    let prompt = Prompt::new("p", |_, _| async { Ok(PromptReply::user("x")) })
        .optional("colour", "which")
        .optional("plain", "without suggestions")
        .optional("shade", "depends on the colour")
        .optional("many", "has many values")
        .optional("broken", "fails")
        .optional("panics", "panics")
        .complete("colour", completer_of(["red", "rose", "blue"]))
        .complete(
            "shade",
            completer(|request: CompletionRequest| async move {
                let colour = request.known.get("colour").cloned().unwrap_or_default();
                Ok(Completions::new([format!("{}'s {colour} {}", request.principal.subject(), request.value)]))
            }),
        )
        .complete("many", completer(|_| async { Ok(Completions::new((0..150).map(|number| number.to_string()))) }))
        .complete("broken", completer(|_| async { Err(HandlerError::internal("secret")) }))
        .complete("panics", completer(|_| async { panic!("the secret of the handler") }));
    let template = ResourceTemplate::new("test://{id}/data", "t", |request, _| async move { Ok(request.text("x")) });
    Server::builder("s", "1")
        .prompt(prompt)
        .resource_template(template.complete("id", completer_of(["one", "two"])))
        .resource(Resource::text("test://fixed", "fixed", "x"))
}

fn params(reference: Value, argument: &str, value: &str) -> Value {
    json!({ "ref": reference, "argument": { "name": argument, "value": value } })
}

fn prompt(argument: &str, value: &str) -> Value {
    params(json!({ "type": "ref/prompt", "name": "p" }), argument, value)
}

async fn what_begins_like_the_value_is_suggested(lane: Lane) {
    let client = lane.connect(server()).await;
    let template = |uri: &str| params(json!({ "type": "ref/resource", "uri": uri }), "id", "o");
    for (params, values) in [
        (prompt("colour", "r"), json!(["red", "rose"])),
        (prompt("colour", ""), json!(["red", "rose", "blue"])),
        (prompt("colour", "x"), json!([])),
        (template("test://{id}/data"), json!(["one"])),
        (template("test://7/data"), json!(["one"])),
    ] {
        let reply = client.request("completion/complete", params).await;
        assert_eq!(reply.result()["completion"]["values"], values);
    }
}

async fn known_arguments_reach_the_completer(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut params = prompt("shade", "l");
    params["context"] = json!({ "arguments": { "colour": "red" } });
    let reply = client.request("completion/complete", params).await;
    assert_eq!(reply.result()["completion"]["values"], json!(["ann's red l"]));
}

async fn what_has_no_completer_suggests_nothing(lane: Lane) {
    let client = lane.connect(server()).await;
    let fixed = params(json!({ "type": "ref/resource", "uri": "test://fixed" }), "id", "");
    for params in [prompt("plain", ""), prompt("unknown", ""), fixed] {
        let reply = client.request("completion/complete", params).await;
        assert_eq!(reply.result()["completion"]["values"], json!([]));
    }
}

async fn an_unknown_reference_is_invalid_params(lane: Lane) {
    let client = lane.connect(server()).await;
    for reference in [
        json!({ "type": "ref/prompt", "name": "other" }),
        json!({ "type": "ref/resource", "uri": "test://nothing/at/all" }),
        json!({ "type": "ref/resource", "uri": "not a uri" }),
        json!({ "type": "ref/tool", "name": "p" }),
    ] {
        let reply = client.request("completion/complete", params(reference.clone(), "id", "")).await;
        assert_eq!(reply.code_at(200), -32602, "{reference}");
    }
}

async fn parameters_of_another_shape_are_invalid_params(lane: Lane) {
    let client = lane.connect(server()).await;
    let reference = json!({ "type": "ref/prompt", "name": "p" });
    for params in [
        json!({}),
        json!({ "ref": reference }),
        json!({ "ref": reference, "argument": { "name": "colour" } }),
        json!({ "ref": reference, "argument": ["colour", "r"] }),
        json!({ "ref": ["ref/prompt", "p"], "argument": { "name": "colour", "value": "r" } }),
        json!({ "ref": reference, "argument": { "name": "colour", "value": 7 } }),
        json!({ "ref": reference, "argument": { "name": "colour", "value": "r" }, "context": { "arguments": [] } }),
    ] {
        assert_eq!(client.request("completion/complete", params.clone()).await.code(), -32602, "{params}");
    }
}

async fn at_most_a_hundred_values_are_sent(lane: Lane) {
    let client = lane.connect(server()).await;
    let reply = client.request("completion/complete", prompt("many", "")).await;
    let completion = &reply.result()["completion"];
    assert_eq!(completion["values"].as_array().map(Vec::len), Some(100));
    assert_eq!(completion["hasMore"], true);
}

async fn a_completer_that_fails_tells_nothing_of_itself(lane: Lane) {
    let client = lane.connect(server()).await;
    for argument in ["broken", "panics"] {
        let reply = client.request("completion/complete", prompt(argument, "")).await;
        assert_eq!(*reply.error(), json!({ "code": -32603, "message": "internal error" }), "{argument}");
    }
}
