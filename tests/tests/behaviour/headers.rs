//! What HTTP adds to a message: headers that repeat it, kinds of content, origins, methods.
//!
//! Spec: 2026-07-28 basic/transports/streamable-http, "Standard Headers" and "Security Warning"

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use mcp_core::{
    HandlerError, NoArguments, Prompt, PromptReply, RequestContext, Resource, Server, ServerBuilder, Tool,
};
use mcp_tests::{Client, HttpAnswer, Lane, Profile, http_config, lanes};
use mcp_wire::Revision;
use serde_json::{Value, json};

lanes! {
    everywhere {}
    http_modern "only modern requests repeat themselves in headers" {
        names_of_headers_have_no_case_and_values_no_padding,
        a_header_that_is_missing_or_differs_is_refused,
        a_name_in_base64_is_decoded_before_it_is_compared,
        a_header_that_is_not_asked_for_is_ignored,
        a_repeated_header_is_refused,
        annotated_arguments_are_repeated_too,
        no_modern_response_carries_a_session,
        where_only_the_modern_era_is_served_there_is_only_post,
        a_scope_that_is_lacking_is_named,
        each_method_with_a_target_repeats_it,
    }
    http_legacy "the modern era has no standalone stream" {
        a_standalone_stream_needs_a_client_that_takes_streams,
    }
    http "there are no headers in memory" {
        kinds_of_content_are_compared_as_media_types,
        the_endpoint_is_served_with_and_without_a_slash,
        a_strange_origin_is_refused_whatever_the_method,
        an_origin_on_this_machine_is_answered,
        whoever_is_unknown_is_challenged,
        a_stream_tells_proxies_to_let_it_through,
    }
}

fn server() -> ServerBuilder {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": { "count": { "type": "integer", "x-mcp-header": "Count" } } },
            "flag": { "type": "boolean", "x-mcp-header": "Flag" },
        },
    });
    Server::builder("s", "1")
        .tool(Tool::typed("plain", |_: NoArguments, _context: RequestContext| async { Ok::<_, HandlerError>("done") }))
        .tool(Tool::raw("mirrored", schema, |_, _context| async { Ok::<_, HandlerError>("done") }))
        .resource(Resource::text("test://größe", "size", "x"))
}

fn body(client: &Client, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": client.enveloped(params) }).to_string()
}

async fn post(client: &Client, method: &str, params: Value, edit: impl FnOnce(&mut HeaderMap)) -> HttpAnswer {
    client.http(Method::POST, body(client, method, params), edit).await
}

/// Status and code; the code of a success is 0.
fn outcome(answer: &HttpAnswer) -> (u16, i64) {
    (answer.status, answer.json()["error"]["code"].as_i64().unwrap_or_default())
}

const REFUSED: (u16, i64) = (400, -32020);
const SERVED: (u16, i64) = (200, 0);

fn plain() -> Value {
    json!({ "name": "plain" })
}

/// Checklist 7: `mcp-METHOD:  tools/call ` (odd case, padded) is accepted; `Tools/Call` is refused with -32020.
async fn names_of_headers_have_no_case_and_values_no_padding(lane: Lane) {
    let client = lane.connect(server()).await;
    for (name, value, expected) in [
        ("mcp-METHOD", " \ttools/call \t", SERVED),
        ("MCP-PROTOCOL-VERSION", "  2026-07-28  ", SERVED),
        ("Mcp-NAME", " plain ", SERVED),
        ("mcp-method", "Tools/Call", REFUSED),
        ("mcp-name", "Plain", REFUSED),
        ("mcp-method", "tools/ call", REFUSED),
    ] {
        let answer = post(&client, "tools/call", plain(), |headers| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.insert(name, HeaderValue::from_static(value));
        });
        assert_eq!(outcome(&answer.await), expected, "{name}: {value:?}");
    }
}

async fn a_header_that_is_missing_or_differs_is_refused(lane: Lane) {
    let client = lane.connect(server()).await;
    for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let missing = post(&client, "tools/call", plain(), |headers| drop(headers.remove(name))).await;
        assert_eq!(outcome(&missing), REFUSED, "{name} missing");
        assert!(missing.json()["error"]["message"].as_str().unwrap().contains(name), "{}", missing.body);
        for value in ["", "x", "2025-11-25", "=?base64?cGxhaW4?="] {
            let differs = post(&client, "tools/call", plain(), |headers| {
                headers.insert(name, HeaderValue::from_static(value));
            });
            assert_eq!(outcome(&differs.await), REFUSED, "{name}: {value}");
        }
    }
    let raw = post(&client, "tools/call", plain(), |headers| {
        headers.insert("mcp-name", HeaderValue::from_bytes(b"pl\xe4in").unwrap());
    });
    assert_eq!(outcome(&raw.await), REFUSED);
}

