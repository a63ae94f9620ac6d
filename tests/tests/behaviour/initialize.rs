//! The handshake of the legacy era, and what the modern era makes of it.
//!
//! Spec: 2025-11-25 basic/lifecycle, "Initialization"; 2026-07-28 basic/versioning

use mcp_core::{Offer, Prompt, PromptReply, Resource, Server, ServerBuilder, completer_of};
use mcp_tests::{Lane, Profile, lanes};
use mcp_wire::Revision;
use mcp_wire::types::{Icon, Implementation};
use serde_json::{Value, json};

lanes! {
    everywhere {
        a_method_that_is_not_advertised_does_not_exist,
    }
    legacy "the modern era has no handshake" {
        a_known_revision_is_agreed_on,
        an_unknown_revision_is_answered_with_the_newest_that_has_a_handshake,
        a_revision_that_is_not_served_is_answered_with_one_that_is,
        a_handshake_without_its_parameters_is_refused_and_leaves_nothing,
        a_server_of_the_modern_era_alone_refuses_and_names_its_versions,
        each_revision_is_told_what_it_knows_of_the_server,
        each_revision_is_told_the_capabilities_it_knows,
        what_is_unknown_in_a_handshake_is_ignored,
        the_notice_that_ends_the_handshake_may_lack_parameters,
    }
    connection_legacy "over HTTP a second handshake opens a second session" {
        a_connection_has_one_handshake,
    }
    connection_legacy "over HTTP nothing but a handshake goes without a session, ping included" {
        before_the_handshake_there_is_only_ping,
    }
    http_legacy "only HTTP names sessions" {
        nothing_but_a_handshake_goes_without_a_session,
        a_session_is_its_owners_alone,
        an_ended_session_is_unknown,
        of_many_ended_sessions_nothing_is_left,
    }
    modern "in the legacy era these methods exist" {
        methods_of_the_handshake_do_not_exist,
    }
    connection "it takes two eras on one connection" {
        both_eras_go_over_one_connection,
    }
}

fn server() -> ServerBuilder {
    Server::builder("s", "1").resource(Resource::text("test://a", "a", "text"))
}

fn params(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } })
}

async fn a_known_revision_is_agreed_on(lane: Lane) {
    let server = server().instructions("Read before use").build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).strange(Profile::default());
        let reply = client.request("initialize", params(lane.revision().as_str())).await;
        assert_eq!(reply.result()["protocolVersion"], lane.revision().as_str());
        assert_eq!(reply.result()["serverInfo"], json!({ "name": "s", "version": "1" }));
        assert_eq!(reply.result()["instructions"], "Read before use");
        client.notify("notifications/initialized", json!({})).await;
        assert_eq!(client.request("ping", json!({})).await.result(), &json!({}));
    }
}

async fn an_unknown_revision_is_answered_with_the_newest_that_has_a_handshake(lane: Lane) {
    let server = server().build().unwrap();
    for unknown in ["1.0", "", "2024-11-06", "2026-07-28", "2099-01-01", "2025-06-18 "] {
        let client = lane.host(&server).strange(Profile::default());
        let reply = client.request("initialize", params(unknown)).await;
        assert_eq!(reply.result()["protocolVersion"], "2025-11-25", "{unknown:?}");
    }
}

async fn a_revision_that_is_not_served_is_answered_with_one_that_is(lane: Lane) {
    let server = server().revisions([Revision::V2025_03_26, Revision::V2025_06_18]).build().unwrap();
    for (asked, agreed) in [("2025-03-26", "2025-03-26"), ("2025-11-25", "2025-06-18"), ("2024-11-05", "2025-06-18")] {
        let client = lane.host(&server).strange(Profile::default());
        assert_eq!(client.request("initialize", params(asked)).await.result()["protocolVersion"], agreed);
    }
}

