//! Who is let in, what the others are told and where they are led, with the providers that servers use.
//!
//! What each provider makes of each credential is in mcp-auth's own tests; this is what the endpoint makes of it, on every
//! verb.
//!
//! Spec: 2026-07-28 basic/authorization, "Protected Resource Metadata Discovery Requirements", "Token Handling" and
//! "Scope Challenge Handling"

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method};
use mcp_auth::{ApiKeyTable, BasicUsers};
use mcp_core::{HandlerError, NoArguments, RequestContext, Server, ServerBuilder, Tool};
use mcp_http::server::HttpConfig;
use mcp_tests::{Client, Host, HttpAnswer, Lane, Profile, idle, lanes, within};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

mod providers;

use providers::{
    AUDIENCE, Credentials, ISSUER, KEY, Login, Signer, Told, basic, bearer, cases, clock, fixed, jwts, key, keys, led,
    opaque, passwords, resource, right_jwt, seconds,
};

lanes! {
    everywhere {
        what_a_call_needs_may_depend_on_its_arguments,
    }
    http "on a pipe the caller is whoever opened it, and nobody is asked for credentials" {
        the_metadata_is_for_everybody_before_any_check,
        each_provider_lets_nobody_in_on_any_verb_but_who_has_the_right_credentials,
        a_revoked_credential_dies_at_its_next_request,
        a_stream_ends_with_the_proof_of_identity,
        a_scope_that_is_needed_late_is_an_error_in_band,
    }
    http_legacy "only sessions have streams that are no request's, and outlive a token" {
        the_streams_of_a_session_end_and_the_session_goes_on_under_a_new_token,
    }
}

/// A server that counts the calls of its only tool.
fn counting() -> (ServerBuilder, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let tool = Tool::plain("count", move |_: NoArguments| {
        count.fetch_add(1, SeqCst);
        "counted"
    });
    (Server::builder("s", "1").tool(tool), calls)
}

fn show(credentials: &Credentials, headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    for (name, value) in credentials {
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
}

/// A client of the endpoint that proves itself by itself.
struct Visitor {
    client: Client,
    session: Option<HeaderValue>,
}

impl Visitor {
    /// Opens a session where the lane has them.
    async fn enter(host: &Host, credentials: &Credentials) -> Self {
        let client = host.strange(Profile::default());
        let mut visitor = Self { client, session: None };
        if !visitor.client.lane().is_modern() {
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
            let answer = visitor.post(credentials, "initialize", params).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            visitor.session = Some(answer.headers["mcp-session-id"].clone());
        }
        visitor
    }

    fn edit(&self, credentials: &Credentials, headers: &mut HeaderMap) {
        show(credentials, headers);
        if let Some(session) = &self.session {
            headers.insert("mcp-session-id", session.clone());
        }
    }

    fn message(&self, method: &str, params: Value) -> String {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": self.client.enveloped(params) }).to_string()
    }

    async fn post(&self, credentials: &Credentials, method: &str, params: Value) -> HttpAnswer {
        let body = self.message(method, params);
        self.client.http(Method::POST, body, |headers| self.edit(credentials, headers)).await
    }

    async fn count(&self, credentials: &Credentials) -> HttpAnswer {
        self.post(credentials, "tools/call", json!({ "name": "count" })).await
    }
}

/// The matrix: every provider, every wrong credential, every verb and endpoint.
async fn each_provider_lets_nobody_in_on_any_verb_but_who_has_the_right_credentials(lane: Lane) {
    for case in cases() {
        let (server, calls) = counting();
        let host = lane.host_as(&server.build().unwrap(), case.config.sse_pair("/sse", "/messages"));
        let visitor = Visitor::enter(&host, &case.right).await;
        for (what, credentials, told) in &case.wrong {
            let body = visitor.message("tools/call", json!({ "name": "count" }));
            for (method, path) in [
                (Method::POST, "/mcp"),
                (Method::GET, "/mcp"),
                (Method::DELETE, "/mcp"),
                (Method::GET, "/sse"),
                (Method::POST, "/messages?sessionId=a"),
            ] {
                let at = format!("{}, {what}: {method} {path}", case.name);
                let answer = visitor
                    .client
                    .http_at(path, method, body.clone(), |headers| visitor.edit(credentials, headers))
                    .await;
                assert_eq!(answer.status, told.status(), "{at}");
                assert_eq!(answer.headers[WWW_AUTHENTICATE], (case.challenge)(*told), "{at}");
                assert_eq!(answer.body, told.body(), "{at}");
                assert!(!answer.headers.contains_key("mcp-session-id"), "{at}");
            }
        }
        assert_eq!(calls.load(SeqCst), 0, "{}: no handler has run", case.name);
        let answer = visitor.count(&case.right).await;
        assert_eq!((answer.status, calls.load(SeqCst)), (200, 1), "{}: {}", case.name, answer.body);
        // What was refused has ended no session, and the right credentials may.
        let sessions = usize::from(!lane.is_modern());
        assert_eq!(host.open_sessions(), sessions, "{}", case.name);
        let ended = visitor.client.http(Method::DELETE, "", |headers| visitor.edit(&case.right, headers)).await;
        assert_eq!(ended.status, lane.pick(204, 400), "{}", case.name);
    }
}

type Revocation = Box<dyn FnOnce()>;

async fn a_revoked_credential_dies_at_its_next_request(lane: Lane) {
    let (login, keys, passwords) = (Login::default(), keys(), passwords());
    let revoked = Arc::clone(&login.revoked);
    let (table, users) = (keys.clone(), passwords.clone());
    let cases: [(HttpConfig, Credentials, Revocation); 3] = [
        (HttpConfig::new(opaque(&login)), bearer("opaqueOfAnn"), Box::new(move || revoked.store(true, SeqCst))),
        (HttpConfig::new(keys), key(KEY), Box::new(move || table.replace(ApiKeyTable::new()))),
        (HttpConfig::new(passwords), basic("ann:secret"), Box::new(move || users.replace(BasicUsers::new()).unwrap())),
    ];
    for (config, credentials, revoke) in cases {
        let (server, calls) = counting();
        let host = lane.host_as(&server.build().unwrap(), config);
        let visitor = Visitor::enter(&host, &credentials).await;
        assert_eq!(visitor.count(&credentials).await.status, 200);
        revoke();
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let body = visitor.message("tools/call", json!({ "name": "count" }));
            let answer = visitor.client.http(method, body, |headers| visitor.edit(&credentials, headers)).await;
            assert_eq!((answer.status, answer.body), (401, Told::Invalid.body()));
        }
        assert_eq!(calls.load(SeqCst), 1);
    }
}

