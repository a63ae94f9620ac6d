//! Who sees and may use what: the access policy of a server, on every method.
//!
//! Spec: 2026-07-28 basic/authorization, "Scope Challenge Handling"; server/utilities/pagination

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_core::{
    AccessPolicy, Action, Completions, Denied, Item, Limits, NoArguments, Principal, Prompt, PromptReply, Resource, ResourceTemplate,
    Server, ServerBuilder, Tool, completer,
};
use mcp_tests::{Client, Lane, Profile, Reply, lanes};
use mcp_wire::types::{CacheHints, CacheScope};
use serde_json::{Value, json};

lanes! {
    everywhere {
        lists_show_each_caller_what_it_sees_in_the_order_of_registration,
        pages_are_filled_with_what_is_seen_and_end_where_nothing_more_is,
        pages_neither_skip_nor_repeat_what_survives_a_change,
        what_is_not_seen_answers_as_what_does_not_exist,
        an_address_is_hidden_however_its_scheme_is_written,
        what_is_seen_and_denied_runs_no_handler_and_names_the_scope,
        a_policy_that_panics_hides_and_denies,
        only_permitted_addresses_tell_of_changes,
    }
    modern "before, results said nothing of how long they may be kept" {
        nothing_that_callers_see_differently_may_be_shared,
    }
}

/// Shows `ann` everything and everybody else what has no `secret` in its name, and lets only those with the scope
/// `operate` do anything with what is called `guarded`.
struct Policy;

fn name_of(item: Item<'_>) -> &str {
    match item {
        Item::Tool(name) | Item::Prompt(name) | Item::Resource(name) | Item::Template(name) => name,
        _ => "secret",
    }
}

impl AccessPolicy for Policy {
    fn sees(&self, caller: &Principal, item: Item<'_>) -> bool {
        assert!(!name_of(item).contains("breaks-seeing"), "no idea");
        caller.subject() == "ann" || !name_of(item).contains("secret")
    }

    fn permits(&self, caller: &Principal, action: Action, item: Item<'_>) -> Result<(), Denied> {
        assert!(!name_of(item).contains("breaks-permitting"), "no idea");
        // Everything that can be done has a name of its own.
        assert_eq!(action == Action::Call, matches!(item, Item::Tool(_)));
        if name_of(item).contains("guarded") && !caller.has_scope("operate") {
            return Err(Denied::needing(["operate"]));
        }
        Ok(())
    }
}

/// Things of every kind, and how often any of them ran.
fn server() -> (ServerBuilder, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let mut builder = Server::builder("s", "1").access(Policy);
    for name in ["secret-one", "open-one", "secret-two", "guarded", "open-two", "breaks-permitting", "breaks-seeing"] {
        let counted = || {
            let runs = Arc::clone(&runs);
            move || runs.fetch_add(1, Ordering::SeqCst)
        };
        let (tool, prompt, resource, template) = (counted(), counted(), counted(), counted());
        builder = builder
            .tool(Tool::plain(name, move |_: NoArguments| {
                tool();
                "ran"
            }))
            .prompt(Prompt::new(name, move |_arguments, _context| {
                prompt();
                ready(Ok(PromptReply::user("filled")))
            }))
            .resource(Resource::new(format!("db://{name}"), name, move |request, _context| {
                resource();
                ready(Ok(request.text("read")))
            }))
            .resource_template(
                ResourceTemplate::new(format!("{name}://{{id}}"), name, move |request, _context| {
                    template();
                    ready(Ok(request.text("read through")))
                })
                .complete("id", completer(async |_typed| Ok(Completions::new(["suggested"])))),
            );
    }
    (builder, runs)
}

async fn listed(client: &Client, method: &str, member: &str, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = json!({});
    loop {
        let reply = client.request(method, cursor).await;
        let page = reply.result()[member].as_array().unwrap().clone();
        found.extend(page.iter().map(|entry| entry[key].as_str().unwrap().to_owned()));
        match reply.result().get("nextCursor") {
            None => return found,
            Some(next) => {
                assert!(!page.is_empty(), "an empty page promises more");
                cursor = json!({ "cursor": next });
            }
        }
    }
}

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "name"),
    ("resources/templates/list", "resourceTemplates", "name"),
];