async fn a_handshake_without_its_parameters_is_refused_and_leaves_nothing(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let client = host.strange(Profile::default());
    let whole = params("2025-11-25");
    let mut broken = vec![json!({})];
    for member in ["protocolVersion", "capabilities", "clientInfo"] {
        let mut lacking = whole.clone();
        lacking.as_object_mut().unwrap().remove(member);
        broken.push(lacking);
        for wrong in [json!(null), json!(7), json!([])] {
            let mut wrongly = whole.clone();
            wrongly[member] = wrong;
            broken.push(wrongly);
        }
    }
    for params in broken {
        let reply = client.request("initialize", params.clone()).await;
        assert_eq!(reply.code(), -32602, "{params}");
        assert!(!reply.headers.iter().any(|(name, _)| name == "mcp-session-id"), "{params}");
    }
    let no_params = client.raw(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#).await;
    assert_eq!(no_params.code(), -32602);
    if lane.is_http() {
        assert_eq!(host.open_sessions(), 0);
    }
    assert!(client.request("initialize", whole).await.response.get("result").is_some(), "and then it works");
}

async fn a_server_of_the_modern_era_alone_refuses_and_names_its_versions(lane: Lane) {
    let server = server().revisions([Revision::V2026_07_28]).build().unwrap();
    let client = lane.host(&server).strange(Profile::default());
    let reply = client.request("initialize", params("2025-11-25")).await;
    assert_eq!(reply.code(), -32022);
    assert_eq!(reply.error()["data"], json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" }));
}

/// Checklist 38: an R3 session never receives `icons`, `execution`, titled enums, priming events or `resultType`. (Here:
/// what the server says of itself.)
async fn each_revision_is_told_what_it_knows_of_the_server(lane: Lane) {
    let info = Implementation::new("s", "1")
        .with_title("Server")
        .with_description("Serves")
        .with_website_url("https://example.com")
        .with_icons(vec![Icon::new("https://example.com/i.png")]);
    let server = server().info(info).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).strange(Profile::default());
        let reply = client.request("initialize", params(lane.revision().as_str())).await;
        let info = &reply.result()["serverInfo"];
        let rules = lane.revision().rules();
        for (member, has) in [
            ("name", true),
            ("version", true),
            ("title", rules.structured),
            ("description", rules.icons),
            ("websiteUrl", rules.icons),
            ("icons", rules.icons),
        ] {
            assert_eq!(info.get(member).is_some(), has, "{member} in {lane:?}");
        }
    }
}

async fn each_revision_is_told_the_capabilities_it_knows(lane: Lane) {
    let prompt = Prompt::new("p", |_, _| async { Ok(PromptReply::user("x")) })
        .required("a", "one")
        .complete("a", completer_of(["x"]));
    let server = server().prompt(prompt).offer(Offer::Tools).build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).strange(Profile::default());
        let reply = client.request("initialize", params(lane.revision().as_str())).await;
        let mut expected = json!({
            "logging": {},
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "completions": {},
        });
        if !lane.revision().rules().tool_annotations {
            expected.as_object_mut().unwrap().remove("completions");
        }
        assert_eq!(reply.result()["capabilities"], expected, "{lane:?}");
    }
}

/// Checklist 21: a method not advertised in capabilities gets -32601 even though a handler exists.
async fn a_method_that_is_not_advertised_does_not_exist(lane: Lane) {
    let client = lane.connect(server()).await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "x" })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "x" })),
        ("completion/complete", json!({})),
        ("tasks/get", json!({ "taskId": "x" })),
        ("no/such", json!({})),
        ("Resources/List", json!({})),
        ("", json!({})),
        ("notifications/initialized", json!({})),
        ("sampling/createMessage", json!({})),
        ("roots/list", json!({})),
    ] {
        let reply = client.request(method, params).await;
        assert_eq!(reply.code(), -32601, "{method}");
        assert!(reply.has_status(lane.pick(200, 404)), "{method}");
    }
    assert!(client.request("resources/list", json!({})).await.response.get("result").is_some());
}