async fn the_metadata_is_for_everybody_before_any_check(lane: Lane) {
    let (server, _) = counting();
    let host = lane.host_as(&server.build().unwrap(), HttpConfig::new(fixed()).protected_resource(resource()));
    let client = host.strange(Profile::default());
    let from_elsewhere = |headers: &mut HeaderMap| {
        show(&bearer("a b"), headers);
        headers.insert(ORIGIN, HeaderValue::from_static("https://evil.example"));
        headers.insert(HOST, HeaderValue::from_static("tools.example"));
    };
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource?x=y"] {
        let answer = client.http_at(path, Method::GET, "", from_elsewhere).await;
        let wanted = json!({
            "resource": AUDIENCE,
            "authorization_servers": [ISSUER],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["read"],
        });
        assert_eq!((answer.status, answer.json()), (200, wanted), "{path}");
        for (name, value) in [
            ("content-type", "application/json"),
            ("cache-control", "public, max-age=300"),
            ("access-control-allow-origin", "*"),
        ] {
            assert_eq!(answer.headers[name], value, "{path}");
        }
        let head = client.http_at(path, Method::HEAD, "", from_elsewhere).await;
        assert_eq!((head.status, &head.headers["content-length"]), (200, &answer.headers["content-length"]), "{path}");
        let asked = client.http_at(path, Method::OPTIONS, "", from_elsewhere).await;
        assert_eq!(
            (asked.status, &asked.headers["access-control-allow-origin"]),
            (204, &HeaderValue::from_static("*"))
        );
        assert_eq!(asked.headers["access-control-allow-headers"], "*");
        for method in [Method::POST, Method::DELETE] {
            let refused = client.http_at(path, method, "", from_elsewhere).await;
            assert_eq!(
                (refused.status, &refused.headers["allow"]),
                (405, &HeaderValue::from_static("GET, HEAD, OPTIONS"))
            );
        }
    }
    for path in [
        "/.well-known/oauth-protected-resource/",
        "/.well-known/oauth-protected-resource/mcp/",
        "/.well-known/oauth-protected-resource/other",
        "/.well-known/oauth-authorization-server",
    ] {
        assert_eq!(client.http_at(path, Method::GET, "", |_| {}).await.status, 404, "{path}");
    }
    let without = lane.host_as(host.server(), HttpConfig::new(fixed())).strange(Profile::default());
    let path = "/.well-known/oauth-protected-resource/mcp";
    assert_eq!(without.http_at(path, Method::GET, "", |_| {}).await.status, 404);
    // The document needs no credentials, the endpoint behind it still does, and still looks at where requests come from.
    let answer = client.http(Method::POST, "{}", |headers| show(&Vec::new(), headers)).await;
    assert_eq!((answer.status, answer.headers[WWW_AUTHENTICATE].to_str().unwrap()), (401, &*led(Told::Missing)));
    assert_eq!(client.http(Method::POST, "{}", from_elsewhere).await.status, 403);
}

