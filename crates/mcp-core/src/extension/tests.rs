//! An extension that does everything once, asked in both eras; and names that do not fit.

use std::cell::RefCell;
use std::task::{Context, Poll, Waker};

use mcp_wire::types::CacheScope;
use mcp_wire::{DecodeLimits, Frame, Message};
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::protocol::schema::MirroredParameter;
use crate::{
    Carrier, Exchange, Form, FormSchema, Head, Hint, Outbound, Peer, Principal, Scope, Server, ServerBuilder, Target,
    Tool,
};

const ID: &str = "com.example/notes";
const CHANGED: &str = "notifications/notes/changed";
const READ: &str = "notifications/notes/read";

/// Reads, checks and asks, under the two newest revisions.
struct Notes;

#[derive(Deserialize)]
struct Read {
    title: String,
}

#[async_trait]
impl Extension for Notes {
    fn id(&self) -> &str {
        ID
    }

    fn advertise(&self, revision: Revision) -> Option<MetaObject> {
        let settings = json!({ "lines": 3 });
        settings.as_object().cloned().filter(|_| revision >= Revision::V2025_11_25)
    }

    fn methods(&self) -> Vec<ExtensionMethod> {
        vec![
            ExtensionMethod::new("notes/read").target("title"),
            ExtensionMethod::new("notes/erase").needs_declaration().target("title"),
            ExtensionMethod::new("notes/new").revisions(Revision::V2026_07_28..=Revision::V2026_07_28),
            ExtensionMethod::new("notes/broken"),
            ExtensionMethod::new("notes/sign"),
            ExtensionMethod::new("notes/tell"),
        ]
    }

    fn notifications(&self) -> Vec<String> {
        vec![READ.to_owned()]
    }

    fn subscription_kinds(&self) -> Vec<SubscriptionKind> {
        vec![SubscriptionKind::new("notesChanged", CHANGED)]
    }

    async fn handle(
        self: Arc<Self>,
        request: ExtensionRequest,
        context: RequestContext,
    ) -> Result<ExtensionReply, HandlerError> {
        match request.method.as_str() {
            "notes/read" => {
                let Read { title } = request.parse()?;
                context.notify(READ, &json!({ "title": title }))?;
                let mut meta = MetaObject::new();
                meta.insert("com.example/mark".to_owned(), 1.into());
                let hints = CacheHints::new(9, CacheScope::Public);
                Ok(ExtensionReply::new(&json!({ "text": title }))?.cache(hints).meta(meta))
            }
            "notes/broken" => ExtensionReply::new(&json!({ "resultType": "mine" })),
            "notes/sign" => {
                let fields = FormSchema::builder().string("name", |field| field).build()?;
                let answer = context.ask("who", Form::<Value>::with_schema("Sign?", fields))?;
                ExtensionReply::new(&json!({ "signed": answer.accepted().is_some() }))
            }
            "notes/tell" => {
                context.notify("notifications/tools/list_changed", &json!({}))?;
                ExtensionReply::new(&json!({}))
            }
            _ => ExtensionReply::new(&json!({ "done": true })),
        }
    }
}

fn builder() -> ServerBuilder {
    Server::builder("s", "1").without_server_info()
}

fn server() -> Server {
    builder().extension(Notes).build().unwrap()
}

fn received(server: &Server, peer: &Peer, message: &Value, carrier: &dyn Carrier) -> Exchange {
    let frame = serde_json::to_vec(message).unwrap().into();
    match Frame::decode(&frame, DecodeLimits::default()) {
        Frame::One(message) => peer.receive_from(server.classify(message, None), carrier),
        other => panic!("{other:?}"),
    }
}

/// What is said in reply: the notifications, then the response with its hint.
async fn all_of(mut exchange: Exchange) -> (Vec<Value>, Value, Hint) {
    let mut notifications = Vec::new();
    loop {
        match exchange.next().await.unwrap() {
            Outbound::Notification(frame) => notifications.push(value(&frame)),
            Outbound::Response(frame, hint) => return (notifications, value(&frame), hint),
            other => panic!("{other:?}"),
        }
    }
}