/// Checklist 8: a base64 sentinel in `Mcp-Name` is decoded before comparing; a broken one gives 400 -32020.
async fn a_name_in_base64_is_decoded_before_it_is_compared(lane: Lane) {
    let client = lane.connect(server()).await;
    // The client of these tests writes what no header can hold in base64 already.
    let reply = client.request("resources/read", json!({ "uri": "test://größe" })).await;
    assert_eq!(reply.result()["contents"][0]["text"], "x");
    for (value, expected) in [
        ("=?base64?cGxhaW4=?=", SERVED),
        ("=?base64?cGxhaW4?=", REFUSED),
        ("=?base64?cGxh#W4=?=", REFUSED),
        ("=?base64?/w==?=", REFUSED),
        ("=?base64?b3RoZXI=?=", REFUSED),
        ("=?BASE64?cGxhaW4=?=", REFUSED),
        ("=?base64?cGxhaW4=", REFUSED),
        ("cGxhaW4=", REFUSED),
    ] {
        let answer = post(&client, "tools/call", plain(), |headers| {
            headers.insert("mcp-name", HeaderValue::from_static(value));
        });
        assert_eq!(outcome(&answer.await), expected, "{value}");
    }
}

/// Checklist 8, for every other method whose target is repeated.
async fn each_method_with_a_target_repeats_it(lane: Lane) {
    let server = server()
        .prompt(Prompt::new("p", |_, _| async { Ok(PromptReply::user("x")) }))
        .resource(Resource::text("test://a", "a", "x"))
        .extension(mcp_tasks::Tasks::new());
    let mut profile = Profile::default();
    profile.capabilities["extensions"] = json!({ mcp_tasks::ID: {} });
    let client = lane.host(&server.build().unwrap()).connect_as(profile).await;
    let task = |id: &str| json!({ "taskId": id, "inputResponses": {} });
    for (method, params, name, encoded, reached) in [
        ("prompts/get", json!({ "name": "p" }), "p", "=?base64?cA==?=", SERVED),
        ("resources/read", json!({ "uri": "test://a" }), "test://a", "=?base64?dGVzdDovL2E=?=", SERVED),
        ("tasks/get", task("t-1"), "t-1", "=?base64?dC0x?=", (200, -32602)),
        ("tasks/update", task("t-1"), "t-1", "=?base64?dC0x?=", (200, -32602)),
        ("tasks/cancel", task("t-1"), "t-1", "=?base64?dC0x?=", (200, -32602)),
    ] {
        for (values, expected) in [
            (vec![name], reached),
            (vec![encoded], reached),
            (vec![], REFUSED),
            (vec!["other"], REFUSED),
            (vec![""], REFUSED),
            (vec![name, name], REFUSED),
            (vec!["=?base64?#?="], REFUSED),
            (vec!["=?base64?b3RoZXI=?="], REFUSED),
        ] {
            let answer = post(&client, method, params.clone(), |headers| {
                headers.remove("mcp-name");
                for value in &values {
                    headers.append("mcp-name", HeaderValue::from_static(value));
                }
            });
            assert_eq!(outcome(&answer.await), expected, "{method} {values:?}");
        }
    }
}