/// A server whose tools wait: one says something first, and both tell when they are cancelled.
struct Waiting {
    server: Server,
    cancelled: Arc<Notify>,
    go: Arc<Notify>,
}

fn waiting() -> Waiting {
    let (cancelled, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (seen, start) = (Arc::clone(&cancelled), Arc::clone(&go));
    let tool = Tool::typed("wait", move |_: NoArguments, context: RequestContext| {
        let (seen, start) = (Arc::clone(&seen), Arc::clone(&start));
        async move {
            context.progress(1.0, None, None);
            tokio::select! {
                () = context.cancelled() => seen.notify_one(),
                () = start.notified() => {}
            }
            Ok::<_, HandlerError>("waited")
        }
    });
    let server = Server::builder("s", "1").tool(tool.timeout(Duration::from_secs(24 * 60 * 60))).build().unwrap();
    Waiting { server, cancelled, go }
}

fn call_wait() -> Value {
    json!({ "name": "wait", "_meta": { "progressToken": "p" } })
}

/// How long the token of these tests holds, its verifier's allowance for other clocks included.
const HOLDS: Duration = Duration::from_secs(300 + 60);

/// Whether something ended when the token did. Tokens count in seconds, and the test's clock is ahead of the server's by
/// what the machine took to get from the one to the other.
fn at_its_end(began: Instant) -> bool {
    (HOLDS - Duration::from_secs(1)..HOLDS + Duration::from_secs(60)).contains(&began.elapsed())
}

async fn a_stream_ends_with_the_proof_of_identity(lane: Lane) {
    let Waiting { server, cancelled, go } = waiting();
    let (signer, now) = (Signer::new(), clock());
    let host = lane.host_as(&server, HttpConfig::new(jwts(&signer, now.clone())));
    let token = right_jwt(&signer, seconds(now()) + 300);
    let began = Instant::now();
    let visitor = Visitor::enter(&host, &token).await;
    let body = visitor.message("tools/call", call_wait());
    let mut events = visitor.client.stream(Method::POST, body, |headers| visitor.edit(&token, headers)).await;
    let mut last = None;
    while let Some(event) = within("the end of the stream", events.next()).await {
        assert!(began.elapsed() < Duration::from_secs(60), "{event:?} long after the call");
        last = event.id.or(last);
    }
    assert!(at_its_end(began), "{:?}", began.elapsed());
    assert_eq!(visitor.post(&token, "tools/list", json!({})).await.status, 401, "the token is refused from then on");
    if lane.is_modern() {
        within("the cancellation", cancelled.notified()).await;
        let token = right_jwt(&signer, seconds(now()) + 300);
        let began = Instant::now();
        let listen = json!({ "notifications": { "toolsListChanged": true } });
        let body = visitor.message("subscriptions/listen", listen);
        let mut events = visitor.client.stream(Method::POST, body, |headers| visitor.edit(&token, headers)).await;
        assert!(within("the acknowledgement", events.next()).await.is_some());
        assert_eq!(within("the end of the stream", events.next()).await, None);
        assert!(at_its_end(began), "{:?}", began.elapsed());
        return;
    }
    // The call goes on, and whoever comes back with a new token gets what it says.
    let token = right_jwt(&signer, seconds(now()) + 300);
    let resume = |headers: &mut HeaderMap| {
        visitor.edit(&token, headers);
        headers.insert("last-event-id", last.as_deref().unwrap().parse().unwrap());
    };
    let mut events = visitor.client.stream(Method::GET, "", resume).await;
    go.notify_one();
    loop {
        let event = within("the result", events.next()).await.unwrap();
        if event.data.contains("\"waited\"") {
            break;
        }
    }
}

async fn the_streams_of_a_session_end_and_the_session_goes_on_under_a_new_token(lane: Lane) {
    let Waiting { server, cancelled, .. } = waiting();
    let (signer, now) = (Signer::new(), clock());
    let config = HttpConfig::new(jwts(&signer, now.clone())).sse_pair("/sse", "/messages");
    let host = lane.host_as(&server, config);
    let token = right_jwt(&signer, seconds(now()) + 300);
    let began = Instant::now();
    let visitor = Visitor::enter(&host, &token).await;
    let mut notices = visitor.client.stream(Method::GET, "", |headers| visitor.edit(&token, headers)).await;
    server.tools_changed();
    assert!(within("a notice", notices.next()).await.unwrap().data.contains("list_changed"));

    // The pair's session is its stream.
    let mut pair = visitor.client.stream_at("/sse", Method::GET, "", |headers| show(&token, headers)).await;
    let address = within("the address", pair.next()).await.unwrap().data;
    let hello =
        json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", call_wait())] {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let posted = visitor.client.http_at(&address, Method::POST, message, |headers| show(&token, headers)).await;
        assert_eq!(posted.status, 202, "{method}: {}", posted.body);
        assert!(within("what is said", pair.next()).await.is_some());
    }
    assert_eq!(host.open_sessions(), 2);

    assert_eq!(within("the end of the notices", notices.next()).await, None);
    assert!(at_its_end(began), "{:?}", began.elapsed());
    assert_eq!(within("the end of the pair", pair.next()).await, None);
    assert!(at_its_end(began), "{:?}", began.elapsed());
    within("the cancellation", cancelled.notified()).await;
    assert_eq!(host.open_sessions(), 1);

    let token = right_jwt(&signer, seconds(now()) + 300);
    let mut notices = visitor.client.stream(Method::GET, "", |headers| visitor.edit(&token, headers)).await;
    idle().await;
    server.tools_changed();
    assert!(within("a notice", notices.next()).await.unwrap().data.contains("list_changed"));
}

