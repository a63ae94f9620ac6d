//! Servers made of several, seen from a client.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mcp_wire::types::PromptArgument;
use mcp_wire::{DecodeLimits, Frame, RawJson};
use serde_json::{Value, json};

use crate::{
    CallLayer, HandlerError, LayeredCall, Next, Offer, Outbound, Pipe, Principal, Prompt, PromptReply, ReadRequest,
    RegistrationError, Resource, ResourceTemplate, Scope, Server, ServerBuilder, Tool, ToolReply, completer_of,
};

fn builder() -> ServerBuilder {
    Server::builder("s", "1").without_server_info()
}

fn tool(name: &'static str) -> Tool {
    let schema = RawJson::from_serialize(&json!({ "type": "object" })).unwrap();
    Tool::raw(name, schema, move |_: RawJson, _| async move { Ok::<_, HandlerError>(name) })
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, |arguments, _| async move { Ok(PromptReply::user(arguments.text("who"))) })
        .argument(PromptArgument::new("who"))
        .complete("who", completer_of(["me"]))
}

fn resource(uri: &str) -> Resource {
    Resource::text(uri, "r", "here")
}

fn template(uri: &str) -> ResourceTemplate {
    ResourceTemplate::new(uri, "t", |request: ReadRequest, _| async move { Ok(request.text("there")) })
}