async fn a_header_that_is_not_asked_for_is_ignored(lane: Lane) {
    let client = lane.connect(server()).await;
    let answer = post(&client, "tools/list", json!({}), |headers| {
        for (name, value) in [
            ("mcp-name", "anything"),
            ("mcp-param-region", "eu"),
            ("mcp-session-id", "0123"),
            ("last-event-id", "1-1"),
            ("mcp-unknown", "x"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
    });
    assert_eq!(outcome(&answer.await), SERVED);
    let answer = post(&client, "tools/call", plain(), |headers| {
        headers.insert("mcp-param-unknown", HeaderValue::from_static("x"));
    });
    assert_eq!(outcome(&answer.await), SERVED);
}

async fn a_repeated_header_is_refused(lane: Lane) {
    let client = lane.connect(server()).await;
    for (name, value) in [("mcp-method", "tools/call"), ("mcp-name", "plain"), ("mcp-protocol-version", "2026-07-28")] {
        let answer = post(&client, "tools/call", plain(), |headers| {
            headers.append(name, HeaderValue::from_static(value));
        });
        assert_eq!(outcome(&answer.await), REFUSED, "{name} twice, though equal");
    }
}

/// Checklist 9: `Mcp-Param-*` missing while the argument is present gives -32020; argument null without header succeeds.
async fn annotated_arguments_are_repeated_too(lane: Lane) {
    let client = lane.connect(server()).await;
    let mirrored = |arguments: Value| json!({ "name": "mirrored", "arguments": arguments });
    for (arguments, headers, expected) in [
        (json!({}), vec![], SERVED),
        (json!({ "region": null }), vec![], REFUSED_BY_SCHEMA),
        (json!({ "region": "eu" }), vec![("region", "eu")], SERVED),
        (json!({ "region": "eu" }), vec![("region", "=?base64?ZXU=?=")], SERVED),
        (json!({ "region": "" }), vec![("region", "")], SERVED),
        (json!({ "region": "eu" }), vec![], REFUSED),
        (json!({ "region": "eu" }), vec![("region", "EU")], REFUSED),
        (json!({ "region": "eu" }), vec![("region", "eu"), ("region", "eu")], REFUSED),
        (json!({}), vec![("region", "eu")], REFUSED),
        (json!({ "deep": { "count": 42 } }), vec![("count", "42")], SERVED),
        (json!({ "deep": { "count": 42 } }), vec![("count", "42.0")], SERVED),
        (json!({ "deep": { "count": 42 } }), vec![("count", "43")], REFUSED),
        (json!({ "deep": { "count": 42 } }), vec![], REFUSED),
        (json!({ "count": 42 }), vec![], SERVED),
        (json!({ "flag": true }), vec![("flag", "true")], SERVED),
        (json!({ "flag": true }), vec![("flag", "True")], REFUSED),
        (json!({ "flag": false }), vec![("flag", "true")], REFUSED),
    ] {
        let answer = post(&client, "tools/call", mirrored(arguments.clone()), |edited| {
            for (name, value) in &headers {
                let name = HeaderName::try_from(format!("mcp-param-{name}")).unwrap();
                edited.append(name, HeaderValue::from_static(value));
            }
        });
        assert_eq!(outcome(&answer.await), expected, "{arguments} {headers:?}");
    }
}

/// `null` is no string to the schema, which the model is told; to the headers it is as good as absent.
const REFUSED_BY_SCHEMA: (u16, i64) = (200, 0);

/// Checklist 12: GET and DELETE answer 405 when only R5 is served, and no response ever carries a session id. (Here: the
/// second half.)
async fn no_modern_response_carries_a_session(lane: Lane) {
    let client = lane.connect(server()).await;
    for (method, params) in
        [("server/discover", json!({})), ("tools/call", plain()), ("initialize", json!({})), ("no/such", json!({}))]
    {
        let answer = post(&client, method, params, |headers| {
            headers.insert("mcp-session-id", HeaderValue::from_static("0123"));
        });
        assert!(!answer.await.headers.contains_key("mcp-session-id"), "{method}");
    }
}

/// Checklist 12: GET and DELETE answer 405 when only R5 is served, and no response ever carries a session id. (Here: the
/// first half.)
async fn where_only_the_modern_era_is_served_there_is_only_post(lane: Lane) {
    let client = lane.connect(server().revisions([Revision::V2026_07_28])).await;
    for method in [Method::GET, Method::DELETE, Method::PUT, Method::HEAD] {
        let answer = client.http(method.clone(), "", |_| {}).await;
        assert_eq!(answer.status, 405, "{method}");
        let allowed = answer.headers["allow"].to_str().unwrap();
        assert!(allowed.contains("POST") && !allowed.contains("GET") && !allowed.contains("DELETE"), "{allowed}");
    }
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    });
    for (method, params) in [("initialize", hello), ("tools/list", json!({})), ("ping", json!({}))] {
        for declared in [None, Some("2025-11-25"), Some("2024-11-05")] {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let answer = client
                .http(Method::POST, body.to_string(), |headers| {
                    headers.remove("mcp-protocol-version");
                    if let Some(declared) = declared {
                        headers.insert("mcp-protocol-version", HeaderValue::from_static(declared));
                    }
                })
                .await;
            assert_eq!(outcome(&answer), (400, -32022), "{method} {declared:?}: {}", answer.body);
            assert_eq!(answer.json()["error"]["data"]["supported"], json!(["2026-07-28"]));
        }
    }
}

