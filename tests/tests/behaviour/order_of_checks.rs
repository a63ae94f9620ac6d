//! Which check counts when several fail: every pair of faults of every ladder.
//!
//! Spec: 2026-07-28 basic/versioning; basic/transports/streamable-http, "Server Validation"

use mcp_core::{HandlerError, Server, ServerBuilder, Tool};
use mcp_tests::{Client, Lane, Profile, lanes};
use mcp_wire::capability::ClientCapability;
use mcp_wire::{ErrorCode, RpcError};
use serde_json::{Value, json};

lanes! {
    everywhere {}
    modern "the legacy ladder is another" {
        of_two_faults_of_a_modern_request_the_earlier_one_counts,
        each_missing_part_of_the_metadata_is_invalid_params,
    }
    legacy "the modern ladder is another" {
        of_two_faults_of_a_legacy_request_the_earlier_one_counts,
    }
    http "the first checks are those of HTTP" {
        of_two_faults_of_an_http_request_the_earlier_one_counts,
    }
    http_modern "it takes a header that claims a version" {
        the_table_of_claims_and_headers,
    }
}

/// What can be wrong with a call, in the order in which it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Shape,
    Metadata,
    Header,
    Session,
    Version,
    Method,
    Mirror,
    Capability,
    Parameters,
}

fn server() -> ServerBuilder {
    let schema = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    });
    let tool = Tool::raw("t", schema, |_, _context| async {
        Err::<String, _>(HandlerError::rpc(RpcError::new(ErrorCode(42), "the handler was reached")))
    });
    Server::builder("s", "1").tool(tool.needs(ClientCapability::Roots))
}

/// A call with these faults: the body, and what to do to its headers.
fn call(lane: Lane, faults: &[Fault]) -> (Value, Vec<(&'static str, &'static str)>) {
    let has = |fault| faults.contains(&fault);
    let mut headers = vec![("mcp-param-region", "eu")];
    let mut params = json!({ "name": "t", "arguments": { "region": "eu" } });
    let mut body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call" });
    if lane.is_modern() {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": if has(Fault::Version) { "v999" } else { "2026-07-28" },
            "io.modelcontextprotocol/clientCapabilities": if has(Fault::Capability) { json!({}) } else { json!({ "roots": {} }) },
        });
        if has(Fault::Metadata) {
            params["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
        }
        if has(Fault::Parameters) {
            params["inputResponses"] = json!(7);
        }
    } else if has(Fault::Parameters) {
        params["arguments"] = json!([]);
    }
    if has(Fault::Method) {
        body["method"] = json!("no/such");
    }
    if has(Fault::Shape) {
        body["jsonrpc"] = json!("1.0");
    }
    if has(Fault::Header) {
        headers.push(("mcp-method", "tools/list"));
    }
    if has(Fault::Mirror) {
        headers[0] = ("mcp-param-region", "us");
    }
    if has(Fault::Session) {
        headers.push(("mcp-session-id", "0123456789"));
    }
    body["params"] = params;
    (body, headers)
}

/// Code and status of the answer, and whether it names missing capabilities.
async fn outcome(client: &Client, faults: &[Fault]) -> (i64, Option<u16>, bool) {
    let (body, headers) = call(client.lane(), faults);
    if !client.lane().is_http() {
        let reply = client.raw(body.to_string()).await;
        return (reply.code(), reply.status, !reply.error()["data"]["requiredCapabilities"].is_null());
    }
    let answer = client
        .http(http::Method::POST, body.to_string(), |edited| {
            for (name, value) in headers {
                edited.insert(name, value.parse().unwrap());
            }
        })
        .await;
    assert_eq!(answer.json()["id"], 1, "every error echoes the id that could be read");
    (answer.code(), Some(answer.status), !answer.json()["error"]["data"]["requiredCapabilities"].is_null())
}

/// An answer as it is over the client's carrier: a pipe has no statuses.
fn over(client: &Client, (code, status, names): (i64, u16, bool)) -> (i64, Option<u16>, bool) {
    (code, (!client.lane().is_stdio()).then_some(status), names)
}

/// Tries every pair of faults, each of which alone gives its own answer, and no fault.
async fn check_ladder(client: &Client, ladder: &[(Fault, (i64, u16, bool))]) {
    for (index, (first, answer)) in ladder.iter().enumerate() {
        let answer = over(client, *answer);
        assert_eq!(outcome(client, &[*first]).await, answer, "{first:?} alone");
        for (second, _) in &ladder[index + 1..] {
            assert_eq!(outcome(client, &[*first, *second]).await, answer, "{first:?} before {second:?}");
        }
    }
}