fn value(frame: &[u8]) -> Value {
    serde_json::from_slice(frame).unwrap()
}

fn modern(method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

async fn ask_modern(server: &Server, method: &str, params: Value, capabilities: Value) -> (Vec<Value>, Value, Hint) {
    let peer = server.peer(Principal::anonymous(), Scope::Single);
    all_of(received(server, &peer, &modern(method, params, &capabilities), &crate::Pipe::new())).await
}

/// A connection whose handshake agreed on `revision`, and what the handshake said.
fn connected(server: &Server, revision: &str) -> (Peer, Value) {
    let peer = server.peer(Principal::anonymous(), Scope::Connection);
    let params = json!({ "protocolVersion": revision, "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } });
    let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let mut exchange = received(server, &peer, &request, &crate::Pipe::new());
    let response = value(&exchange.take_response().unwrap());
    (peer, response["result"].clone())
}

async fn ask_legacy(server: &Server, peer: &Peer, method: &str, params: Value) -> (Vec<Value>, Value, Hint) {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    all_of(received(server, peer, &request, &crate::Pipe::new())).await
}

#[tokio::test]
async fn it_is_advertised_where_the_revision_has_a_place_for_it() {
    let server = server();
    let (_, response, _) = ask_modern(&server, "server/discover", json!({}), json!({})).await;
    assert_eq!(response["result"]["capabilities"]["extensions"], json!({ ID: { "lines": 3 } }));
    assert_eq!(response["result"]["capabilities"]["experimental"], Value::Null);
    let (_, result) = connected(&server, "2025-11-25");
    assert_eq!(result["capabilities"]["experimental"], json!({ ID: { "lines": 3 } }));
    assert_eq!(result["capabilities"]["extensions"], Value::Null);
    let (_, result) = connected(&server, "2025-06-18");
    assert_eq!(result["capabilities"]["experimental"], Value::Null);
}

#[tokio::test]
async fn a_method_answers_in_both_eras_with_what_each_has() {
    let server = server();
    let (notifications, response, hint) = ask_modern(&server, "notes/read", json!({ "title": "a" }), json!({})).await;
    let told = json!({ "jsonrpc": "2.0", "method": READ, "params": { "title": "a" } });
    assert_eq!(notifications, std::slice::from_ref(&told));
    assert_eq!(
        response["result"],
        json!({ "resultType": "complete", "ttlMs": 9, "cacheScope": "public", "_meta": { "com.example/mark": 1 },
            "text": "a" })
    );
    assert_eq!(hint, Hint::Ok);
    let (peer, _) = connected(&server, "2025-11-25");
    let (notifications, response, _) = ask_legacy(&server, &peer, "notes/read", json!({ "title": "a" })).await;
    assert_eq!(notifications, [told]);
    assert_eq!(response["result"], json!({ "_meta": { "com.example/mark": 1 }, "text": "a" }));
}

#[tokio::test]
async fn a_method_does_not_exist_where_it_is_not_advertised() {
    let server = server();
    let (peer, _) = connected(&server, "2025-06-18");
    let (_, response, _) = ask_legacy(&server, &peer, "notes/read", json!({ "title": "a" })).await;
    assert_eq!(response["error"]["code"], -32601);
    // Advertised, and yet not a method of this revision.
    let (peer, _) = connected(&server, "2025-11-25");
    let (_, response, _) = ask_legacy(&server, &peer, "notes/new", json!({})).await;
    assert_eq!(response["error"]["code"], -32601);
    let (_, response, _) = ask_modern(&server, "notes/new", json!({}), json!({})).await;
    assert_eq!(response["result"]["done"], true);
    for unknown in ["notes/list", "tasks/get"] {
        let (_, response, hint) = ask_modern(&server, unknown, json!({}), json!({})).await;
        assert_eq!((&response["error"]["code"], hint), (&json!(-32601), Hint::NotFound), "{unknown}");
    }
}

#[tokio::test]
async fn only_a_modern_client_has_to_declare_the_extension_on_each_request() {
    let server = server();
    let erase = json!({ "title": "a" });
    let (_, response, hint) = ask_modern(&server, "notes/erase", erase.clone(), json!({})).await;
    assert_eq!(response["error"]["code"], -32021);
    assert_eq!(response["error"]["data"], json!({ "requiredCapabilities": { "extensions": { ID: {} } } }));
    assert_eq!(hint, Hint::BadRequest);
    let declared = json!({ "extensions": { ID: {} } });
    let (_, response, _) = ask_modern(&server, "notes/erase", erase.clone(), declared).await;
    assert_eq!(response["result"]["done"], true);
    let (peer, _) = connected(&server, "2025-11-25");
    let (_, response, _) = ask_legacy(&server, &peer, "notes/erase", erase).await;
    assert_eq!(response["result"]["done"], true);
}

/// A carrier that notes the target it was shown, and takes none that is called "no".
#[derive(Default)]
struct Noting(RefCell<Vec<String>>);

impl Carrier for Noting {
    fn check_head(&self, head: &Head<'_>) -> Result<(), String> {
        self.0.borrow_mut().push(format!("{:?}", head.target));
        if head.target == Target::Named("no".into()) { Err("the names differ".to_owned()) } else { Ok(()) }
    }

    fn check_parameter(&self, _parameter: &MirroredParameter, _argument: Option<&RawJson>) -> Result<(), String> {
        Ok(())
    }

    fn streams(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn the_carrier_compares_the_member_that_names_the_target_before_anything_else_is_checked() {
    let server = server();
    let peer = server.peer(Principal::anonymous(), Scope::Single);
    let carrier = Noting::default();
    let ask =
        |method: &str, params: Value| all_of(received(&server, &peer, &modern(method, params, &json!({})), &carrier));
    // Neither declared nor equal: that the names differ counts first.
    let (_, response, _) = ask("notes/erase", json!({ "title": "no" })).await;
    assert_eq!(response["error"]["code"], -32020);
    let (notifications, response, _) = ask("notes/read", json!({ "title": "yes" })).await;
    // The client takes no stream, so it is told nothing on the way.
    assert_eq!((notifications, &response["result"]["text"]), (Vec::new(), &json!("yes")));
    let (_, response, _) = ask("notes/read", json!({ "title": 7 })).await;
    assert_eq!(response["error"]["code"], -32602);
    let (_, response, _) = ask("notes/new", json!({ "title": "no" })).await;
    assert_eq!(response["result"]["done"], true);
    assert_eq!(carrier.0.take(), [r#"Named("no")"#, r#"Named("yes")"#, "Missing", "None"]);
}

#[tokio::test]
async fn a_target_that_occurs_twice_is_refused() {
    let server = server();
    let peer = server.peer(Principal::anonymous(), Scope::Single);
    let text = modern("notes/read", json!({ "title": "a" }), &json!({})).to_string();
    let frame = text.replacen(r#""title":"a""#, r#""title":"a","title":"b""#, 1).into();
    let Frame::One(message @ Message::Request(_)) = Frame::decode(&frame, DecodeLimits::default()) else {
        panic!("the frame is one request")
    };
    let (_, response, hint) = all_of(peer.receive(server.classify(message, None))).await;
    assert_eq!((&response["error"]["code"], hint), (&json!(-32602), Hint::BadRequest));
}

#[tokio::test]
async fn a_result_that_says_what_the_engine_says_and_a_foreign_notification_are_faults() {
    let server = server();
    for method in ["notes/broken", "notes/tell"] {
        let (notifications, response, _) = ask_modern(&server, method, json!({}), json!({})).await;
        assert_eq!((notifications, &response["error"]["code"]), (Vec::new(), &json!(-32603)), "{method}");
    }
}

#[tokio::test]
async fn a_question_is_asked_as_a_tool_would_ask_it() {
    let server = server();
    let can_ask = json!({ "elicitation": {} });
    let (_, response, _) = ask_modern(&server, "notes/sign", json!({ "page": 1 }), can_ask.clone()).await;
    assert_eq!(response["result"]["resultType"], "input_required");
    let answered = |page: u32| {
        json!({ "page": page, "requestState": response["result"]["requestState"],
            "inputResponses": { "who": { "action": "accept", "content": { "name": "x" } } } })
    };
    let (_, signed, _) = ask_modern(&server, "notes/sign", answered(1), can_ask.clone()).await;
    assert_eq!(signed["result"]["signed"], true);
    // The state is good for these parameters and for no others.
    let (_, refused, _) = ask_modern(&server, "notes/sign", answered(2), can_ask).await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test]
async fn a_subscription_is_told_of_the_kinds_that_were_acknowledged_and_once_for_many_changes() {
    let server = server();
    let peer = server.peer(Principal::anonymous(), Scope::Connection);
    let filter = |filter: Value| modern("subscriptions/listen", json!({ "notifications": filter }), &json!({}));
    let mut exchange =
        received(&server, &peer, &filter(json!({ "notesChanged": true, "otherChanged": true })), &crate::Pipe::new());
    let Some(Outbound::Notification(frame)) = exchange.next().await else { panic!("no acknowledgement") };
    assert_eq!(value(&frame)["params"]["notifications"], json!({ "notesChanged": true }));
    server.extension_changed(CHANGED);
    server.extension_changed(CHANGED);
    server.extension_changed(READ);
    let Some(Outbound::Notification(frame)) = exchange.next().await else { panic!("no notice") };
    let tag = json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": 1 } });
    assert_eq!(value(&frame), json!({ "jsonrpc": "2.0", "method": CHANGED, "params": tag }));
    assert!(is_silent(&mut exchange));
    drop(exchange);
    for wish in [json!({ "notesChanged": false }), json!({})] {
        let mut exchange = received(&server, &peer, &filter(wish), &crate::Pipe::new());
        let Some(Outbound::Notification(frame)) = exchange.next().await else { panic!("no acknowledgement") };
        assert_eq!(value(&frame)["params"]["notifications"], json!({}));
        server.extension_changed(CHANGED);
        assert!(is_silent(&mut exchange));
    }
}

fn is_silent(exchange: &mut Exchange) -> bool {
    let next = std::pin::pin!(exchange.next());
    next.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn sessions_are_told_where_the_extension_is_advertised() {
    let server = server();
    let (old, _) = connected(&server, "2025-06-18");
    let (new, _) = connected(&server, "2025-11-25");
    server.extension_changed(CHANGED);
    let mut context = Context::from_waker(Waker::noop());
    assert!(old.session().unwrap().poll_notice(&mut context).is_pending());
    let Poll::Ready(Some(frame)) = new.session().unwrap().poll_notice(&mut context) else { panic!("no notice") };
    assert_eq!(value(&frame), json!({ "jsonrpc": "2.0", "method": CHANGED }));
    assert!(new.session().unwrap().poll_notice(&mut context).is_pending());
}

/// An extension that is nothing but what it is called.
#[derive(Clone, Default)]
struct Named {
    id: &'static str,
    methods: Vec<&'static str>,
    notifications: Vec<&'static str>,
    kinds: Vec<(&'static str, &'static str)>,
}

#[async_trait]
impl Extension for Named {
    fn id(&self) -> &str {
        self.id
    }

    fn advertise(&self, _revision: Revision) -> Option<MetaObject> {
        Some(MetaObject::new())
    }

    fn methods(&self) -> Vec<ExtensionMethod> {
        self.methods.iter().copied().map(ExtensionMethod::new).collect()
    }

    fn notifications(&self) -> Vec<String> {
        self.notifications.iter().map(|&name| name.to_owned()).collect()
    }

    fn subscription_kinds(&self) -> Vec<SubscriptionKind> {
        self.kinds.iter().map(|(member, notification)| SubscriptionKind::new(*member, *notification)).collect()
    }

    async fn handle(
        self: Arc<Self>,
        _request: ExtensionRequest,
        _context: RequestContext,
    ) -> Result<ExtensionReply, HandlerError> {
        ExtensionReply::new(&json!({}))
    }
}

fn refused(extension: Named) -> ExtensionError {
    match builder().extension(Notes).extension(extension).build() {
        Err(RegistrationError::Extension { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_fit_or_has_an_owner_is_refused() {
    let base = Named { id: "com.example/more", ..Named::default() };
    for id in ["", "notes", "/notes", "com.example/", "com.example/two words"] {
        assert_eq!(refused(Named { id, ..base.clone() }), ExtensionError::Id, "{id:?}");
    }
    assert_eq!(refused(Named { id: ID, ..base.clone() }), ExtensionError::TakenId);
    for name in ["", "two words", "notifications/more"] {
        let problem = refused(Named { methods: vec![name], ..base.clone() });
        assert_eq!(problem, ExtensionError::Method(name.to_owned()));
    }
    for name in ["tools/call", "initialize", "sampling/createMessage", "notes/read"] {
        let problem = refused(Named { methods: vec![name], ..base.clone() });
        assert_eq!(problem, ExtensionError::TakenMethod(name.to_owned()));
    }
    assert_eq!(
        refused(Named { methods: vec!["more/a", "more/a"], ..base.clone() }),
        ExtensionError::TakenMethod("more/a".to_owned())
    );
    for name in ["", "more/changed"] {
        let problem = refused(Named { notifications: vec![name], ..base.clone() });
        assert_eq!(problem, ExtensionError::Notification(name.to_owned()));
    }
    for name in ["notifications/progress", READ, CHANGED] {
        let problem = refused(Named { notifications: vec![name], ..base.clone() });
        assert_eq!(problem, ExtensionError::TakenNotification(name.to_owned()));
    }
    for member in ["", "toolsListChanged", "resourceSubscriptions", "notesChanged"] {
        let problem = refused(Named { kinds: vec![(member, "notifications/more")], ..base.clone() });
        assert_eq!(problem, ExtensionError::Kind(member.to_owned()));
    }
    let twice = vec![("a", "notifications/more"), ("b", "notifications/more")];
    let problem = refused(Named { kinds: twice, ..base.clone() });
    assert_eq!(problem, ExtensionError::TakenNotification("notifications/more".to_owned()));
    // Names that the protocol leaves to an extension, and one name for both uses of it, are fine.
    let tasks = Named {
        methods: vec!["tasks/get"],
        notifications: vec!["notifications/tasks", "notifications/more"],
        kinds: vec![("more", "notifications/more")],
        ..base
    };
    assert!(builder().extension(Notes).extension(tasks).build().is_ok());
}

#[tokio::test]
async fn any_handler_of_the_server_may_send_what_its_extensions_own() {
    let tool = Tool::raw("tell", json!({ "type": "object" }), |_arguments, context: RequestContext| async move {
        context.notify(READ, &json!({ "title": "b" }))?;
        let unfit = context.notify(READ, &json!("b")).is_err();
        Ok::<_, HandlerError>(format!("{unfit}"))
    });
    let server = builder().extension(Notes).tool(tool).build().unwrap();
    let (notifications, response, _) = ask_modern(&server, "tools/call", json!({ "name": "tell" }), json!({})).await;
    assert_eq!(notifications.len(), 1);
    assert_eq!(response["result"]["content"][0]["text"], "true");
    // Not advertised under this revision, so nothing is sent.
    let (peer, _) = connected(&server, "2025-06-18");
    let (notifications, _, _) = ask_legacy(&server, &peer, "tools/call", json!({ "name": "tell" })).await;
    assert_eq!(notifications, Vec::<Value>::new());
}