async fn a_scope_that_is_lacking_is_named(lane: Lane) {
    let tool = Tool::typed("admin", |_: NoArguments, _context: RequestContext| async { Ok::<_, HandlerError>("done") });
    let server = server().tool(tool.scopes(["admin", "write"])).build().unwrap();
    let host = lane.host(&server);
    for (scopes, allowed) in [(&["admin", "write", "more"][..], true), (&["admin"][..], false), (&[][..], false)] {
        let client = host.connect_as(Profile { scopes, ..Profile::default() }).await;
        let answer = post(&client, "tools/call", json!({ "name": "admin" }), |_| {}).await;
        assert_eq!(answer.status, if allowed { 200 } else { 403 }, "{scopes:?}");
        if !allowed {
            let challenge = answer.headers["www-authenticate"].to_str().unwrap();
            assert!(challenge.contains("insufficient_scope") && challenge.contains("admin write"), "{challenge}");
            assert_eq!(answer.json()["id"], 1);
        }
    }
}

/// Field case 25: media types have no case and carry parameters and weights.
async fn kinds_of_content_are_compared_as_media_types(lane: Lane) {
    let client = lane.connect(server()).await;
    let list = |client: &Client| body(client, "tools/list", json!({}));
    for (accept, kind) in [
        (vec!["*/*"], Some("application/json")),
        (vec!["application/*, text/*"], Some("application/json")),
        (vec!["Application/JSON;q=0.9, Text/Event-Stream"], Some("text/event-stream")),
        (vec!["text/event-stream, application/json"], Some("text/event-stream")),
        (vec!["text/event-stream;q=0.5, application/json"], Some("application/json")),
        (vec!["application/json", "text/event-stream"], Some("application/json")),
        (vec![], Some("application/json")),
        (vec!["application/json"], Some("application/json")),
        (vec!["text/event-stream"], Some("text/event-stream")),
        (vec!["application/json;q=0, text/event-stream"], Some("text/event-stream")),
        (vec!["text/html"], None),
        (vec!["application/json;q=0"], None),
        (vec!["application/jsonp"], None),
    ] {
        let answer = client
            .http(Method::POST, list(&client), |headers| {
                headers.remove("accept");
                for value in &accept {
                    headers.append("accept", HeaderValue::from_static(value));
                }
            })
            .await;
        match kind {
            Some(kind) => {
                assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (200, kind), "{accept:?}")
            }
            None => assert_eq!(outcome(&answer), (406, -32600), "{accept:?}"),
        }
    }
    for (kind, fits) in [
        (Some("application/json;charset=UTF-8"), true),
        (Some("APPLICATION/JSON"), true),
        (Some(" application/json ; charset=utf-8"), true),
        (Some("application/jsonp"), false),
        (Some("text/plain"), false),
        (Some("application/x-www-form-urlencoded"), false),
        (None, false),
    ] {
        let answer = client
            .http(Method::POST, list(&client), |headers| {
                headers.remove("content-type");
                if let Some(kind) = kind {
                    headers.insert("content-type", HeaderValue::from_static(kind));
                }
            })
            .await;
        assert_eq!(outcome(&answer), if fits { SERVED } else { (415, -32600) }, "{kind:?}");
    }
}

/// Field case 25, for streams: only what may be a stream gets one.
async fn a_standalone_stream_needs_a_client_that_takes_streams(lane: Lane) {
    let client = lane.connect(server()).await;
    for (accept, taken) in [
        (&["*/*"][..], true),
        (&["text/*"], true),
        (&["Text/Event-Stream;q=0.1"], true),
        (&["application/json", "text/event-stream"], true),
        (&[], true),
        (&["application/json"], false),
        (&["text/html"], false),
        (&["text/event-stream;q=0"], false),
        (&["*/*, text/event-stream;q=0"], false),
        (&["text/event-streams"], false),
    ] {
        let edit = |headers: &mut HeaderMap| {
            headers.remove("accept");
            for value in accept {
                headers.append("accept", HeaderValue::from_static(value));
            }
        };
        if taken {
            drop(client.stream(Method::GET, "", edit).await);
        } else {
            assert_eq!(outcome(&client.http(Method::GET, "", edit).await), (406, -32600), "{accept:?}");
        }
    }
}

