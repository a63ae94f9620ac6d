//! Answering a server's questions: real requests in one era, `input_required` results in the other.
//!
//! Why here: a handler asks in one way; so does a test answer in one way.

use serde_json::{Map, Value, json};

use crate::call::{Item, Reply};
use crate::client::Client;

/// A question of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

/// A call that was answered to its end.
#[derive(Clone, Debug)]
pub struct Interview {
    /// The last reply, which asks nothing.
    pub reply: Reply,
    /// Every question, in order.
    pub questions: Vec<Question>,
    /// Everything but questions that came before a response, in order.
    pub notices: Vec<Value>,
}

impl Client {
    /// Calls a tool and answers whatever it asks.
    pub async fn interview(&self, tool: &str, arguments: Value, answers: impl FnMut(&Question) -> Value) -> Interview {
        self.interview_for("tools/call", json!({ "name": tool, "arguments": arguments }), answers).await
    }

    /// Sends a request and answers whatever is asked until there is a result or an error.
    ///
    /// # Panics
    /// When the questions never end.
    pub async fn interview_for(
        &self,
        method: &str,
        params: Value,
        mut answers: impl FnMut(&Question) -> Value,
    ) -> Interview {
        let mut interview = Interview { reply: Reply::default(), questions: Vec::new(), notices: Vec::new() };
        let mut retry = params.clone();
        for _ in 0..100 {
            let mut call = self.start(method, retry);
            let mut reply = loop {
                match call.next().await {
                    Some(Item::Request(request)) => {
                        let question = question(&request);
                        self.answer(&request, answers(&question)).await;
                        interview.questions.push(question);
                    }
                    Some(Item::Notification(notice)) => interview.notices.push(notice),
                    Some(Item::Release(_)) => {}
                    Some(Item::Response(reply)) => break reply,
                    None => panic!("the call ended without a response"),
                }
            };
            if reply.response["result"]["resultType"] != "input_required" {
                reply.before = interview.notices.clone();
                interview.reply = reply;
                return interview;
            }
            let mut given = Map::new();
            for (key, asked) in reply.result()["inputRequests"].as_object().into_iter().flatten() {
                let question = question(asked);
                given.insert(key.clone(), answers(&question));
                interview.questions.push(question);
            }
            retry = params.clone();
            retry["inputResponses"] = given.into();
            if let Some(state) = reply.result().get("requestState") {
                retry["requestState"] = state.clone();
            }
        }
        panic!("the questions never end");
    }
}

fn question(asked: &Value) -> Question {
    let method = asked["method"].as_str().expect("a question has a method").to_owned();
    Question { method, params: asked["params"].clone() }
}
