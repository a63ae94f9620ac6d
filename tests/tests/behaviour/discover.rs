//! `server/discover`, and what every modern request brings with it.
//!
//! Spec: 2026-07-28 server/discover; basic/index, "`_meta`"; server/utilities/caching

use mcp_core::{
    HandlerError, ListRoots, NoArguments, Prompt, PromptReply, ReadRequest, RequestContext, Resource, ResourceTemplate, Server,
    ServerBuilder, Tool, completer_of,
};
use mcp_tests::{Lane, Profile, lanes};
use mcp_wire::Revision;
use mcp_wire::capability::ClientCapability;
use mcp_wire::types::{CacheHints, CacheScope};
use serde_json::json;

lanes! {
    everywhere {}
    modern "the legacy era has a handshake for this" {
        the_server_tells_what_it_is_and_can_do,
        a_server_may_keep_its_name_to_itself,
        every_version_that_a_refusal_names_is_discovered,
        the_client_need_not_say_what_it_is,
        nothing_declared_is_remembered,
        the_cacheable_results_say_for_how_long,
        unknown_methods_echo_the_id,
    }
    legacy "in the modern era it exists" {
        there_is_no_discovery_in_a_session,
    }
}

fn server() -> ServerBuilder {
    let tool = Tool::typed("roots", |_: NoArguments, context: RequestContext| async move {
        Ok::<_, HandlerError>(context.ask("r", ListRoots)?.len().to_string())
    });
    let prompt = Prompt::new("p", |_, _| async { Ok(PromptReply::user("x")) })
        .optional("a", "one")
        .complete("a", completer_of(["x"]));
    Server::builder("s", "1")
        .tool(tool)
        .prompt(prompt)
        .resource(Resource::text("test://a", "a", "text"))
        .resource_template(ResourceTemplate::new(
            "test://t/{id}",
            "t",
            |request, _| async move { Ok(request.text("x")) },
        ))
}

async fn the_server_tells_what_it_is_and_can_do(lane: Lane) {
    let client = lane.connect(server().instructions("Read before use")).await;
    let reply = client.request("server/discover", json!({})).await;
    assert_eq!(
        *reply.result(),
        json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
            "capabilities": {
                "logging": {},
                "completions": {},
                "tools": { "listChanged": true },
                "prompts": { "listChanged": true },
                "resources": { "listChanged": true, "subscribe": true },
            },
            "instructions": "Read before use",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } },
        })
    );
}

async fn a_server_may_keep_its_name_to_itself(lane: Lane) {
    let client = lane.connect(server().without_server_info()).await;
    for method in ["server/discover", "tools/list"] {
        assert!(client.request(method, json!({})).await.result().get("_meta").is_none(), "{method}");
    }
}

/// Checklist 4: every version in a -32022 `supported` list is in `server/discover`.
async fn every_version_that_a_refusal_names_is_discovered(lane: Lane) {
    for revisions in [Revision::ALL.to_vec(), vec![Revision::V2026_07_28, Revision::V2025_06_18]] {
        let client = lane.connect(server().revisions(revisions)).await;
        let discovered = client.request("server/discover", json!({})).await;
        let params = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } });
        let refused = client.request("tools/list", params).await;
        assert_eq!(refused.code_at(400), -32022);
        assert_eq!(refused.error()["data"]["requested"], "2099-01-01");
        assert_eq!(refused.error()["data"]["supported"], discovered.result()["supportedVersions"]);
    }
}

/// Checklist 5: a request without `clientInfo` is served.
async fn the_client_need_not_say_what_it_is(lane: Lane) {
    let client = lane.connect(server()).await;
    let mut params = client.enveloped(json!({}));
    params["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientInfo");
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
    assert!(client.raw(frame.to_string()).await.result()["tools"].is_array());
}