/// Checklist 2 and 3 among others: the ladder of a modern request, row by row and pair by pair.
async fn of_two_faults_of_a_modern_request_the_earlier_one_counts(lane: Lane) {
    let client = lane.connect(server()).await;
    assert_eq!(outcome(&client, &[]).await, over(&client, (42, 200, false)));
    let mut ladder = vec![
        (Fault::Shape, (-32600, 400, false)),
        (Fault::Metadata, (-32602, 400, false)),
        (Fault::Header, (-32020, 400, false)),
        (Fault::Version, (-32022, 400, false)),
        (Fault::Method, (-32601, 404, false)),
        (Fault::Mirror, (-32020, 400, false)),
        (Fault::Capability, (-32021, 400, true)),
        (Fault::Parameters, (-32602, 200, false)),
    ];
    if !lane.is_http() {
        ladder.retain(|(fault, _)| !matches!(fault, Fault::Header | Fault::Mirror));
    }
    check_ladder(&client, &ladder).await;
}

async fn of_two_faults_of_a_legacy_request_the_earlier_one_counts(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let able = host.connect().await;
    assert_eq!(outcome(&able, &[]).await, over(&able, (42, 200, false)));
    let mut ladder = vec![
        (Fault::Shape, (-32600, 400, false)),
        (Fault::Session, (-32600, 404, false)),
        (Fault::Method, (-32601, 200, false)),
        (Fault::Parameters, (-32602, 200, false)),
    ];
    if !lane.is_http() {
        ladder.retain(|(fault, _)| *fault != Fault::Session);
    }
    check_ladder(&able, &ladder).await;
    // What a client can do is said once, so that a client who cannot has this fault always.
    let unable = host.connect_as(Profile::unable()).await;
    let refused = outcome(&unable, &[]).await;
    assert_eq!(refused, over(&unable, (-32602, 200, true)), "the legacy code of a missing capability");
    assert_eq!(outcome(&unable, &[Fault::Parameters]).await, refused);
    assert_eq!(outcome(&unable, &[Fault::Method]).await.0, -32601);
}

/// Checklist 2: R5 header and no `_meta` gets 400 -32602, whatever the method.
async fn each_missing_part_of_the_metadata_is_invalid_params(lane: Lane) {
    let client = lane.connect(server()).await;
    let whole = client.enveloped(json!({}))["_meta"].clone();
    let with = |key: &str, value: Option<Value>| {
        let mut meta = whole.clone();
        match value {
            Some(value) => meta[format!("io.modelcontextprotocol/{key}")] = value,
            None => drop(meta.as_object_mut().unwrap().remove(&format!("io.modelcontextprotocol/{key}"))),
        }
        meta
    };
    let mut bad = vec![
        with("clientCapabilities", None),
        with("clientCapabilities", Some(json!(null))),
        with("clientCapabilities", Some(json!([]))),
        with("clientCapabilities", Some(json!("all"))),
        with("clientCapabilities", Some(json!({ "roots": 7 }))),
        with("protocolVersion", Some(json!(20260728))),
        with("protocolVersion", Some(json!(null))),
        with("protocolVersion", Some(json!({}))),
        with("clientInfo", Some(json!("me"))),
        with("clientInfo", Some(json!([]))),
        with("logLevel", Some(json!("loud"))),
        with("logLevel", Some(json!(7))),
        json!([]),
        json!("x"),
    ];
    for token in [json!(1.5), json!({}), json!(true), json!([])] {
        let mut meta = whole.clone();
        meta["progressToken"] = token;
        bad.push(meta);
    }
    if lane.is_http() {
        // Without a header these are the legacy era's; the header alone never selects it.
        bad.extend([json!({}), json!(null), with("protocolVersion", None)]);
    }
    for method in ["server/discover", "tools/list", "tools/call", "initialize", "no/such", ""] {
        for meta in &bad {
            let frame = json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": { "_meta": meta } });
            let reply = client.raw(frame.to_string()).await;
            assert_eq!(
                (reply.code_at(400), &reply.response["id"]),
                (-32602, &json!(3)),
                "{method} {meta}"
            );
        }
    }
}

/// What can be wrong with a request before its body is read, in the order in which it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum HttpFault {
    Host,
    Origin,
    Verb,
    Credentials,
    ContentType,
    Accept,
    TwoVersions,
    Body,
}

