//! Everything that a server says, in every revision, held against what it said before and against the published schemas.
//!
//! The snapshots are `tests/snapshots/<revision>.txt`; `UPDATE_SNAPSHOTS=1 cargo test -p mcp-tests snapshots` writes them
//! anew. They are the same over every carrier.

mod server;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::time::Duration;

use mcp_tests::{Call, Client, Host, Item, Lane, Profile, Reply, lanes};
use mcp_wire::{Revision, params};
use serde_json::{Value, json};

use crate::schemas::{self, Schemas};

lanes! {
    everywhere {
        everything_a_server_says_is_as_it_was_and_as_published,
    }
}

/// What the schemas let a server say and this one never does.
const NEVER_SAID: &[(&str, &str)] = &[
    ("PingRequest", "carriers see for themselves whether a client is there"),
    ("TaskStatusNotification", "tasks are not served"),
    ("GetTaskRequest", "tasks are not served"),
    ("GetTaskPayloadRequest", "tasks are not served"),
    ("ListTasksRequest", "tasks are not served"),
    ("CancelTaskRequest", "tasks are not served"),
    ("CreateTaskResult", "tasks are not served"),
    ("GetTaskResult", "tasks are not served"),
    ("GetTaskPayloadResult", "tasks are not served"),
    ("ListTasksResult", "tasks are not served"),
    ("CancelTaskResult", "tasks are not served"),
    ("Result", "an older name of the empty result, and none of a result of its own"),
];

/// Never said in the revision without sessions, though its schema has it.
const NEVER_SAID_WITHOUT_SESSION: (&str, &str) =
    ("CancelledNotification", "a stateless server sends no requests that it could take back");

/// A message of the server.
struct Said {
    title: String,
    /// The definition that it has to be.
    definition: &'static str,
    message: Value,
}

async fn everything_a_server_says_is_as_it_was_and_as_published(lane: Lane) {
    for lane in lane.each_revision() {
        let said = Listener::listen_to_everything(lane).await;
        compare(lane, &said);
        // What is said elsewhere is the same, as has just been seen.
        if is_memory(lane)
            && let Some(schemas) = schemas::published(lane.revision(), "snapshots")
        {
            check(lane.revision(), &schemas, &said);
        }
    }
}

fn is_memory(lane: Lane) -> bool {
    !lane.is_http() && !lane.is_stdio()
}

