//! The kit against servers that do right, and against handlers and transports that do wrong.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use mcp_wire::{MessageReader, Revision, Transport, TransportError};
use serde_json::{Value, json};

use super::*;
use crate::{Elicited, Form, HandlerError, NoArguments, RequestContext, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

fn accepted(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

fn named(answer: Elicited<Name>) -> String {
    answer.accepted().map_or_else(|| "nobody".to_owned(), |answer| answer.name)
}

fn server_with(tool: Tool) -> Server {
    Server::builder("kit", "1").tool(tool).build().unwrap()
}

/// Asks for two names at once, then for a third whose question has the first two in it.
fn introduce() -> Tool {
    Tool::typed("introduce", |_: NoArguments, context: RequestContext| async move {
        context.progress(1.0, None, None);
        let form = |text: &str| Form::<Name>::new(text);
        let (guest, host) = context.ask_all((("guest", form("Who comes?")), ("host", form("Who invites?"))))?;
        let (guest, host) = (named(guest), named(host));
        let friend = context.ask("friend", form(&format!("Who else knows {guest} and {host}?")))?;
        Ok::<_, HandlerError>(format!("{guest}, {host}, {}", named(friend)))
    })
}

#[tokio::test]
async fn one_test_holds_for_a_client_of_every_revision() {
    let add = Tool::plain("add", |arguments: Name| format!("{} is here", arguments.name));
    let server = server_with(add);
    let clients = TestClient::of_every_revision(&server).await.unwrap();
    assert_eq!(clients.len(), Revision::ALL.len());
    for client in clients {
        let reply = client.call_tool("add", json!({ "name": "Ada" })).await.unwrap();
        assert_eq!(reply.text().unwrap(), "Ada is here", "{client:?}");
        let refused = client.call_tool("subtract", json!({})).await.unwrap();
        assert_eq!(refused.error_code().unwrap(), -32602, "{client:?}");
    }
}

#[tokio::test]
async fn a_closure_answers_the_questions_of_both_eras() {
    let server = server_with(introduce());
    let clients = TestClient::of_every_revision(&server).await.unwrap();
    for client in clients.into_iter().filter(|client| client.revision().rules().elicitation) {
        let revision = client.revision();
        let client = client.answering(|asked| accepted(asked.params["message"].as_str().unwrap_or_default()));
        let reply = client.call_tool("introduce", json!({})).await.unwrap();
        let third = "Who else knows Who comes? and Who invites??";
        assert_eq!(reply.text().unwrap(), format!("Who comes?, Who invites?, {third}"), "{revision}");
        let asked: Vec<_> = reply.questions.iter().map(|question| &question.params["message"]).collect();
        assert_eq!(asked, ["Who comes?", "Who invites?", third], "{revision}");
    }
}

#[tokio::test]
async fn a_question_without_an_answer_fails_the_request() {
    let server = server_with(introduce());
    let legacy = TestClient::legacy(&server, Revision::NEWEST_LEGACY).await.unwrap();
    for client in [legacy, TestClient::modern(&server)] {
        let error = client.call_tool("introduce", json!({})).await.unwrap_err();
        assert!(error.to_string().starts_with("nobody answers this question"), "{error}");
    }
}

#[tokio::test]
async fn a_client_sees_the_notifications_of_its_request_and_the_notices_of_its_session() {
    let server = server_with(introduce());
    let client = TestClient::legacy(&server, Revision::NEWEST_LEGACY).await.unwrap().answering(|_| accepted("Ada"));
    let call = json!({ "name": "introduce", "arguments": {}, "_meta": { "progressToken": 7 } });
    let reply = client.request("tools/call", call).await.unwrap();
    assert_eq!(reply.notifications.len(), 1, "{reply:?}");
    assert_eq!(reply.notifications[0]["params"]["progressToken"], 7);

    assert_eq!(client.notices().unwrap(), [Value::Null; 0]);
    server.tools_changed();
    let notices = client.notices().unwrap();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0]["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_revision_that_the_server_does_not_serve_is_an_error() {
    let server = Server::builder("kit", "1").revisions([Revision::V2025_11_25]).build().unwrap();
    let error = TestClient::legacy(&server, Revision::V2025_06_18).await.unwrap_err();
    assert_eq!(error.to_string(), "the server offers \"2025-11-25\" instead of 2025-06-18");
}

#[tokio::test]
async fn a_rehearsal_gives_one_answer_more_each_time() {
    let server = server_with(introduce());
    let answers = [("host", accepted("Ada")), ("guest", accepted("Grace")), ("friend", accepted("Alan"))];
    let rehearsal = rehearse(&server, "introduce", json!({}), &answers).await.unwrap();
    let asked: Vec<Vec<_>> = rehearsal
        .attempts
        .iter()
        .map(|attempt| attempt.questions.iter().filter_map(|asked| asked.key.as_deref()).collect())
        .collect();
    assert_eq!(asked, [vec!["guest", "host"], vec!["guest"], vec!["friend"], vec![]]);
    assert_eq!(rehearsal.response().unwrap()["result"]["content"][0]["text"], "Grace, Ada, Alan");

    let unfinished = rehearse(&server, "introduce", json!({}), &answers[..1]).await.unwrap();
    assert!(unfinished.response().unwrap_err().to_string().starts_with("answers are missing"));
}

/// Words the question under `changing` differently each time it runs.
fn fickle(changing: &'static str) -> Server {
    let runs = AtomicU32::new(0);
    server_with(Tool::typed("fickle", move |_: NoArguments, context: RequestContext| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        let form = |key: &str| Form::<Name>::new(if key == changing { format!("{run}") } else { "Who?".to_owned() });
        let answers = context.ask_all((("first", form("first")), ("second", form("second"))));
        async move { answers.map(|(first, second)| named(first) + &named(second)) }
    }))
}

#[tokio::test]
async fn a_rehearsal_fails_of_a_question_that_changes() {
    let answers = [("first", accepted("Ada")), ("second", accepted("Alan"))];
    let error = rehearse(&fickle("first"), "fickle", json!({}), &answers).await.unwrap_err();
    assert!(error.to_string().starts_with("\"first\" was answered and is asked again"), "{error}");
    let error = rehearse(&fickle("second"), "fickle", json!({}), &answers).await.unwrap_err();
    assert!(error.to_string().starts_with("a question has changed"), "{error}");
    rehearse(&fickle("neither"), "fickle", json!({}), &answers).await.unwrap().response().unwrap();
}

#[tokio::test]
async fn a_rehearsal_fails_of_an_answer_that_nobody_asked_for() {
    let answers = [("guest", accepted("Grace")), ("enemy", accepted("Nobody"))];
    let error = rehearse(&server_with(introduce()), "introduce", json!({}), &answers).await.unwrap_err();
    assert!(error.to_string().starts_with("after 1 answers \"enemy\" is not asked"), "{error}");
}

#[tokio::test]
async fn a_script_speaks_with_a_server_over_a_pair() {
    let (ours, theirs) = pair(4);
    let serving = crate::serve(server_with(introduce()), theirs);
    let speaking = async {
        let mut script = Script::over(ours);
        script.send_raw("{").await?;
        script.expect(&json!({ "error": { "code": -32700 } })).await?;
        script.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await?;
        let wrong = script.expect(&json!({ "id": 2 })).await.unwrap_err();
        assert!(wrong.to_string().starts_with("expected was {\"id\":2}; what came is"), "{wrong}");
        script.close().await?;
        script.expect_end().await
    };
    let (served, spoken) = tokio::join!(serving, speaking);
    served.unwrap();
    spoken.unwrap();
}

#[tokio::test]
async fn a_pair_keeps_the_promises_of_a_transport() {
    for frames in [1, 3, 100] {
        check_transport(|| pair(frames)).await.unwrap();
    }
}

/// A pair whose reader does what it must not.
struct Faulty(ChannelPipe, Fault);
struct FaultyReader(ChannelReader, Fault, VecDeque<Bytes>);

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A frame that is at hand is lost with the first read of it.
    Loses,
    /// Two frames change places.
    Swaps,
    /// The last frame comes twice.
    Repeats,
    /// Frames arrive without their last byte.
    Cuts,
}

