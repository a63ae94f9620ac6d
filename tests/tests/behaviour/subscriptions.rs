//! Change notices: unasked in a session, on a stream of their own in the modern era.
//!
//! Spec: 2026-07-28 basic/patterns/subscriptions; 2025-11-25 server/resources, "Subscriptions"

use std::time::Duration;

use mcp_core::{
    HandlerError, NoArguments, Offer, Prompt, PromptReply, RequestContext, Resource, ResourceTemplate, Server,
    ServerBuilder, Tool,
};
use mcp_tests::{Lane, Profile, idle, lanes};
use serde_json::{Value, json};

lanes! {
    everywhere {
        every_change_of_a_list_is_told,
        a_change_of_a_watched_resource_is_told,
        many_changes_are_told_once,
        nothing_is_told_when_nothing_changed,
        notices_do_not_come_on_the_stream_of_a_call,
        every_client_is_told,
    }
    modern "in a session lists are told unasked and resources are subscribed to one by one" {
        the_acknowledgement_comes_first,
        only_what_was_asked_for_is_told,
        what_is_not_offered_is_not_granted,
        an_empty_wish_is_granted_and_stays_open,
        notices_carry_the_id_with_its_type,
        notices_carry_an_id_of_many_digits_as_it_was_sent,
        a_wish_of_another_shape_is_refused,
        tasks_need_their_extension,
        the_end_of_the_server_is_told,
    }
    memory_modern "who leaves a pipe leaves everything; sessions listen to nothing" {
        going_away_ends_a_subscription,
    }
    http_modern "who leaves a pipe leaves everything; sessions listen to nothing" {
        going_away_ends_a_subscription,
    }
    connection_modern "over HTTP a subscription is ended by closing its stream" {
        a_subscription_can_be_cancelled,
    }
    http_modern "a pipe always takes a stream" {
        a_client_that_takes_no_stream_cannot_subscribe,
    }
    legacy "the modern era has one request for all of it" {
        a_subscription_to_nothing_is_refused,
        what_was_unsubscribed_is_told_no_more,
        subscribing_twice_is_subscribing_once,
        a_subscription_is_of_its_session_alone,
    }
}

fn tool(name: &str) -> Tool {
    Tool::typed(name, |_: NoArguments, _context: RequestContext| async { Ok::<_, HandlerError>("x") })
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, |_, _| async { Ok(PromptReply::user("x")) })
}

fn server() -> ServerBuilder {
    Server::builder("s", "1")
        .tool(tool("t"))
        .prompt(prompt("p"))
        .resource(Resource::text("test://a", "a", "x"))
        .resource(Resource::text("test://b", "b", "x"))
        .resource_template(ResourceTemplate::new(
            "test://t/{id}",
            "t",
            |request, _| async move { Ok(request.text("x")) },
        ))
}

fn all() -> Value {
    json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["test://a", "test://t/7"],
    })
}

fn notice(method: &str) -> (String, Value) {
    (format!("notifications/{method}"), json!({}))
}

fn updated(uri: &str) -> (String, Value) {
    ("notifications/resources/updated".to_owned(), json!({ "uri": uri }))
}

async fn every_change_of_a_list_is_told(lane: Lane) {
    let client = lane.connect(server()).await;
    let server = client.server();
    let mut watch = client.watch(all()).await;
    type Change = fn(&Server);
    let changes: [(Change, &str); 11] = [
        (|server| server.add_tool(tool("new")).unwrap(), "tools/list_changed"),
        (|server| assert!(server.remove_tool("new")), "tools/list_changed"),
        (Server::tools_changed, "tools/list_changed"),
        (|server| server.add_prompt(prompt("new")).unwrap(), "prompts/list_changed"),
        (|server| assert!(server.remove_prompt("new")), "prompts/list_changed"),
        (Server::prompts_changed, "prompts/list_changed"),
        (|server| server.add_resource(Resource::text("test://c", "c", "x")).unwrap(), "resources/list_changed"),
        (|server| assert!(server.remove_resource("test://c")), "resources/list_changed"),
        (
            |server| {
                let template =
                    ResourceTemplate::new("x://{id}", "x", |request, _| async move { Ok(request.text("x")) });
                server.add_resource_template(template).unwrap();
            },
            "resources/list_changed",
        ),
        (|server| assert!(server.remove_resource_template("x://{id}")), "resources/list_changed"),
        (Server::resources_changed, "resources/list_changed"),
    ];
    for (change, method) in changes {
        change(server);
        assert_eq!(watch.next().await, notice(method));
        watch.is_quiet().await;
    }
}