/// Checklist 6: a second request without a capability that an earlier one declared is treated as not having it.
async fn nothing_declared_is_remembered(lane: Lane) {
    let knows = Tool::typed("knows", |_: NoArguments, context: RequestContext| async move {
        Ok::<_, HandlerError>(context.client_supports(&ClientCapability::Roots).to_string())
    });
    let client = lane.connect(server().tool(knows)).await;
    assert_eq!(client.call("knows", json!({})).await.tool_text(), "true");
    assert_eq!(client.call("roots", json!({})).await.result()["resultType"], "input_required");
    let without = |tool: &str| json!({ "name": tool, "arguments": {}, "_meta": { "io.modelcontextprotocol/clientCapabilities": {} } });
    assert_eq!(client.request("tools/call", without("knows")).await.tool_text(), "false");
    let refused = client.request("tools/call", without("roots")).await;
    assert_eq!(refused.code_at(400), -32021);
    assert_eq!(refused.error()["data"], json!({ "requiredCapabilities": { "roots": {} } }));
    assert_eq!(client.call("knows", json!({})).await.tool_text(), "true");
}

/// Checklist 14: the six cacheable results carry `ttlMs` and `cacheScope`, and `input_required` results carry neither.
async fn the_cacheable_results_say_for_how_long(lane: Lane) {
    let cacheable = [
        ("server/discover", json!({}), 7),
        ("tools/list", json!({}), 5),
        ("prompts/list", json!({}), 5),
        ("resources/list", json!({}), 5),
        ("resources/templates/list", json!({}), 5),
        ("resources/read", json!({ "uri": "test://a" }), 5),
        ("resources/read", json!({ "uri": "test://t/1" }), 5),
        ("resources/read", json!({ "uri": "test://own" }), 9),
    ];
    let others = [
        ("tools/call", json!({ "name": "roots" })),
        ("prompts/get", json!({ "name": "p" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "" } }),
        ),
    ];
    let own = Resource::text("test://own", "own", "text").cache(CacheHints::new(9, CacheScope::Private));
    let asks = Resource::new("test://asks", "asks", |request: ReadRequest, context: RequestContext| async move {
        Ok(request.text(context.ask("r", ListRoots)?.len().to_string()))
    });
    let asks = asks.cache(CacheHints::new(5, CacheScope::Public));
    let builder = server()
        .resource(own)
        .resource(asks)
        .cache(CacheHints::new(5, CacheScope::Public))
        .discover_cache(CacheHints::new(7, CacheScope::Public));
    let client = lane.connect(builder).await;
    for (method, params, ttl) in cacheable {
        let reply = client.request(method, params).await;
        let scope = if ttl == 9 { "private" } else { "public" };
        assert_eq!((&reply.result()["ttlMs"], &reply.result()["cacheScope"]), (&json!(ttl), &json!(scope)), "{method}");
    }
    for (method, params) in others {
        let reply = client.request(method, params).await;
        for hint in ["ttlMs", "cacheScope"] {
            assert!(reply.result().get(hint).is_none(), "{hint} in {}", reply.text);
        }
    }
    let asked = client.request("resources/read", json!({ "uri": "test://asks" })).await;
    assert_eq!(asked.result()["resultType"], "input_required");
    assert!(asked.result().get("ttlMs").is_none() && asked.result().get("cacheScope").is_none(), "{}", asked.text);
    let default = lane.connect(server()).await;
    let reply = default.request("tools/list", json!({})).await;
    assert_eq!((&reply.result()["ttlMs"], &reply.result()["cacheScope"]), (&json!(0), &json!("private")));
}

/// Checklist 11: unknown methods answer 404 with a JSON-RPC body that echoes the id.
async fn unknown_methods_echo_the_id(lane: Lane) {
    let client = lane.connect(server()).await;
    for id in [json!(0), json!(""), json!(-7), json!("0"), json!("a b"), json!(9_007_199_254_740_993_i64)] {
        // That the id is echoed is checked for every response.
        let reply = client.start_as(id, "no/such", json!({})).reply().await;
        assert_eq!(reply.code_at(404), -32601);
    }
    let long = "x".repeat(10_000);
    let reply = client.request(&long, json!({})).await;
    assert!(reply.text.len() < 1000, "a peer's text is not repeated without bound");
}

async fn there_is_no_discovery_in_a_session(lane: Lane) {
    let client = lane.connect(server()).await;
    for method in ["server/discover", "subscriptions/listen", "tasks/update"] {
        assert_eq!(client.request(method, json!({})).await.code(), -32601, "{method}");
    }
    let without = lane.host(client.server()).strange(Profile::default());
    let reply = without.request("server/discover", json!({})).await;
    assert_eq!(reply.code_at(400), -32602, "it lacks what makes it a modern request");
    let message = reply.message();
    assert!(message.contains("io.modelcontextprotocol/protocolVersion"), "{message}");
}