async fn ask(server: &Server, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let frame = serde_json::to_vec(&message).unwrap().into();
    let Frame::One(message) = Frame::decode(&frame, DecodeLimits::default()) else { panic!("one message") };
    let peer = server.peer(Principal::anonymous(), Scope::Single);
    let mut exchange = peer.receive_from(server.classify(message, None), &Pipe::new());
    match exchange.next().await.unwrap() {
        Outbound::Response(frame, _) => serde_json::from_slice(&frame).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn listed(server: &Server, method: &str, kind: &str, member: &str) -> Vec<String> {
    let response = ask(server, method, json!({})).await;
    let entries = response["result"][kind].as_array().unwrap();
    entries.iter().map(|entry| entry[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_is_mounted_is_listed_after_what_is_the_servers_own() {
    let inner = builder().tool(tool("read")).prompt(prompt("ask"));
    let middle = builder().mount("deep", inner).tool(tool("read")).resource(resource("a:middle"));
    let server = builder()
        .mount("b", middle)
        .mount("a", builder().tool(tool("read")).resource_template(template("a:{x}")))
        .tool(tool("read"))
        .prompt(prompt("ask"))
        .resource(resource("a:own"))
        .build()
        .unwrap();
    let tools = listed(&server, "tools/list", "tools", "name").await;
    assert_eq!(tools, ["read", "b.read", "b.deep.read", "a.read"]);
    assert_eq!(listed(&server, "prompts/list", "prompts", "name").await, ["ask", "b.deep.ask"]);
    assert_eq!(listed(&server, "resources/list", "resources", "uri").await, ["a:own", "a:middle"]);
    let templates = listed(&server, "resources/templates/list", "resourceTemplates", "uriTemplate").await;
    assert_eq!(templates, ["a:{x}"]);
}

#[tokio::test]
async fn what_is_mounted_is_served_under_the_name_that_is_listed() {
    let inner = builder().tool(tool("read")).prompt(prompt("ask")).resource(resource("a:1"));
    let server = builder().mount("in", inner).build().unwrap();
    let response = ask(&server, "tools/call", json!({ "name": "in.read" })).await;
    assert_eq!(response["result"]["content"][0]["text"], "read");
    let response = ask(&server, "tools/call", json!({ "name": "read" })).await;
    assert_eq!(response["error"]["code"], -32602);
    let response = ask(&server, "prompts/get", json!({ "name": "in.ask", "arguments": { "who": "me" } })).await;
    assert_eq!(response["result"]["messages"][0]["content"]["text"], "me");
    let reference = json!({ "type": "ref/prompt", "name": "in.ask" });
    let params = json!({ "ref": reference, "argument": { "name": "who", "value": "" } });
    assert_eq!(ask(&server, "completion/complete", params).await["result"]["completion"]["values"], json!(["me"]));
    let response = ask(&server, "resources/read", json!({ "uri": "a:1" })).await;
    assert_eq!(response["result"]["contents"][0]["text"], "here");
    assert!(server.remove_tool("in.read"));
}

#[test]
fn a_clash_names_what_clashes_and_both_places() {
    let taken = |builder: ServerBuilder| {
        let error = builder.build().unwrap_err();
        let text = error.to_string();
        match error {
            RegistrationError::Taken { key, first, second } => (key, first, second, text),
            other => panic!("{other:?}"),
        }
    };
    let one = || builder().resource(resource("a:1"));
    let (key, first, second, text) = taken(one().mount("in", one()));
    assert_eq!((&*key, &*first, &*second), ("a:1", "", "in"));
    assert_eq!(text, "\"a:1\" is registered already: by the server itself and by what is mounted at \"in\"");
    let (key, first, second, _) = taken(builder().mount("x", builder().mount("y", one())).mount("z", one()));
    assert_eq!((&*key, &*first, &*second), ("a:1", "x.y", "z"));
    let (key, first, second, _) = taken(builder().tool(tool("in.read")).mount("in", builder().tool(tool("read"))));
    assert_eq!((&*key, &*first, &*second), ("in.read", "", "in"));
    let (key, _, second, _) =
        taken(builder().mount("in", builder().prompt(prompt("p"))).mount("in", builder().prompt(prompt("p"))));
    assert_eq!((&*key, &*second), ("in.p", "in"));
    let (.., text) = taken(builder().tool(tool("a")).tool(tool("a")));
    assert_eq!(text, "\"a\" is registered already");
}

#[test]
fn names_are_judged_as_clients_see_them() {
    let refused = |builder: ServerBuilder| match builder.build().unwrap_err() {
        RegistrationError::Name(name) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(builder().mount("", builder())), "");
    assert_eq!(refused(builder().mount("a b", builder())), "a b");
    assert_eq!(refused(builder().mount("a", builder().tool(tool("")))), "");
    assert_eq!(refused(builder().mount("a", builder().prompt(prompt("")))), "");
    let long = "a".repeat(127);
    assert_eq!(refused(builder().mount(&*long, builder().tool(tool("b")))), format!("{long}.b"));
}

/// Writes down which calls it is around.
struct Watch(&'static str, Arc<Mutex<Vec<String>>>);

#[async_trait]
impl CallLayer for Watch {
    async fn call(&self, call: LayeredCall, next: Next<'_>) -> Result<ToolReply, HandlerError> {
        self.1.lock().unwrap().push(format!("{} {}", self.0, call.tool()));
        next.run(call).await
    }
}

#[tokio::test]
async fn the_layers_of_what_is_mounted_stay_around_its_own_tools() {
    let diary = Arc::default();
    let watch = |name| Watch(name, Arc::clone(&diary));
    let inner = builder().tool(tool("c").layer(watch("tool"))).layer(watch("inner"));
    let middle = builder().mount("b", inner).tool(tool("m")).layer(watch("middle"));
    let server = builder().mount("a", middle).tool(tool("own")).layer(watch("outer")).build().unwrap();
    server.add_tool(tool("late")).unwrap();
    for name in ["own", "a.m", "a.b.c", "late"] {
        ask(&server, "tools/call", json!({ "name": name })).await;
    }
    let expected = [
        "outer own",
        "outer a.m",
        "middle a.m",
        "outer a.b.c",
        "middle a.b.c",
        "inner a.b.c",
        "tool a.b.c",
        "outer late",
    ];
    assert_eq!(*diary.lock().unwrap(), expected);
}

#[tokio::test]
async fn instructions_and_offers_are_added() {
    let inner = builder().instructions("Read first.").offer(Offer::Prompts);
    let silent = builder().mount("deep", builder().instructions("Dig."));
    let server = builder().instructions("Be kind.").mount("files", inner).mount("a", silent).build().unwrap();
    let result = &ask(&server, "server/discover", json!({})).await["result"];
    assert_eq!(result["instructions"], "Be kind.\n\nfiles.*:\nRead first.\n\na.deep.*:\nDig.");
    assert!(result["capabilities"]["prompts"].is_object());
    assert!(result["capabilities"]["tools"].is_null());
    let server = builder().mount("a", builder()).build().unwrap();
    assert!(ask(&server, "server/discover", json!({})).await["result"]["instructions"].is_null());
}