/// Everybody may read, and what is to be written decides what is needed.
fn scoped() -> Server {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Write {
        to: String,
        #[serde(default)]
        slowly: bool,
    }
    let write = Tool::typed("write", async |arguments: Write, context: RequestContext| {
        if arguments.slowly {
            context.progress(1.0, None, None);
            tokio::task::yield_now().await;
        }
        if arguments.to == "public" || context.principal().has_scope("write") {
            return Ok("written");
        }
        Err(HandlerError::need_scopes(["read", "write"]))
    });
    Server::builder("s", "1").tool(write.scopes(["files"])).build().unwrap()
}

async fn what_a_call_needs_may_depend_on_its_arguments(lane: Lane) {
    let host = lane.host(&scoped());
    let reader = host.connect_as(Profile { scopes: &["files"], ..Profile::default() }).await;
    let writer = host.connect_as(Profile { scopes: &["files", "write"], ..Profile::default() }).await;
    assert_eq!(reader.call("write", json!({ "to": "public" })).await.tool_text(), "written");
    assert_eq!(writer.call("write", json!({ "to": "private" })).await.tool_text(), "written");
    let refused = reader.call("write", json!({ "to": "private" })).await;
    assert_eq!(refused.code_at(403), -32600);
    if lane.is_http() {
        let challenge = refused.headers.iter().find(|(name, _)| name == "www-authenticate").map(|(_, value)| &**value);
        let wanted = "Bearer realm=\"mcp\", error=\"insufficient_scope\", \
            error_description=\"the credentials do not permit this\", scope=\"files read write\"";
        assert_eq!(challenge, Some(wanted), "what the tool needs is needed, too");
    }
}

async fn a_scope_that_is_needed_late_is_an_error_in_band(lane: Lane) {
    let host = lane.host(&scoped());
    let reader = host.connect_as(Profile { scopes: &["files"], ..Profile::default() }).await;
    let params =
        json!({ "name": "write", "arguments": { "to": "private", "slowly": true }, "_meta": { "progressToken": 1 } });
    let refused = reader.request("tools/call", params).await;
    assert_eq!(refused.methods_before(), ["notifications/progress"]);
    assert_eq!(refused.code_at(200), -32600);
    assert!(!refused.headers.iter().any(|(name, _)| name == "www-authenticate"), "the head was out already");
}