async fn a_change_of_a_watched_resource_is_told(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut watch = client.watch(all()).await;
    client.server().resource_updated("test://b");
    client.server().resource_updated("test://t/8");
    watch.is_quiet().await;
    client.server().resource_updated("test://t/7");
    assert_eq!(watch.next().await, updated("test://t/7"));
    client.server().resource_updated("test://a");
    assert_eq!(watch.next().await, updated("test://a"));
    watch.is_quiet().await;
}

async fn many_changes_are_told_once(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut watch = client.watch(all()).await;
    for _ in 0..10_000 {
        client.server().tools_changed();
        client.server().resource_updated("test://a");
    }
    let told = [watch.next().await, watch.next().await];
    assert_eq!(told, [notice("tools/list_changed"), updated("test://a")]);
    watch.is_quiet().await;
}

async fn nothing_is_told_when_nothing_changed(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut watch = client.watch(all()).await;
    assert!(!client.server().remove_tool("none") && !client.server().remove_prompt("none"));
    assert!(!client.server().remove_resource("test://none") && !client.server().remove_resource("none"));
    assert!(client.server().add_tool(tool("t")).is_err() && client.server().add_tool(tool("no name")).is_err());
    watch.is_quiet().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    watch.is_quiet().await;
}

async fn notices_do_not_come_on_the_stream_of_a_call(lane: Lane) {
    let changing = Tool::typed("changes", |_: NoArguments, context: RequestContext| async move {
        context.server().add_tool(tool("new"))?;
        context.progress(1.0, None, None);
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, HandlerError>("done")
    });
    let client = lane.connect(server().tool(changing)).await;
    let mut watch = client.watch(all()).await;
    let params = json!({ "name": "changes", "_meta": { "progressToken": 1 } });
    let reply = client.request("tools/call", params).await;
    assert_eq!(reply.methods_before(), ["notifications/progress"]);
    assert_eq!(watch.next().await, notice("tools/list_changed"));
    watch.is_quiet().await;
}

async fn every_client_is_told(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(Profile::named("bob")).await);
    let (mut of_ann, mut of_bob) = (ann.watch(all()).await, bob.watch(all()).await);
    server.tools_changed();
    for watch in [&mut of_ann, &mut of_bob] {
        assert_eq!(watch.next().await, notice("tools/list_changed"));
        watch.is_quiet().await;
    }
    if lane.is_modern() {
        // One client may listen twice; each subscription gets its own copy.
        let mut second = ann.watch(json!({ "toolsListChanged": true })).await;
        server.tools_changed();
        assert_eq!(of_ann.next().await, notice("tools/list_changed"));
        assert_eq!(second.next().await, notice("tools/list_changed"));
    }
}

/// Checklist 16: the listen ack precedes a change made immediately after the request was received.
async fn the_acknowledgement_comes_first(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut call = client.start("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    // As long as it takes until the request has been received, and not longer: nothing was read yet.
    idle().await;
    client.server().tools_changed();
    let acknowledged = call.notification().await;
    assert_eq!(
        acknowledged,
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "notifications": { "toolsListChanged": true },
                "_meta": { "io.modelcontextprotocol/subscriptionId": call.id() },
            },
        })
    );
    assert_eq!(call.notification().await["method"], "notifications/tools/list_changed");
    // Nor does it matter how far the request has come when the change is made.
    for steps in 0..100 {
        let client = lane.connect(server()).await;
        let mut call = client.start("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        client.server().tools_changed();
        let first = call.notification().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{steps}");
    }
}

/// Checklist 17: listen notifications carry the subscription id with the JSON type of the request id, and unrequested types
/// never arrive. (Here: the second half.)
async fn only_what_was_asked_for_is_told(lane: Lane) {
    let client = lane.connect(server()).await;
    let wishes = [
        (json!({ "toolsListChanged": true }), Some(notice("tools/list_changed"))),
        (json!({ "promptsListChanged": true }), Some(notice("prompts/list_changed"))),
        (json!({ "resourcesListChanged": true }), Some(notice("resources/list_changed"))),
        (json!({ "resourceSubscriptions": ["test://a"] }), Some(updated("test://a"))),
        (json!({}), None),
    ];
    for (wish, told) in wishes {
        let mut watch = client.watch(wish.clone()).await;
        client.server().tools_changed();
        client.server().prompts_changed();
        client.server().resources_changed();
        client.server().resource_updated("test://a");
        client.server().resource_updated("test://b");
        if let Some(told) = told {
            assert_eq!(watch.next().await, told, "{wish}");
        }
        watch.is_quiet().await;
    }
}