fn check(revision: Revision, schemas: &Schemas, said: &[Said]) {
    let mut faults = Vec::new();
    for Said { title, definition, message } in said {
        // A question within a result is no frame.
        let frame = if message.get("jsonrpc").is_some() { schemas.check("JSONRPCMessage", message) } else { Ok(()) };
        let part = [message.get("result"), message.get("error")].into_iter().flatten().next();
        let whole = definition.starts_with("JSONRPC") || definition.ends_with("Error");
        let checked = schemas.check(definition, part.filter(|_| !whole).unwrap_or(message));
        for fault in [frame, checked].into_iter().filter_map(Result::err) {
            faults.push(format!("{revision}, {title}: {fault}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));

    let heard: BTreeSet<&str> = said.iter().map(|said| said.definition).collect();
    let stateless = !schemas.has("InitializeResult");
    for union in ["ServerResult", "ServerNotification", "ServerRequest"] {
        for definition in if schemas.has(union) { schemas.members(union) } else { BTreeSet::new() } {
            let excused = NEVER_SAID.iter().any(|(never, _)| *never == definition)
                || (stateless && definition == NEVER_SAID_WITHOUT_SESSION.0);
            assert!(
                heard.contains(&*definition) != excused,
                "{revision}: {definition} is said and excused, or neither"
            );
        }
    }
}

fn compare(lane: Lane, said: &[Said]) {
    let revision = lane.revision();
    let mut text = format!("What a server says in {revision}: see tests/tests/behaviour/snapshots.rs.\n");
    let mut server_info = None;
    // Questions that are no frames are read in the result that has them.
    for Said { title, definition, message } in said.iter().filter(|said| said.message.get("jsonrpc").is_some()) {
        let mut message = message.clone();
        abridge(&mut message, &mut server_info);
        let message = serde_json::to_string_pretty(&message).unwrap();
        text.push_str(&format!("\n# {title}: {definition}\n{message}\n"));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("snapshots/{revision}.txt"));
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        // One carrier writes, so that tests side by side do not write the same file.
        if is_memory(lane) {
            fs::write(file, text).expect("the snapshot can be written");
        }
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let lines = |text: &str| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>();
    let (kept, new) = (lines(&kept), lines(&text));
    let Some(first) = (0..kept.len().max(new.len())).find(|line| kept.get(*line) != new.get(*line)) else { return };
    let around = |lines: &[String]| lines.iter().skip(first.saturating_sub(5)).take(15).cloned().collect::<Vec<_>>();
    panic!(
        "{}:{}: not what was said before (UPDATE_SNAPSHOTS=1 accepts it)\n--- before\n{}\n--- now\n{}",
        file.display(),
        first + 1,
        around(&kept).join("\n"),
        around(&new).join("\n"),
    );
}

/// Listens to one server in one revision.
struct Listener {
    host: Host,
    client: Client,
    said: Vec<Said>,
}

impl Listener {
    async fn listen_to_everything(lane: Lane) -> Vec<Said> {
        let server = server::everything().build().expect("the server can be built");
        let host = lane.host(&server);
        let client = host.strange(Profile::default());
        let mut listener = Self { host, client, said: Vec::new() };
        listener.greeting().await;
        listener.lists().await;
        listener.contents().await;
        listener.notices_of_a_call().await;
        listener.questions().await;
        listener.errors().await;
        listener.changes().await;
        listener.said
    }

    fn is_modern(&self) -> bool {
        self.client.lane().is_modern()
    }

    async fn greeting(&mut self) {
        if self.is_modern() {
            self.result("server/discover", "DiscoverResult", "server/discover", json!({})).await;
            return;
        }
        let hello = json!({
            "protocolVersion": self.client.lane().revision().as_str(),
            "capabilities": Profile::default().capabilities,
            "clientInfo": { "name": "listener", "version": "1" },
        });
        self.result("initialize", "InitializeResult", "initialize", hello).await;
        self.client.notify("notifications/initialized", json!({})).await;
        self.result("ping", "EmptyResult", "ping", json!({})).await;
    }

    async fn lists(&mut self) {
        let first = self.result("tools/list", "ListToolsResult", "tools/list", json!({})).await;
        let cursor = &first.result()["nextCursor"];
        self.result("tools/list, second page", "ListToolsResult", "tools/list", json!({ "cursor": cursor })).await;
        self.result("resources/list", "ListResourcesResult", "resources/list", json!({})).await;
        let templates = "resources/templates/list";
        self.result(templates, "ListResourceTemplatesResult", templates, json!({})).await;
        self.result("prompts/list", "ListPromptsResult", "prompts/list", json!({})).await;
    }

    async fn contents(&mut self) {
        for (title, tool) in [
            ("a structured result", "add"),
            ("a structured result that is no object", "list"),
            ("every kind of content", "contents"),
            ("a failure", "fail"),
        ] {
            let params = json!({ "name": tool, "arguments": {} });
            self.result(&format!("tools/call, {title}"), "CallToolResult", "tools/call", params).await;
        }
        for (title, uri) in
            [("text", "test://text"), ("bytes", "test://blob"), ("a member of a family", "test://family/7")]
        {
            let title = format!("resources/read, {title}");
            self.result(&title, "ReadResourceResult", "resources/read", json!({ "uri": uri })).await;
        }
        let params = json!({ "name": "prompt", "arguments": { "about": "tea" } });
        self.result("prompts/get", "GetPromptResult", "prompts/get", params).await;
        for (title, reference, argument) in [
            ("a variable", json!({ "type": "ref/resource", "uri": "test://family/{id}" }), "id"),
            ("an argument", json!({ "type": "ref/prompt", "name": "prompt" }), "style"),
        ] {
            let params = json!({ "ref": reference, "argument": { "name": argument, "value": "" } });
            let title = format!("completion/complete, {title}");
            self.result(&title, "CompleteResult", "completion/complete", params).await;
        }
    }

    async fn notices_of_a_call(&mut self) {
        if self.is_modern() {
            self.client.set_log_level("debug").await;
        } else {
            let params = json!({ "level": "debug" });
            self.result("logging/setLevel", "EmptyResult", "logging/setLevel", params).await;
        }
        let params = json!({ "name": "tell", "arguments": {}, "_meta": { "progressToken": "token" } });
        let mut call = self.client.start("tools/call", params);
        for (title, definition) in [
            ("progress", "ProgressNotification"),
            ("progress, with everything", "ProgressNotification"),
            ("a log message", "LoggingMessageNotification"),
        ] {
            let notice = call.notification().await;
            self.keep(title, definition, notice);
        }
        call.reply().await;
    }

    async fn questions(&mut self) {
        let said = json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" });
        let accepted = json!({ "action": "accept", "content": { "name": "Ann" } });
        let roots = json!({ "roots": [{ "uri": "file:///home" }] });
        for (title, tool, definition, answer) in [
            ("the model", "ask_model", "CreateMessageRequest", &said),
            ("the model, with tools", "ask_model_with_tools", "CreateMessageRequest", &said),
            ("the user, by a form", "ask_user", "ElicitRequest", &accepted),
            ("the user, for several values", "ask_user_for_several", "ElicitRequest", &json!({ "action": "decline" })),
            ("the user, to open a link", "ask_user_to_visit", "ElicitRequest", &json!({ "action": "accept" })),
            ("the user, to open a link first", "need_visit", "ElicitRequest", &json!({ "action": "accept" })),
            ("the client, for its folders", "ask_for_folders", "ListRootsRequest", &roots),
        ] {
            let call = self.client.start_tool(tool, json!({}));
            self.question(&format!("asking {title}"), definition, call, tool, answer).await;
        }
        if self.client.lane().revision().rules().named_visits {
            let told = self.client.unsolicited().await;
            self.keep("the user opened the link and is done", "ElicitationCompleteNotification", told);
        }
        if !self.is_modern() {
            let mut call = self.client.start_tool("ask_for_folders", json!({}));
            call.server_request().await;
            // Nobody answers, and the paused clock moves on.
            let withdrawn = call.notification().await;
            self.keep("a question that is taken back", "CancelledNotification", withdrawn);
            let reply = call.reply().await;
            self.keep("a question that nobody answered", self.error_frame(), reply.response);
        }
    }

    /// A question in the way of the revision, and what its answer leads to.
    async fn question(&mut self, title: &str, definition: &'static str, mut call: Call, tool: &str, answer: &Value) {
        let answered = format!("{title}: answered");
        let reply = match call.next().await {
            Some(Item::Request(request)) => {
                self.client.answer(&request, answer.clone()).await;
                self.keep(title, definition, request);
                call.reply().await
            }
            Some(Item::Response(reply)) if reply.response["result"].get("inputRequests").is_some() => {
                let mut params = json!({ "name": tool, "arguments": {}, "inputResponses": {} });
                params["requestState"] = reply.result()["requestState"].clone();
                for (key, asked) in reply.result()["inputRequests"].as_object().expect("questions by name") {
                    params["inputResponses"][key] = answer.clone();
                    self.keep(title, definition, asked.clone());
                }
                self.keep(&format!("{title}: the result"), "InputRequiredResult", reply.response);
                self.client.request("tools/call", params).await
            }
            Some(Item::Response(reply)) => {
                // The revision has no words for the question.
                let definition = match reply.response["error"]["code"].as_i64() {
                    Some(-32042) => "URLElicitationRequiredError",
                    Some(_) => self.error_frame(),
                    None => "CallToolResult",
                };
                self.keep(&format!("{title}: not possible"), definition, reply.response);
                return;
            }
            other => panic!("{title}: {other:?}"),
        };
        self.keep(&answered, "CallToolResult", reply.response);
    }

    async fn errors(&mut self) {
        for (title, method, params) in [
            ("a method that there is not", "no/such", json!({})),
            ("a tool that there is not", "tools/call", json!({ "name": "no", "arguments": {} })),
            ("a resource that there is not", "resources/read", json!({ "uri": "test://no" })),
        ] {
            let reply = self.client.request(method, params).await;
            self.keep(title, self.error_frame(), reply.response);
        }
        let unable = self.host.connect_as(Profile::unable()).await;
        let reply = unable.request("tools/call", json!({ "name": "need_model", "arguments": {} })).await;
        let definition = if self.is_modern() { "MissingRequiredClientCapabilityError" } else { self.error_frame() };
        self.keep("a capability that the client lacks", definition, reply.response);
        if self.is_modern() {
            let meta = json!({ (params::PROTOCOL_VERSION): "2099-01-01" });
            let reply = self.client.request("tools/list", json!({ "_meta": meta })).await;
            self.keep("a revision that there is not", "UnsupportedProtocolVersionError", reply.response);
        }
    }

    async fn changes(&mut self) {
        let uri = "test://text";
        let mut listening = None;
        if self.is_modern() {
            let filter = json!({
                "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
                "resourceSubscriptions": [uri],
            });
            let mut call = self.client.start("subscriptions/listen", json!({ "notifications": filter }));
            let granted = call.notification().await;
            self.keep("subscriptions/listen", "SubscriptionsAcknowledgedNotification", granted);
            listening = Some(call);
        } else {
            self.result("resources/subscribe", "EmptyResult", "resources/subscribe", json!({ "uri": uri })).await;
        }
        let server = self.host.server().clone();
        let changes: [(&str, &str, &dyn Fn()); 4] = [
            ("tools changed", "ToolListChangedNotification", &|| server.tools_changed()),
            ("prompts changed", "PromptListChangedNotification", &|| server.prompts_changed()),
            ("resources changed", "ResourceListChangedNotification", &|| server.resources_changed()),
            ("a resource changed", "ResourceUpdatedNotification", &|| server.resource_updated(uri)),
        ];
        for (title, definition, change) in changes {
            change();
            let notice = match &mut listening {
                Some(call) => call.notification().await,
                None => self.client.unsolicited().await,
            };
            self.keep(title, definition, notice);
        }
        match listening {
            Some(call) => {
                let (reply, ()) = tokio::join!(call.reply(), server.shutdown(Duration::from_secs(1)));
                self.keep("subscriptions/listen, ended by the server", "SubscriptionsListenResult", reply.response);
            }
            None => {
                let method = "resources/unsubscribe";
                self.result(method, "EmptyResult", method, json!({ "uri": uri })).await;
            }
        }
    }

    /// What an error of no kind of its own has to be.
    fn error_frame(&self) -> &'static str {
        if self.client.lane().revision().rules().elicitation_extended { "JSONRPCErrorResponse" } else { "JSONRPCError" }
    }

    async fn result(&mut self, title: &str, definition: &'static str, method: &str, params: Value) -> Reply {
        let reply = self.client.request(method, params).await;
        assert!(reply.before.is_empty(), "{title}: {:?}", reply.before);
        assert!(reply.response.get("result").is_some(), "{title}: {}", reply.text);
        self.keep(title, definition, reply.response.clone());
        reply
    }

    fn keep(&mut self, title: &str, definition: &'static str, message: Value) {
        self.said.push(Said { title: title.to_owned(), definition, message });
    }
}

/// Replaces what is random, and what was said before about the server.
fn abridge(value: &mut Value, server_info: &mut Option<Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| abridge(item, server_info)),
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "requestState" => *member = "(sealed)".into(),
                    params::SERVER_INFO if server_info.as_ref() == Some(member) => *member = "(as above)".into(),
                    params::SERVER_INFO => *server_info = Some(member.clone()),
                    _ => abridge(member, server_info),
                }
            }
        }
        _ => {}
    }
}
