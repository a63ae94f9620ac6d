//! Asking: one handler, whose questions reach the client as its revision has it.
//!
//! What is peculiar to an era is in `request_state.rs` (modern) and `asking_in_place.rs` (legacy).
//!
//! Spec: 2026-07-28 basic/patterns/mrtr; client/elicitation, client/sampling, client/roots

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_core::{
    Elicited, Form, HandlerError, Limits, ListRoots, NoArguments, RequestContext, Sample, Server, Tool, Visit,
};
use mcp_tests::{Lane, Profile, Question, lanes};
use mcp_wire::types::{CreateMessageParams, SamplingMessage, Tool as OfferedTool};
use serde::Deserialize;
use serde_json::{Value, json};

lanes! {
    everywhere {
        a_form_is_filled_in,
        a_form_may_be_declined_or_closed,
        a_link_is_agreed_to,
        a_model_is_asked,
        folders_are_asked_for,
        several_questions_go_out_at_once,
        questions_of_a_kind_go_out_at_once,
        one_question_may_follow_from_the_answer_to_another,
        a_question_asked_twice_is_one_question,
        two_questions_under_one_key_are_the_handlers_fault,
        a_question_with_a_changing_wording_is_made_once,
        what_was_made_once_stays,
        a_note_survives_from_attempt_to_attempt,
        a_changed_question_is_asked_anew,
        a_swallowed_question_is_the_handlers_fault,
        a_kind_that_was_not_declared_is_never_asked,
        an_answer_that_does_not_fit_is_refused,
        questions_without_end_are_ended,
        too_many_questions_at_a_time_are_refused,
    }
}

/// A tool without arguments whose handler may ask.
pub(crate) fn asking<W>(name: &str, handler: impl Fn(RequestContext) -> W + Send + Sync + 'static) -> Tool
where
    W: Future<Output = Result<String, HandlerError>> + Send + 'static,
{
    Tool::typed(name, move |_: NoArguments, context: RequestContext| handler(context))
}

#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Name {
    /// What to call you
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) age: Option<u8>,
}

pub(crate) fn name_tool() -> Tool {
    asking("name", |context| async move {
        Ok(match context.ask("who", Form::<Name>::new("Who are you?"))? {
            Elicited::Accepted(Name { name, age }) => format!("{name} {age:?}"),
            Elicited::Declined => "declined".to_owned(),
            Elicited::Cancelled => "cancelled".to_owned(),
        })
    })
}

fn roots_named(names: &[&str]) -> Value {
    let roots: Vec<Value> =
        names.iter().map(|name| json!({ "uri": format!("file:///{name}"), "name": name })).collect();
    json!({ "roots": roots })
}

async fn a_form_is_filled_in(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(name_tool())).await;
    let interview = client
        .interview("name", json!({}), |_| json!({ "action": "accept", "content": { "name": "Ann", "age": 7 } }))
        .await;
    assert_eq!(interview.reply.tool_text(), "Ann Some(7)");
    let [question] = interview.questions.as_slice() else { panic!("{:?}", interview.questions) };
    assert_eq!(question.method, "elicitation/create");
    assert_eq!(question.params["mode"], "form");
    assert_eq!(question.params["message"], "Who are you?");
    let schema = &question.params["requestedSchema"];
    assert_eq!(schema["required"], json!(["name"]));
    assert_eq!(schema["properties"]["name"], json!({ "type": "string", "description": "What to call you" }));
    assert_eq!(schema["properties"]["age"]["type"], "integer");
}

async fn a_form_may_be_declined_or_closed(lane: Lane) {
    let client = lane.connect(Server::builder("s", "1").tool(name_tool())).await;
    for (action, text) in [("decline", "declined"), ("cancel", "cancelled")] {
        let interview = client.interview("name", json!({}), |_| json!({ "action": action })).await;
        assert_eq!(interview.reply.tool_text(), text);
    }
}