async fn what_is_not_offered_is_not_granted(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").offer(Offer::Tools)).await;
    let mut wish = all();
    wish["unknown"] = json!(true);
    let mut call = client.start("subscriptions/listen", json!({ "notifications": wish }));
    assert_eq!(call.notification().await["params"]["notifications"], json!({ "toolsListChanged": true }));
    client.server().prompts_changed();
    client.server().resources_changed();
    client.server().resource_updated("test://a");
    call.is_quiet().await;
    let refusing = json!({ "notifications": { "toolsListChanged": false } });
    let mut call = client.start("subscriptions/listen", refusing);
    assert_eq!(call.notification().await["params"]["notifications"], json!({}));
    client.server().tools_changed();
    call.is_quiet().await;
}

async fn an_empty_wish_is_granted_and_stays_open(lane: Lane) {
    let client = lane.connect(server()).await;
    for wish in [json!({}), json!({ "unknown": true })] {
        let mut call = client.start("subscriptions/listen", json!({ "notifications": wish }));
        assert_eq!(call.notification().await["params"]["notifications"], json!({}));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        call.is_quiet().await;
    }
}

/// Checklist 17: listen notifications carry the subscription id with the JSON type of the request id, and unrequested types
/// never arrive. (Here: the first half.)
async fn notices_carry_the_id_with_its_type(lane: Lane) {
    let client = lane.connect(server()).await;
    for id in [json!(7), json!("7"), json!(0), json!(""), json!(9_007_199_254_740_993_i64)] {
        let wish = json!({ "notifications": { "toolsListChanged": true } });
        let mut call = client.start_as(id.clone(), "subscriptions/listen", wish);
        client.server().tools_changed();
        for _ in 0..2 {
            let notice = call.notification().await;
            assert_eq!(notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
            client.server().tools_changed();
        }
    }
}

async fn notices_carry_an_id_of_many_digits_as_it_was_sent(lane: Lane) {
    const IDS: [&str; 3] = ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"];
    let client = lane.connect(server()).await;
    let wish = json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["test://a"] } });
    // The harness compares the tag of each notice with the id, digit for digit.
    let mut calls = IDS.map(|id| client.start_written(id, "subscriptions/listen", wish.clone()));
    for call in &mut calls {
        assert_eq!(call.notification().await["method"], "notifications/subscriptions/acknowledged");
    }
    client.server().tools_changed();
    client.server().resource_updated("test://a");
    for call in &mut calls {
        assert_eq!(call.notification().await["method"], "notifications/tools/list_changed");
        assert_eq!(call.notification().await["method"], "notifications/resources/updated");
    }
    let server = client.server().clone();
    let ((), ()) = tokio::join!(server.shutdown(Duration::from_secs(1)), async {
        for (call, id) in calls.into_iter().zip(IDS) {
            let text = call.reply().await.text;
            assert!(text.contains(&format!(r#""id":{id},"#)), "{text}");
            assert!(text.contains(&format!(r#""io.modelcontextprotocol/subscriptionId":{id}}}"#)), "{text}");
        }
    });
}

async fn a_wish_of_another_shape_is_refused(lane: Lane) {
    let client = lane.connect(server()).await;
    for params in [
        json!({}),
        json!({ "notifications": null }),
        json!({ "notifications": [] }),
        json!({ "notifications": ["toolsListChanged"] }),
        json!({ "notifications": { "toolsListChanged": "yes" } }),
        json!({ "notifications": { "resourceSubscriptions": "test://a" } }),
        json!({ "notifications": { "resourceSubscriptions": [7] } }),
    ] {
        let reply = client.request("subscriptions/listen", params.clone()).await;
        assert_eq!(reply.code_at(200), -32602, "{params}");
    }
}

async fn tasks_need_their_extension(lane: Lane) {
    let client = lane.connect(server()).await;
    let reply = client.request("subscriptions/listen", json!({ "notifications": { "taskIds": ["t-1"] } })).await;
    assert_eq!(reply.code_at(400), -32021);
    let required = json!({ "requiredCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } } });
    assert_eq!(reply.error()["data"], required);
}

async fn the_end_of_the_server_is_told(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut call = client.start("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    call.notification().await;
    client.server().tools_changed();
    let server = client.server().clone();
    let (reply, ()) = tokio::join!(
        async {
            assert_eq!(
                call.notification().await["method"],
                "notifications/tools/list_changed",
                "what is due comes first"
            );
            call.reply().await
        },
        server.shutdown(Duration::from_secs(1)),
    );
    let meta = &reply.result()["_meta"];
    assert_eq!(reply.result()["resultType"], "complete");
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], reply.response["id"]);
    let members = reply.result().as_object().unwrap().len();
    assert_eq!(members, 2, "nothing else is in the result: {}", reply.text);
}

async fn going_away_ends_a_subscription(lane: Lane) {
    let mut limits = mcp_core::Limits::default();
    (limits.sessions, limits.subscriptions) = (0, 1);
    let client = lane.connect(server().limits(limits)).await;
    for _ in 0..3 {
        let watch = client.watch(json!({})).await;
        let beyond = client.request("subscriptions/listen", json!({ "notifications": {} })).await;
        assert_eq!(beyond.code(), -32603);
        drop(watch);
        idle().await;
    }
}

async fn a_subscription_can_be_cancelled(lane: Lane) {
    let client = lane.connect(server()).await;
    for id in [json!(0), json!(""), json!("x")] {
        let wish = json!({ "notifications": { "toolsListChanged": true } });
        let mut call = client.start_as(id.clone(), "subscriptions/listen", wish);
        call.notification().await;
        client.withdraw(&id).await;
        client.server().tools_changed();
        call.silence().await;
    }
}

async fn a_client_that_takes_no_stream_cannot_subscribe(lane: Lane) {
    let client = lane.connect(server()).await;
    let params = client.enveloped(json!({ "notifications": {} }));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
    let answer = client
        .http(http::Method::POST, body.to_string(), |headers| {
            headers.insert("accept", http::HeaderValue::from_static("application/json"));
        })
        .await;
    assert_eq!((answer.status, answer.code()), (400, -32600));
}

async fn a_subscription_to_nothing_is_refused(lane: Lane) {
    let client = lane.connect(server()).await;
    for (params, code) in [
        (json!({ "uri": "test://none" }), -32002),
        (json!({ "uri": "not a uri" }), -32602),
        (json!({ "uri": 7 }), -32602),
        (json!({}), -32602),
    ] {
        let reply = client.request("resources/subscribe", params.clone()).await;
        assert_eq!(reply.code(), code, "{params}");
        if code == -32002 {
            assert_eq!(reply.error()["data"], json!({ "uri": "test://none" }));
        }
    }
}

async fn what_was_unsubscribed_is_told_no_more(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut watch = client.watch(json!({ "resourceSubscriptions": ["test://a", "test://b"] })).await;
    client.server().resource_updated("test://a");
    client.server().resource_updated("test://b");
    let reply = client.request("resources/unsubscribe", json!({ "uri": "test://a" })).await;
    assert_eq!(*reply.result(), json!({}));
    if lane.is_stdio() {
        // What is due is written at once; only a client that waits to be told can have it taken back.
        assert_eq!(watch.next().await, updated("test://a"));
    }
    assert_eq!(watch.next().await, updated("test://b"), "nor what was due already");
    client.server().resource_updated("test://a");
    watch.is_quiet().await;
    let again = client.request("resources/unsubscribe", json!({ "uri": "test://a" })).await;
    assert_eq!(*again.result(), json!({}), "there is nothing wrong with that");
}

async fn subscribing_twice_is_subscribing_once(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut watch = client.watch(json!({ "resourceSubscriptions": ["test://a", "test://a"] })).await;
    client.server().resource_updated("test://a");
    assert_eq!(watch.next().await, updated("test://a"));
    watch.is_quiet().await;
    client.request("resources/unsubscribe", json!({ "uri": "test://a" })).await;
    client.server().resource_updated("test://a");
    watch.is_quiet().await;
}

async fn a_subscription_is_of_its_session_alone(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let (one, other) = (host.connect().await, host.connect().await);
    let mut watching = one.watch(json!({ "resourceSubscriptions": ["test://a"] })).await;
    let mut not_watching = other.watch(json!({})).await;
    server.resource_updated("test://a");
    assert_eq!(watching.next().await, updated("test://a"));
    not_watching.is_quiet().await;
}