async fn lists_show_each_caller_what_it_sees_in_the_order_of_registration(lane: Lane) {
    let server = server().0.build().unwrap();
    let host = lane.host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(Profile::named("bob")).await);
    for (method, member, key) in LISTS {
        let seen = ["secret-one", "open-one", "secret-two", "guarded", "open-two", "breaks-permitting"];
        assert_eq!(listed(&ann, method, member, key).await, seen, "{method}");
        let seen = ["open-one", "guarded", "open-two", "breaks-permitting"];
        assert_eq!(listed(&bob, method, member, key).await, seen, "{method}");
    }
}

async fn pages_are_filled_with_what_is_seen_and_end_where_nothing_more_is(lane: Lane) {
    for page in 1..=5 {
        let mut limits = Limits::default();
        limits.page = page;
        let server = server().0.limits(limits).build().unwrap();
        let bob = lane.host(&server).connect_as(Profile::named("bob")).await;
        for (method, member, key) in LISTS {
            let seen = ["open-one", "guarded", "open-two", "breaks-permitting"];
            assert_eq!(listed(&bob, method, member, key).await, seen, "{method} by {page}");
            let first = bob.request(method, json!({})).await;
            assert_eq!(first.result()[member].as_array().unwrap().len(), page.min(4), "{method} by {page}");
            assert_eq!(first.result().get("nextCursor").is_some(), page < 4, "{method} by {page}");
        }
    }
}

async fn pages_neither_skip_nor_repeat_what_survives_a_change(lane: Lane) {
    let mut limits = Limits::default();
    limits.page = 2;
    let server = server().0.limits(limits).build().unwrap();
    let bob = lane.host(&server).connect_as(Profile::named("bob")).await;
    let names = |reply: &Reply| -> Vec<String> {
        let tools = reply.result()["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = bob.request("tools/list", json!({})).await;
    assert_eq!(names(&first), ["open-one", "guarded"]);
    // What the cursor stands on goes, what is hidden comes and goes, and something new comes behind.
    assert!(server.remove_tool("guarded") && server.remove_tool("secret-two"));
    server.add_tool(Tool::plain("secret-three", |_: NoArguments| "")).unwrap();
    server.add_tool(Tool::plain("late", |_: NoArguments| "")).unwrap();
    let second = bob.request("tools/list", json!({ "cursor": first.result()["nextCursor"] })).await;
    assert_eq!(names(&second), ["open-two", "breaks-permitting"]);
    let third = bob.request("tools/list", json!({ "cursor": second.result()["nextCursor"] })).await;
    assert_eq!((names(&third), third.result().get("nextCursor")), (vec!["late".to_owned()], None));
}

/// A request for each way to an item of this name.
fn ways(name: &str) -> Vec<(&'static str, Value)> {
    let argument = json!({ "name": "id", "value": "" });
    vec![
        ("tools/call", json!({ "name": name, "arguments": {} })),
        ("prompts/get", json!({ "name": name })),
        ("resources/read", json!({ "uri": format!("db://{name}") })),
        ("resources/read", json!({ "uri": format!("{name}://7") })),
        ("completion/complete", json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": argument })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": format!("{name}://{{id}}") }, "argument": argument }),
        ),
        ("completion/complete", json!({ "ref": { "type": "ref/resource", "uri": format!("db://{name}") }, "argument": argument })),
        ("completion/complete", json!({ "ref": { "type": "ref/resource", "uri": format!("{name}://7") }, "argument": argument })),
    ]
}

