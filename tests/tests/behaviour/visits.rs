//! Pages that users are sent to: the name of a visit, its completion, and calls that need one first.
//!
//! Spec: 2025-11-25 client/elicitation, "Completion Notifications for URL Mode Elicitation" and "URL Elicitation Required
//! Error"; 2026-07-28 client/elicitation

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_core::{HandlerError, Limits, Principal, RequestContext, Server, ServerBuilder, Tool, Visit};
use mcp_tests::{Lane, Profile, idle, lanes};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

lanes! {
    everywhere {
        a_visit_is_asked_for_by_its_address_and_named_where_names_exist,
        an_address_that_is_no_good_is_never_sent,
        a_call_that_needs_a_page_says_so_in_the_words_of_its_revision,
        whoever_cannot_open_a_page_is_not_sent_to_one,
    }
    legacy "newer revisions neither name visits nor tell of their end" {
        the_client_is_told_once_that_its_user_is_done,
        nobody_else_completes_a_visit,
        a_visit_is_forgotten_after_a_while_and_with_its_session,
        an_owner_has_a_bounded_number_of_visits,
        a_name_belongs_to_one_session_at_a_time,
    }
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

/// A tool that sends the user to a page under a name, one that needs the page to have been visited, and what they need.
fn server() -> (ServerBuilder, Arc<Mutex<Option<Principal>>>, Arc<AtomicBool>) {
    let (owner, visited) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
    let (seen, record) = (Arc::clone(&owner), Arc::clone(&visited));
    let sends = Tool::typed("sends", move |named: Named, context: RequestContext| {
        *seen.lock().unwrap() = Some(context.principal().clone());
        let visit = Visit::new("Log in there.", format!("https://example.com/{}", named.name)).named(named.name);
        async move { Ok::<_, HandlerError>(format!("{:?}", context.ask("visit", visit)?)) }
    });
    let needs = Tool::typed("needs", move |named: Named, context: RequestContext| {
        let done = record.load(Ordering::SeqCst);
        async move {
            if !done {
                let visit = Visit::new("Log in there.", "https://example.com/login").named(named.name);
                return Err(context.visit_first("visit", &visit));
            }
            Ok("welcome")
        }
    });
    (Server::builder("s", "1").tool(sends).tool(needs), owner, visited)
}

fn accept(_: &mcp_tests::Question) -> Value {
    json!({ "action": "accept" })
}

async fn a_visit_is_asked_for_by_its_address_and_named_where_names_exist(lane: Lane) {
    let client = lane.connect(server().0).await;
    let interview = client.interview("sends", json!({ "name": "n1" }), accept).await;
    assert_eq!(interview.reply.tool_text(), "Accepted(())");
    let asked = &interview.questions[0].params;
    assert_eq!((&asked["mode"], &asked["url"]), (&json!("url"), &json!("https://example.com/n1")));
    assert_eq!(asked.get("elicitationId"), lane.pick(Some(&json!("n1")), None));
}

async fn an_address_that_is_no_good_is_never_sent(lane: Lane) {
    let tool = Tool::typed("sends", async |named: Named, context: RequestContext| {
        context.ask("visit", Visit::new("Go.", named.name))?;
        Ok::<_, HandlerError>("")
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    for address in ["http://example.com", "https://user:secret@example.com", "javascript:alert(1)", "https://", ""] {
        let interview = client.interview("sends", json!({ "name": address }), accept).await;
        assert!(interview.questions.is_empty(), "{address}");
        assert_eq!(interview.reply.code(), -32603, "{address}");
        assert!(!interview.reply.response.to_string().contains("secret"));
    }
}

async fn a_call_that_needs_a_page_says_so_in_the_words_of_its_revision(lane: Lane) {
    let (server, _, visited) = server();
    let server = server.build().unwrap();
    for lane in lane.each_revision() {
        visited.store(false, Ordering::SeqCst);
        let client = lane.host(&server).connect().await;
        let rules = lane.revision().rules();
        let interview = client.interview("needs", json!({ "name": format!("{:?}", lane.revision()) }), accept).await;
        if rules.named_visits {
            assert_eq!(interview.reply.code(), -32042, "{lane:?}");
            let data = &interview.reply.error()["data"];
            let visit = &data["elicitations"][0];
            assert_eq!(data["elicitations"].as_array().unwrap().len(), 1);
            assert_eq!(visit["mode"], "url");
            assert_eq!((&visit["url"], &visit["message"]), (&json!("https://example.com/login"), &json!("Log in there.")));
            assert!(visit["elicitationId"].is_string());
        } else if rules.elicitation_extended {
            assert_eq!(interview.questions.len(), 1, "{lane:?}: it is asked for");
            assert!(interview.reply.is_tool_error(), "and the page is not finished by being opened");
        } else {
            assert!(interview.questions.is_empty() && interview.reply.is_tool_error(), "{lane:?}");
            assert!(interview.reply.tool_text().contains("https://example.com/login"), "{lane:?}");
        }
        visited.store(true, Ordering::SeqCst);
        assert_eq!(client.call("needs", json!({ "name": "x" })).await.tool_text(), "welcome");
    }
}

async fn whoever_cannot_open_a_page_is_not_sent_to_one(lane: Lane) {
    let server = server().0.build().unwrap();
    let client = lane.host(&server).connect_as(Profile::able(json!({ "elicitation": { "form": {} } }))).await;
    for tool in ["sends", "needs"] {
        let reply = client.call(tool, json!({ "name": "n" })).await;
        if lane.is_modern() {
            assert_eq!(reply.code(), -32021, "{tool}");
        } else {
            assert!(reply.is_tool_error() && reply.tool_text().contains("elicitation"), "{tool}: {reply:?}");
        }
    }
}

async fn the_client_is_told_once_that_its_user_is_done(lane: Lane) {
    let (server, owner, _) = server();
    let client = lane.connect(server).await;
    let mut watch = client.watch(json!({})).await;
    assert_eq!(client.interview("sends", json!({ "name": "n1" }), accept).await.reply.tool_text(), "Accepted(())");
    let owner = owner.lock().unwrap().clone().unwrap();
    client.server().visit_completed("n1", &owner).unwrap();
    let (method, params) = watch.next().await;
    assert_eq!((method.as_str(), params), ("notifications/elicitation/complete", json!({ "elicitationId": "n1" })));
    assert!(client.server().visit_completed("n1", &owner).is_err(), "once");
    watch.is_quiet().await;
    // A visit that an error asked for is completed in the same way.
    assert_eq!(client.call("needs", json!({ "name": "n2" })).await.code(), -32042);
    client.server().visit_completed("n2", &owner).unwrap();
    assert_eq!(watch.next().await.1, json!({ "elicitationId": "n2" }));
}

async fn nobody_else_completes_a_visit(lane: Lane) {
    let (server, owner, _) = server();
    let server = server.build().unwrap();
    let host = lane.host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(Profile::named("bob")).await);
    bob.interview("sends", json!({ "name": "of bob" }), accept).await;
    let bob = owner.lock().unwrap().clone().unwrap();
    let mut watch = ann.watch(json!({})).await;
    ann.interview("sends", json!({ "name": "of ann" }), accept).await;
    let foreign = server.visit_completed("of ann", &bob).unwrap_err();
    assert_eq!(foreign, server.visit_completed("of nobody", &bob).unwrap_err(), "foreign and unknown look the same");
    assert!(server.visit_completed("of ann", &Principal::anonymous()).is_err());
    watch.is_quiet().await;
}

async fn a_visit_is_forgotten_after_a_while_and_with_its_session(lane: Lane) {
    let (server, owner, _) = server();
    let server = server.build().unwrap();
    let host = lane.host(&server);
    let client = host.connect().await;
    client.interview("sends", json!({ "name": "n1" }), accept).await;
    let owner = owner.lock().unwrap().clone().unwrap();
    tokio::time::sleep(Limits::default().visit_lifetime + Duration::from_secs(1)).await;
    assert!(server.visit_completed("n1", &owner).is_err());
    let other = host.connect().await;
    other.interview("sends", json!({ "name": "n2" }), accept).await;
    if lane.is_http() {
        assert_eq!(other.http(http::Method::DELETE, "", |_| {}).await.status, 204);
    } else {
        drop(other);
    }
    idle().await;
    assert!(server.visit_completed("n2", &owner).is_err());
}

async fn an_owner_has_a_bounded_number_of_visits(lane: Lane) {
    let (server, owner, _) = server();
    let mut limits = Limits::default();
    limits.visits = 2;
    let server = server.limits(limits).build().unwrap();
    let host = lane.host(&server);
    let (one, two) = (host.connect().await, host.connect().await);
    for (client, name) in [(&one, "n1"), (&two, "n2"), (&one, "n1")] {
        client.interview("sends", json!({ "name": name }), accept).await;
    }
    let third = one.interview("sends", json!({ "name": "n3" }), accept).await;
    assert_eq!((third.reply.code(), third.questions.len()), (-32603, 0), "nothing was sent");
    let bob = host.connect_as(Profile::named("bob")).await;
    assert_eq!(bob.interview("sends", json!({ "name": "b1" }), accept).await.questions.len(), 1, "others have their own");
    // Room comes back with a completion.
    one.interview("sends", json!({ "name": "n1" }), accept).await;
    let ann = owner.lock().unwrap().clone().unwrap();
    server.visit_completed("n1", &ann).unwrap();
    assert_eq!(one.interview("sends", json!({ "name": "n3" }), accept).await.questions.len(), 1);
}

async fn a_name_belongs_to_one_session_at_a_time(lane: Lane) {
    let server = server().0.build().unwrap();
    let host = lane.host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(Profile::named("bob")).await);
    ann.interview("sends", json!({ "name": "n" }), accept).await;
    let stolen = bob.interview("sends", json!({ "name": "n" }), accept).await;
    assert_eq!((stolen.reply.code(), stolen.questions.len()), (-32603, 0));
}