impl Transport for Faulty {
    type Reader = FaultyReader;
    type Writer = ChannelWriter;

    fn split(self) -> (FaultyReader, ChannelWriter) {
        let (reader, writer) = self.0.split();
        (FaultyReader(reader, self.1, VecDeque::new()), writer)
    }
}

impl MessageReader for FaultyReader {
    async fn next(&mut self) -> Result<Option<Bytes>, TransportError> {
        if let Some(frame) = self.2.pop_front() {
            return Ok(Some(frame));
        }
        let frame = self.0.next().await?;
        let Some(frame) = frame else { return Ok(None) };
        match self.1 {
            Fault::Loses => {
                // Whoever abandons the read here has lost the frame.
                tokio::task::yield_now().await;
                Ok(Some(frame))
            }
            Fault::Swaps => {
                let Some(second) = self.0.next().await? else { return Ok(Some(frame)) };
                self.2.push_back(frame);
                Ok(Some(second))
            }
            Fault::Repeats => {
                self.2.push_back(frame.clone());
                Ok(Some(frame))
            }
            Fault::Cuts => Ok(Some(frame.slice(..frame.len() - 1))),
        }
    }
}

#[tokio::test]
async fn a_transport_that_breaks_a_promise_is_found_out() {
    for fault in [Fault::Loses, Fault::Swaps, Fault::Repeats, Fault::Cuts] {
        let checked = check_transport(|| {
            let (one, other) = pair(100);
            (one, Faulty(other, fault))
        });
        let error = checked.await.expect_err("a faulty transport passed");
        let told = error.to_string();
        assert!(told.starts_with("frame") || told.starts_with("the end came"), "{fault:?}: {told}");
    }
}