/// Field case 27: both spellings are served directly, with no redirect; what only begins alike is somewhere else.
async fn the_endpoint_is_served_with_and_without_a_slash(lane: Lane) {
    let server = server().build().unwrap();
    for (config, path) in [
        (http_config(), "/mcp"),
        (http_config().path("/svc/mcp"), "/svc/mcp"),
        (http_config().path("/svc/mcp/").public_prefix("/public"), "/svc/mcp"),
    ] {
        let host = lane.host_as(&server, config);
        for spelling in [path.to_owned(), format!("{path}/"), format!("{path}?x=1"), format!("{path}/?x=1&y=/mcpx")] {
            let client = host.strange(Profile::default());
            let hello = json!({
                "protocolVersion": lane.revision().as_str(), "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
            });
            let (method, params) = lane.pick(("initialize", hello), ("tools/list", json!({})));
            let answer = client.http_at(&spelling, Method::POST, body(&client, method, params), |_| {}).await;
            assert_eq!(outcome(&answer), SERVED, "{spelling}: {}", answer.body);
            let Some(session) = answer.headers.get("mcp-session-id").cloned() else {
                assert!(lane.is_modern());
                continue;
            };
            let within = |headers: &mut HeaderMap| drop(headers.insert("mcp-session-id", session.clone()));
            drop(client.stream_at(&spelling, Method::GET, "", within).await);
            assert_eq!(client.http_at(&spelling, Method::DELETE, "", within).await.status, 204, "{spelling}");
            assert_eq!(client.http_at(&spelling, Method::DELETE, "", within).await.status, 404, "{spelling}");
        }
        let client = host.strange(Profile::default());
        let list = body(&client, "tools/list", json!({}));
        for other in [format!("{path}x"), format!("{path}/x"), format!("{path}//"), "/".to_owned(), format!("/x{path}")] {
            for method in [Method::POST, Method::GET, Method::DELETE] {
                assert_eq!(client.http_at(&other, method.clone(), list.clone(), |_| {}).await.status, 404, "{method} {other}");
            }
        }
    }
}

/// Checklist 19: an evil `Origin` gets 403 on POST, GET and DELETE.
async fn a_strange_origin_is_refused_whatever_the_method(lane: Lane) {
    let client = lane.connect(server()).await;
    for method in [Method::POST, Method::GET, Method::DELETE, Method::OPTIONS, Method::PUT] {
        for (name, value) in [
            ("origin", "https://evil.example.com"),
            ("origin", "http://localhost.evil.example.com"),
            ("origin", "null"),
            ("origin", ""),
            ("host", "evil.example.com"),
            ("host", "localhost.evil.example.com:3000"),
        ] {
            let answer = client
                .http(method.clone(), body(&client, "tools/list", json!({})), |headers| {
                    headers.insert(name, HeaderValue::from_static(value));
                })
                .await;
            assert_eq!(answer.status, 403, "{method} from {name} {value}");
            assert!(!answer.headers.contains_key("access-control-allow-origin"));
        }
    }
}

async fn an_origin_on_this_machine_is_answered(lane: Lane) {
    let client = lane.connect(server()).await;
    for origin in ["http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:3000", "https://localhost"] {
        let with_origin = |headers: &mut HeaderMap| {
            headers.insert("origin", HeaderValue::from_static(origin));
        };
        let answer = client.http(Method::POST, body(&client, "tools/list", json!({})), with_origin).await;
        assert_eq!((answer.status, answer.headers["access-control-allow-origin"].to_str().unwrap()), (200, origin));
        let asked = client
            .http(Method::OPTIONS, "", |headers| {
                with_origin(headers);
                headers.remove("authorization");
                headers.insert("access-control-request-method", HeaderValue::from_static("POST"));
            })
            .await;
        assert_eq!((asked.status, asked.headers["access-control-allow-origin"].to_str().unwrap()), (204, origin));
        let allowed = asked.headers["access-control-allow-headers"].to_str().unwrap();
        for name in
            ["content-type", "authorization", "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"]
        {
            assert!(allowed.contains(name), "{name}: {allowed}");
        }
    }
}

async fn whoever_is_unknown_is_challenged(lane: Lane) {
    let client = lane.connect(server()).await;
    for method in [Method::POST, Method::GET, Method::DELETE] {
        for credentials in [None, Some("Basic eDp5"), Some("Bearer "), Some("Bearer")] {
            let answer = client
                .http(method.clone(), body(&client, "tools/list", json!({})), |headers| {
                    headers.remove("authorization");
                    if let Some(credentials) = credentials {
                        headers.insert("authorization", HeaderValue::from_static(credentials));
                    }
                })
                .await;
            assert_eq!(answer.status, 401, "{method} {credentials:?}");
            assert!(answer.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
        }
    }
}

async fn a_stream_tells_proxies_to_let_it_through(lane: Lane) {
    let client = lane.connect(server()).await;
    let answer = client
        .http(Method::POST, body(&client, "tools/call", plain()), |headers| {
            headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        })
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["cache-control"], "no-cache");
    assert_eq!(answer.headers["x-accel-buffering"], "no");
}