async fn a_link_is_agreed_to(lane: Lane) {
    let tool = asking("visit", |context| async move {
        Ok(format!("{:?}", context.ask("go", Visit::new("Log in there", "https://example.com/login"))?))
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    for (answer, text) in [
        (json!({ "action": "accept" }), "Accepted(())"),
        (json!({ "action": "decline" }), "Declined"),
        (json!({ "action": "cancel" }), "Cancelled"),
    ] {
        let interview = client.interview("visit", json!({}), |_| answer.clone()).await;
        assert_eq!(interview.reply.tool_text(), text);
        let question = &interview.questions[0];
        assert_eq!(question.params["mode"], "url");
        assert_eq!(question.params["url"], "https://example.com/login");
        // The legacy era gives each an id of its own; the modern one has none.
        assert_eq!(question.params["elicitationId"].is_string(), !lane.is_modern());
    }
}

async fn a_model_is_asked(lane: Lane) {
    let tool = asking("think", |context| async move {
        let question = Sample(CreateMessageParams::new(vec![SamplingMessage::user_text("What is it?")], 50));
        Ok(context.ask("thought", question)?.text().unwrap_or_default().to_owned())
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let answer = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "A cat" } });
    let interview = client.interview("think", json!({}), |_| answer.clone()).await;
    assert_eq!(interview.reply.tool_text(), "A cat");
    let question = &interview.questions[0];
    assert_eq!(question.method, "sampling/createMessage");
    assert_eq!(question.params["maxTokens"], 50);
    assert_eq!(question.params["messages"][0]["content"]["text"], "What is it?");
}

async fn folders_are_asked_for(lane: Lane) {
    let tool = asking("look", |context| async move {
        let roots = context.ask("roots", ListRoots)?;
        Ok(roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(" "))
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let interview = client.interview("look", json!({}), |_| roots_named(&["a", "b"])).await;
    assert_eq!(interview.reply.tool_text(), "file:///a file:///b");
    let expected = Question { method: "roots/list".to_owned(), params: json!({}) };
    assert_eq!(interview.questions, [expected]);
}

async fn several_questions_go_out_at_once(lane: Lane) {
    let tool = asking("both", |context| async move {
        let (name, roots) = context.ask_all((("who", Form::<Name>::new("Who?")), ("where", ListRoots)))?;
        Ok(format!("{} in {}", name.accepted().map(|name| name.name).unwrap_or_default(), roots.len()))
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let accept = json!({ "action": "accept", "content": { "name": "Ann" } });
    if lane.is_modern() {
        let reply = client.call("both", json!({})).await;
        let asked = reply.result()["inputRequests"].as_object().unwrap();
        assert_eq!(asked.keys().collect::<Vec<_>>(), ["where", "who"]);
    } else {
        let mut call = client.start_tool("both", json!({}));
        let (first, second) = (call.server_request().await, call.server_request().await);
        assert_eq!((&first["method"], &second["method"]), (&json!("elicitation/create"), &json!("roots/list")));
        assert_ne!(first["id"], second["id"]);
        // Answers come in whichever order they like.
        client.answer(&second, roots_named(&["a"])).await;
        call.is_quiet().await;
        client.answer(&first, accept.clone()).await;
        assert_eq!(call.reply().await.tool_text(), "Ann in 1");
    }
    let interview = client
        .interview("both", json!({}), |question| match question.method.as_str() {
            "roots/list" => roots_named(&["a", "b"]),
            _ => accept.clone(),
        })
        .await;
    assert_eq!((interview.reply.tool_text(), interview.questions.len()), ("Ann in 2", 2));
}

async fn questions_of_a_kind_go_out_at_once(lane: Lane) {
    let tool = asking("many", |context| async move {
        let visits = (0..3).map(|n| (format!("visit {n}"), Visit::new("Go", format!("https://example.com/{n}"))));
        let answers = context.ask_many(visits)?;
        Ok(format!("{answers:?}"))
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let interview = client
        .interview("many", json!({}), |question| {
            let declined = question.params["url"] == "https://example.com/1";
            json!({ "action": if declined { "decline" } else { "accept" } })
        })
        .await;
    assert_eq!(interview.reply.tool_text(), "[Accepted(()), Declined, Accepted(())]", "in the order of the questions");
    assert_eq!(interview.questions.len(), 3);
}

async fn one_question_may_follow_from_the_answer_to_another(lane: Lane) {
    let tool = asking("chain", |context| async move {
        let first = context.ask("first", ListRoots)?;
        let uri = first[0].uri.clone();
        context.ask("second", Visit::new(format!("Open {uri}?"), "https://example.com"))?;
        let third = context.ask("third", Form::<Name>::new(format!("Who may see {uri}?")))?;
        Ok(format!("{uri} {}", third.accepted().map(|name| name.name).unwrap_or_default()))
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let interview = client
        .interview("chain", json!({}), |question| match question.method.as_str() {
            "roots/list" => roots_named(&["a"]),
            _ => json!({ "action": "accept", "content": { "name": "Bob" } }),
        })
        .await;
    assert_eq!(interview.reply.tool_text(), "file:///a Bob");
    let messages: Vec<_> = interview.questions.iter().map(|question| question.params["message"].clone()).collect();
    assert_eq!(messages, [json!(null), json!("Open file:///a?"), json!("Who may see file:///a?")]);
}

async fn a_question_asked_twice_is_one_question(lane: Lane) {
    let tool = asking("twice", |context| async move {
        let (one, other) = context.ask_all((("r", ListRoots), ("r", ListRoots)))?;
        Ok(format!("{} {}", one.len(), other.len()))
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let interview = client.interview("twice", json!({}), |_| roots_named(&["a"])).await;
    assert_eq!((interview.reply.tool_text(), interview.questions.len()), ("1 1", 1));
}

async fn two_questions_under_one_key_are_the_handlers_fault(lane: Lane) {
    let tool = asking("clash", |context| async move {
        context.ask_all((("k", ListRoots), ("k", Visit::new("Go", "https://example.com"))))?;
        Ok(String::new())
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let interview = client.interview("clash", json!({}), |_| panic!("nothing is asked")).await;
    assert_eq!((interview.reply.code(), interview.reply.message()), (-32603, "internal error"));
}

async fn a_question_with_a_changing_wording_is_made_once(lane: Lane) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let tool = asking("nonce", move |context| {
        let count = Arc::clone(&count);
        async move {
            let answer = context.ask_with("k", || {
                let nonce = count.fetch_add(1, Ordering::Relaxed);
                Visit::new(format!("Nonce {nonce}"), "https://example.com")
            })?;
            context.ask("then", ListRoots)?;
            Ok(format!("{answer:?}"))
        }
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let interview = client
        .interview("nonce", json!({}), |question| match question.method.as_str() {
            "roots/list" => roots_named(&[]),
            _ => json!({ "action": "accept" }),
        })
        .await;
    assert_eq!(interview.reply.tool_text(), "Accepted(())");
    assert_eq!((interview.questions.len(), made.load(Ordering::Relaxed)), (2, 1));
}

async fn what_was_made_once_stays(lane: Lane) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let tool = asking("once", move |context| {
        let count = Arc::clone(&count);
        async move {
            let number = context.once("number", || count.fetch_add(1, Ordering::Relaxed))?;
            context.ask("a", Visit::new(format!("Is it {number}?"), "https://example.com"))?;
            context.ask("b", ListRoots)?;
            Ok(number.to_string())
        }
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    for round in 0..2 {
        let interview = client
            .interview("once", json!({}), |question| match question.method.as_str() {
                "roots/list" => roots_named(&[]),
                _ => json!({ "action": "accept" }),
            })
            .await;
        assert_eq!(interview.reply.tool_text(), round.to_string());
        assert_eq!(interview.questions[0].params["message"], format!("Is it {round}?"));
    }
    assert_eq!(made.load(Ordering::Relaxed), 2, "once for each call");
}

async fn a_note_survives_from_attempt_to_attempt(lane: Lane) {
    let tool = asking("note", |context| async move {
        let mut notes: Vec<String> = context.note().unwrap_or_default();
        notes.push(format!("attempt {}", notes.len()));
        context.keep_note(&notes)?;
        context.ask("a", ListRoots)?;
        context.ask("b", Visit::new("Go", "https://example.com"))?;
        Ok(notes.join(", "))
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let interview = client
        .interview("note", json!({}), |question| match question.method.as_str() {
            "roots/list" => roots_named(&[]),
            _ => json!({ "action": "accept" }),
        })
        .await;
    assert_eq!(interview.reply.tool_text(), "attempt 0, attempt 1, attempt 2");
}

async fn a_changed_question_is_asked_anew(lane: Lane) {
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let tool = asking("changes", move |context| {
        let attempt = count.fetch_add(1, Ordering::Relaxed).min(1);
        async move {
            Ok(format!("{:?}", context.ask("k", Visit::new(format!("Wording {attempt}"), "https://example.com"))?))
        }
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let interview = client
        .interview("changes", json!({}), |question| {
            let first = question.params["message"] == "Wording 0";
            json!({ "action": if first { "accept" } else { "decline" } })
        })
        .await;
    assert_eq!(interview.reply.tool_text(), "Declined", "the first answer was to another question");
    assert_eq!(interview.questions.len(), 2);
}

async fn a_swallowed_question_is_the_handlers_fault(lane: Lane) {
    let server = Server::builder("s", "1")
        .tool(asking("ignores", |context| async move {
            Ok(context.ask("k", ListRoots).map_or_else(|_| "no matter".to_owned(), |roots| roots.len().to_string()))
        }))
        .tool(asking("replaces", |context| async move {
            context.ask("k", ListRoots).map(|_| String::new()).map_err(|_| HandlerError::tell("not now"))
        }));
    let client = lane.connect(server).await;
    for tool in ["ignores", "replaces"] {
        let reply = client.call(tool, json!({})).await;
        assert_eq!((reply.code(), reply.message(), reply.before.len()), (-32603, "internal error", 0), "{tool}");
    }
}

/// Checklist 22: input kinds the request did not declare are never asked. Checklist 10: a tool raising a missing
/// capability from inside its handler still yields HTTP 400 with an object in `requiredCapabilities`.
async fn a_kind_that_was_not_declared_is_never_asked(lane: Lane) {
    let sample = || CreateMessageParams::new(vec![SamplingMessage::user_text("?")], 5);
    let server = Server::builder("s", "1")
        .tool(name_tool())
        .tool(asking("visit", |context| async move {
            Ok(format!("{:?}", context.ask("k", Visit::new("Go", "https://example.com"))?))
        }))
        .tool(asking("look", |context| async move { Ok(context.ask("k", ListRoots)?.len().to_string()) }))
        .tool(asking("think", move |context| async move {
            Ok(context.ask("k", Sample(sample()))?.text().unwrap_or_default().to_owned())
        }))
        .tool(asking("act", move |context| async move {
            let params = sample().with_tool(OfferedTool::new("t", json!({ "type": "object" })));
            Ok(context.ask("k", Sample(params))?.text().unwrap_or_default().to_owned())
        }))
        .build()
        .unwrap();
    for (declared, tool, required) in [
        (json!({}), "name", json!({ "elicitation": {} })),
        (json!({}), "look", json!({ "roots": {} })),
        (json!({}), "think", json!({ "sampling": {} })),
        (json!({}), "act", json!({ "sampling": { "tools": {} } })),
        (json!({ "sampling": {} }), "act", json!({ "sampling": { "tools": {} } })),
        (json!({ "elicitation": {} }), "visit", json!({ "elicitation": { "url": {} } })),
        (json!({ "elicitation": { "form": {} } }), "visit", json!({ "elicitation": { "url": {} } })),
        (json!({ "elicitation": { "url": {} } }), "name", json!({ "elicitation": {} })),
        (json!({ "roots": {}, "sampling": {} }), "name", json!({ "elicitation": {} })),
    ] {
        let client = lane.host(&server).connect_as(Profile::able(declared.clone())).await;
        let reply = client.call(tool, json!({})).await;
        assert_eq!(reply.before, Vec::<Value>::new(), "{tool} asked a client with {declared}");
        if lane.is_modern() {
            assert_eq!(reply.code_at(400), -32021, "{tool} {declared}");
            assert_eq!(reply.error()["data"], json!({ "requiredCapabilities": required }), "{tool} {declared}");
        } else {
            assert!(reply.is_tool_error(), "the model is told: {}", reply.text);
            let told = reply.result()["content"][0]["text"].as_str().unwrap();
            assert!(told.ends_with(&required.to_string()), "{told} lacks {required}");
        }
    }
    // What is declared in the shortest way can be asked.
    for (declared, tool) in [(json!({ "elicitation": {} }), "name"), (json!({ "elicitation": { "url": {} } }), "visit")]
    {
        let client = lane.host(&server).connect_as(Profile::able(declared)).await;
        let interview = client.interview(tool, json!({}), |_| json!({ "action": "decline" })).await;
        assert_eq!(interview.questions.len(), 1, "{tool}");
    }
}

async fn an_answer_that_does_not_fit_is_refused(lane: Lane) {
    let server = Server::builder("s", "1")
        .tool(name_tool())
        .tool(asking("look", |context| async move { Ok(context.ask("where", ListRoots)?.len().to_string()) }));
    let client = lane.connect(server).await;
    let mut answers = vec![
        ("name", json!({})),
        ("name", json!({ "action": "agree" })),
        ("name", json!({ "action": 7 })),
        ("name", json!({ "action": "accept" })),
        ("name", json!({ "action": "accept", "content": {} })),
        ("name", json!({ "action": "accept", "content": { "name": 7 } })),
        ("name", json!({ "action": "accept", "content": { "name": "Ann", "age": "old" } })),
        ("name", json!({ "action": "accept", "content": { "name": "Ann", "age": 1000 } })),
        ("name", json!({ "action": "accept", "content": ["Ann"] })),
        ("look", json!({})),
        ("look", json!({ "roots": {} })),
        ("look", json!({ "roots": [7] })),
        ("look", json!({ "roots": [{}] })),
    ];
    if lane.is_modern() {
        // As a response these would be no message at all.
        let odd =
            [json!(null), json!(7), json!("accept"), json!([]), json!(["accept", { "name": "Ann" }]), json!(true)];
        answers.extend(odd.into_iter().map(|answer| ("name", answer)));
    }
    for (tool, answer) in answers {
        let interview = client.interview(tool, json!({}), |_| answer.clone()).await;
        let reply = interview.reply;
        assert_eq!(reply.code_at(200), -32602, "{answer}: {}", reply.text);
        assert!(reply.message().contains(if tool == "name" { "who" } else { "where" }), "{}", reply.text);
    }
}

async fn questions_without_end_are_ended(lane: Lane) {
    let tool = asking("endless", |context| async move {
        for round in 0.. {
            context.ask(&format!("k{round}"), Visit::new(format!("Again {round}"), "https://example.com"))?;
        }
        Ok(String::new())
    });
    let mut limits = Limits::default();
    limits.rounds = 4;
    let client = lane.connect(Server::builder("s", "1").limits(limits).tool(tool)).await;
    let interview = client.interview("endless", json!({}), |_| json!({ "action": "accept" })).await;
    assert_eq!((interview.reply.code(), interview.questions.len()), (-32603, 4));
    assert!(interview.reply.message().contains('4'), "{}", interview.reply.text);
}

async fn too_many_questions_at_a_time_are_refused(lane: Lane) {
    for (most, fits) in [(3, true), (2, false)] {
        let tool = asking("many", |context| async move {
            let visits = (0..3).map(|n| (format!("visit {n}"), Visit::new("Go", format!("https://example.com/{n}"))));
            Ok(context.ask_many(visits)?.len().to_string())
        });
        let mut limits = Limits::default();
        limits.questions = most;
        let client = lane.connect(Server::builder("s", "1").limits(limits).tool(tool)).await;
        let interview = client.interview("many", json!({}), |_| json!({ "action": "accept" })).await;
        if fits {
            assert_eq!(interview.reply.tool_text(), "3");
        } else {
            assert_eq!((interview.reply.code(), interview.questions.len()), (-32603, 0));
        }
    }
}