async fn what_is_not_seen_answers_as_what_does_not_exist(lane: Lane) {
    let (server, runs) = server();
    let bob = lane.host(&server.build().unwrap()).connect_as(Profile::named("bob")).await;
    for ((method, hidden), (_, absent)) in ways("secret-one").into_iter().zip(ways("absent-one")) {
        let (hidden, absent) = (bob.request(method, hidden).await, bob.request(method, absent).await);
        let named = hidden.error().to_string().replace("secret-one", "absent-one");
        assert_eq!((named, hidden.status), (absent.error().to_string(), absent.status), "{method}");
    }
    if !lane.is_modern() {
        let subscribe = async |uri: &str| bob.request("resources/subscribe", json!({ "uri": uri })).await;
        let (hidden, absent) = (subscribe("db://secret-one").await, subscribe("db://absent-one").await);
        assert_eq!(hidden.error().to_string().replace("secret-one", "absent-one"), absent.error().to_string());
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    // And ann, who sees it, gets it.
    let (server, _) = self::server();
    let ann = lane.connect(server).await;
    assert_eq!(ann.call("secret-one", json!({})).await.tool_text(), "ran");
    let read = ann.request("resources/read", json!({ "uri": "db://secret-one" })).await;
    assert_eq!(read.result()["contents"][0]["text"], "read");
}

async fn an_address_is_hidden_however_its_scheme_is_written(lane: Lane) {
    let (server, runs) = server();
    let bob = lane.host(&server.build().unwrap()).connect_as(Profile::named("bob")).await;
    for uri in ["DB://secret-one", "Db://secret-one"] {
        let reply = bob.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(reply.error()["message"], "there is no such resource");
    }
    assert_eq!(bob.request("resources/read", json!({ "uri": "DB://open-one" })).await.result()["contents"][0]["text"], "read");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

async fn what_is_seen_and_denied_runs_no_handler_and_names_the_scope(lane: Lane) {
    let (server, runs) = server();
    let server = server.build().unwrap();
    let host = lane.host(&server);
    let bob = host.connect_as(Profile::named("bob")).await;
    for (method, params) in ways("guarded") {
        let reply = bob.request(method, params).await;
        assert_eq!(reply.error()["message"], "the caller may not do this", "{method}");
        assert_eq!(reply.code(), -32600, "{method}");
        assert!(reply.has_status(403), "{method}: {:?}", reply.status);
        if lane.is_http() {
            let (_, challenge) = reply.headers.iter().find(|(name, _)| name == "www-authenticate").expect("a challenge");
            assert!(challenge.contains("insufficient_scope") && challenge.contains("operate"), "{challenge}");
        }
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    let operator = host.connect_as(Profile { scopes: &["operate"], ..Profile::named("bob") }).await;
    assert_eq!(operator.call("guarded", json!({})).await.tool_text(), "ran");
}

async fn a_policy_that_panics_hides_and_denies(lane: Lane) {
    let (server, runs) = server();
    let ann = lane.connect(server).await;
    for (method, params) in ways("breaks-seeing") {
        let reply = ann.request(method, params).await;
        assert!(!reply.error()["message"].as_str().unwrap().contains("may not"), "{method}: {reply:?}");
    }
    for (method, params) in ways("breaks-permitting") {
        assert_eq!(ann.request(method, params).await.error()["message"], "the caller may not do this", "{method}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(ann.call("open-one", json!({})).await.tool_text(), "ran", "and nothing else is lost");
}

async fn only_permitted_addresses_tell_of_changes(lane: Lane) {
    let server = server().0.build().unwrap();
    let bob = lane.host(&server).connect_as(Profile::named("bob")).await;
    let uris = ["db://secret-one", "db://guarded", "db://open-one"];
    if lane.is_modern() {
        let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
        let mut listening = bob.start("subscriptions/listen", filter);
        let acknowledged = listening.notification().await;
        assert_eq!(acknowledged["params"]["notifications"], json!({ "resourceSubscriptions": ["db://open-one"] }));
        uris.into_iter().for_each(|uri| server.resource_updated(uri));
        assert_eq!(listening.notification().await["params"]["uri"], "db://open-one");
        listening.is_quiet().await;
        return;
    }
    for (uri, permitted) in uris.into_iter().zip([false, false, true]) {
        let reply = bob.request("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(reply.response.get("result").is_some(), permitted, "{uri}");
    }
    let mut watch = bob.watch(json!({})).await;
    uris.into_iter().for_each(|uri| server.resource_updated(uri));
    let (method, params) = watch.next().await;
    assert_eq!((method.as_str(), &params["uri"]), ("notifications/resources/updated", &json!("db://open-one")));
    watch.is_quiet().await;
}

async fn nothing_that_callers_see_differently_may_be_shared(lane: Lane) {
    let public = CacheHints::new(60_000, CacheScope::Public);
    let server = server().0.cache(public).build().unwrap();
    let ann = lane.host(&server).connect().await;
    for (method, _, _) in LISTS {
        let reply = ann.request(method, json!({})).await;
        assert_eq!((&reply.result()["ttlMs"], &reply.result()["cacheScope"]), (&json!(60_000), &json!("private")));
    }
    let read = ann.request("resources/read", json!({ "uri": "db://open-one" })).await;
    assert_eq!(read.result()["cacheScope"], "private");
}