async fn what_is_unknown_in_a_handshake_is_ignored(lane: Lane) {
    let client = lane.host(&server().build().unwrap()).strange(Profile::default());
    let reply = client
        .request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "sampling": { "new": 1 }, "flying": { "high": true }, "experimental": { "x": {} } },
                "clientInfo": { "name": "c", "version": "1", "mood": "good" },
                "more": [],
                "_meta": { "own": 1 },
            }),
        )
        .await;
    assert_eq!(reply.result()["protocolVersion"], "2025-11-25");
}

/// Field case 29: notifications without `params`, with null ones and with empty ones are all accepted.
async fn the_notice_that_ends_the_handshake_may_lack_parameters(lane: Lane) {
    let server = server().build().unwrap();
    for params in ["", r#","params":null"#, r#","params":{}"#] {
        let client = lane.host(&server).strange(Profile::default());
        client.request("initialize", self::params("2025-11-25")).await;
        let notice = format!(r#"{{"jsonrpc":"2.0","method":"notifications/initialized"{params}}}"#);
        client.start_raw(notice).silence().await;
        assert_eq!(client.request("ping", json!({})).await.result(), &json!({}));
    }
}

async fn a_connection_has_one_handshake(lane: Lane) {
    let client = lane.connect(server()).await;
    assert_eq!(client.request("initialize", params("2025-03-26")).await.code(), -32600);
    assert_eq!(client.request("ping", json!({})).await.result(), &json!({}), "the first one stands");
}

async fn before_the_handshake_there_is_only_ping(lane: Lane) {
    let client = lane.host(&server().build().unwrap()).strange(Profile::default());
    assert_eq!(client.request("ping", json!({})).await.result(), &json!({}));
    for (method, code) in [
        ("resources/list", -32600),
        ("no/such", -32600),
        ("server/discover", -32602),
        ("subscriptions/listen", -32602),
        ("tasks/update", -32602),
    ] {
        assert_eq!(client.request(method, json!({})).await.code(), code, "{method}");
    }
    client.notify("notifications/initialized", json!({})).await;
    assert_eq!(client.request("resources/list", json!({})).await.code(), -32600, "the notice alone opens nothing");
    assert!(client.request("initialize", params("2025-11-25")).await.response.get("result").is_some());
}

/// Checklist 32: a session id of another principal and an unknown one both give 404, a missing one gives 400. (Here: the
/// missing one.)
async fn nothing_but_a_handshake_goes_without_a_session(lane: Lane) {
    let client = lane.host(&server().build().unwrap()).strange(Profile::default());
    for (method, code) in [
        ("ping", -32600),
        ("resources/list", -32600),
        ("no/such", -32600),
        ("server/discover", -32602),
        ("subscriptions/listen", -32602),
        ("tasks/update", -32602),
    ] {
        let reply = client.request(method, json!({})).await;
        assert_eq!(reply.code_at(400), code, "{method}");
    }
    for verb in [http::Method::GET, http::Method::DELETE] {
        let answer = client.http(verb.clone(), "", |_| {}).await;
        assert_eq!((answer.status, answer.code()), (400, -32600), "{verb}");
    }
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let answer = client.http(http::Method::POST, notice, |_| {}).await;
    assert_eq!(answer.status, 400);
    assert!(answer.json().get("id").is_none_or(Value::is_null), "{}", answer.body);
}

/// Checklist 32: a session id of another principal and an unknown one both give 404, a missing one gives 400. (Here: the
/// others, which have to look the same.)
async fn a_session_is_its_owners_alone(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(Profile::named("bob")).await);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{}}"#;
    let id_of_ann = ann.session_id();
    for verb in [http::Method::POST, http::Method::GET, http::Method::DELETE] {
        let with = async |id: String| {
            let mut answer = bob
                .http(verb.clone(), body, |headers| {
                    headers.insert("mcp-session-id", id.parse().unwrap());
                })
                .await;
            answer.headers.remove("date");
            answer
        };
        let (foreign, unknown) = (with(id_of_ann.clone()).await, with("0".repeat(id_of_ann.len())).await);
        assert_eq!(foreign.status, 404, "{verb}");
        assert_eq!(foreign, unknown, "{verb}: nobody can tell a foreign session from none");
    }
    assert!(ann.request("resources/list", json!({})).await.response.get("result").is_some());
}