async fn of_two_faults_of_an_http_request_the_earlier_one_counts(lane: Lane) {
    let client = lane.connect(server()).await;
    let status = async |faults: &[HttpFault]| {
        let has = |fault| faults.contains(&fault);
        let verb = if has(HttpFault::Verb) { http::Method::PUT } else { http::Method::POST };
        let body = if has(HttpFault::Body) {
            "{".to_owned()
        } else {
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": client.enveloped(json!({})) })
                .to_string()
        };
        let answer = client
            .http(verb, body, |headers| {
                let mut put = |name: &'static str, value: &'static str| {
                    headers.insert(name, http::HeaderValue::from_static(value));
                };
                if has(HttpFault::Host) {
                    put("host", "evil.example.com");
                }
                if has(HttpFault::Origin) {
                    put("origin", "https://evil.example.com");
                }
                if has(HttpFault::Credentials) {
                    put("authorization", "Basic eDp5");
                }
                if has(HttpFault::ContentType) {
                    put("content-type", "text/plain");
                }
                if has(HttpFault::Accept) {
                    put("accept", "text/html");
                }
                put("mcp-method", "tools/list");
                put("mcp-protocol-version", client.lane().revision().as_str());
                if has(HttpFault::TwoVersions) {
                    headers.append("mcp-protocol-version", http::HeaderValue::from_static("2025-06-18"));
                }
            })
            .await;
        answer.status
    };
    assert_eq!(status(&[]).await, 200);
    let ladder = [
        (HttpFault::Host, 403),
        (HttpFault::Origin, 403),
        (HttpFault::Verb, 405),
        (HttpFault::Credentials, 401),
        (HttpFault::ContentType, 415),
        (HttpFault::Accept, 406),
        (HttpFault::TwoVersions, 400),
        (HttpFault::Body, 400),
    ];
    for (index, (first, expected)) in ladder.iter().enumerate() {
        assert_eq!(status(&[*first]).await, *expected, "{first:?} alone");
        for (second, _) in &ladder[index + 1..] {
            assert_eq!(status(&[*first, *second]).await, *expected, "{first:?} before {second:?}");
        }
    }
}

/// Checklist 3: header R5 and body version `v999` gets -32020, while header and body both `v999` get -32022 listing
/// versions. With its neighbours: the whole table of claims and headers.
async fn the_table_of_claims_and_headers(lane: Lane) {
    let client = lane.connect(server()).await;
    let modern = Some("2026-07-28");
    let outcome = async |claim: Option<Value>, header: Option<&'static str>, method: &str| {
        let mut params = client.enveloped(json!({}));
        match claim {
            Some(claim) => params["_meta"]["io.modelcontextprotocol/protocolVersion"] = claim,
            None => drop(params.as_object_mut().unwrap().remove("_meta")),
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = client
            .http(http::Method::POST, body.to_string(), |headers| {
                headers.remove("mcp-protocol-version");
                if let Some(header) = header {
                    headers.insert("mcp-protocol-version", http::HeaderValue::from_static(header));
                }
            })
            .await;
        let code = answer.json()["error"]["code"].as_i64().unwrap_or_default();
        if code == -32022 {
            assert_eq!(answer.json()["error"]["data"]["supported"][0], "2026-07-28");
        }
        (answer.status, code)
    };
    let list = "tools/list";
    for (row, claim, header, method, expected) in [
        (1, Some(json!("2026-07-28")), modern, list, (200, 0)),
        (2, Some(json!("2026-07-28")), None, list, (400, -32020)),
        (2, Some(json!("v999")), None, list, (400, -32020)),
        (3, Some(json!("v999")), modern, list, (400, -32020)),
        (3, Some(json!("2026-07-28")), Some("v999"), list, (400, -32020)),
        (3, Some(json!("2026-07-28")), Some("2025-11-25"), list, (400, -32020)),
        (4, Some(json!("v999")), Some("v999"), list, (400, -32022)),
        (5, Some(json!(7)), modern, list, (400, -32602)),
        (5, Some(json!(7)), None, list, (400, -32602)),
        (6, Some(json!("2025-11-25")), Some("2025-11-25"), list, (400, -32600)),
        (6, Some(json!("2025-11-25")), None, list, (400, -32600)),
        (7, Some(json!("2025-11-25")), modern, list, (400, -32020)),
        (8, None, modern, list, (400, -32602)),
        (8, None, modern, "server/discover", (400, -32602)),
        (8, None, modern, "initialize", (400, -32602)),
        (8, None, modern, "no/such", (400, -32602)),
        (9, None, None, "initialize", (200, -32602)),
        (9, None, Some("2025-11-25"), "initialize", (200, -32602)),
        (11, None, None, "server/discover", (400, -32602)),
        (11, None, None, "subscriptions/listen", (400, -32602)),
        (11, None, Some("2025-11-25"), "tasks/update", (400, -32602)),
        (12, None, None, list, (400, -32600)),
        (13, None, Some("v999"), list, (400, -32022)),
    ] {
        assert_eq!(outcome(claim.clone(), header, method).await, expected, "row {row}: {claim:?} {header:?} {method}");
    }
}