/// Checklist 33: after DELETE the session answers 404 and its pending server requests fail. (Here: the first half; see
/// `ask.rs` for the second.) Field case 7: nothing of it is left.
async fn an_ended_session_is_unknown(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let client = host.connect().await;
    assert_eq!(host.open_sessions(), 1);
    assert_eq!(client.http(http::Method::DELETE, "", |_| {}).await.status, 204);
    assert_eq!(host.open_sessions(), 0);
    let reply = client.request("ping", json!({})).await;
    assert!(reply.has_status(404));
    for verb in [http::Method::DELETE, http::Method::GET] {
        assert_eq!(client.http(verb.clone(), "", |_| {}).await.status, 404, "{verb}");
    }
}

/// Field case 7: ending a session releases everything that was kept for it. (That memory does not grow is in the tests of
/// the sample server as a process.)
async fn of_many_ended_sessions_nothing_is_left(lane: Lane) {
    let server = server().build().unwrap();
    let host = lane.host(&server);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    mcp_tests::idle().await;
    let before = tasks();
    for round in 0..200 {
        let client = host.connect().await;
        if round % 2 == 0 {
            // An open stream is no reason to stay.
            let mut watch = client.watch(json!({ "resourceSubscriptions": ["test://a"] })).await;
            watch.is_quiet().await;
            server.resource_updated("test://a");
            assert_eq!(client.http(http::Method::DELETE, "", |_| {}).await.status, 204);
        } else {
            assert_eq!(client.http(http::Method::DELETE, "", |_| {}).await.status, 204);
        }
        assert_eq!(host.open_sessions(), 0);
    }
    mcp_tests::idle().await;
    assert_eq!(tasks(), before);
}

/// Checklist 1: `initialize` with a full R5 envelope and headers gets HTTP 404 and -32601. So does everything else that
/// the modern era dropped.
async fn methods_of_the_handshake_do_not_exist(lane: Lane) {
    let client = lane.connect(server()).await;
    for (method, params) in [
        ("initialize", params("2025-11-25")),
        ("ping", json!({})),
        ("logging/setLevel", json!({ "level": "info" })),
        ("resources/subscribe", json!({ "uri": "test://a" })),
        ("resources/unsubscribe", json!({ "uri": "test://a" })),
        ("tasks/list", json!({})),
        ("tasks/result", json!({ "taskId": "x" })),
    ] {
        let reply = client.request(method, params).await;
        assert_eq!(reply.code_at(404), -32601, "{method}");
    }
}

async fn both_eras_go_over_one_connection(lane: Lane) {
    let client = lane.connect(server()).await;
    let modern = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let frame = |id: i64, method: &str, params: &Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let handshake = client.raw_of(Revision::V2025_06_18, frame(1001, "initialize", &params("2025-06-18"))).await;
    // A legacy client of this lane has shaken hands already; a modern one has not.
    assert_eq!(handshake.response.get("result").is_some(), lane.is_modern());
    for round in 0..3 {
        let reply = client.raw_of(Revision::V2026_07_28, frame(round, "server/discover", &modern)).await;
        assert_eq!(reply.result()["resultType"], "complete");
        let reply = client.raw_of(Revision::V2025_06_18, frame(round, "ping", &json!({}))).await;
        assert_eq!(*reply.result(), json!({}));
        let reply = client.raw_of(Revision::V2026_07_28, frame(round, "ping", &modern)).await;
        assert_eq!(reply.code(), -32601);
        let reply = client.raw_of(Revision::V2025_06_18, frame(round, "server/discover", &json!({}))).await;
        assert_eq!(reply.code(), -32601);
    }
}
