//! Runs a tool through every prefix of a list of answers, and compares what it asks.
//!
//! Why here: a handler runs again with each answer, so a question that is worded differently the next time would be asked
//! for ever; no single run shows that.
//! Invariants: each attempt has exactly one answer more than the one before.

use serde_json::{Map, Value, json};

use super::client::{Asked, questions_of, retried};
use super::{TestClient, TestError};
use crate::Server;

/// What a tool did with each number of answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rehearsal {
    /// The first has no answers, and each one more than the one before.
    pub attempts: Vec<Attempt>,
}

/// One run of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attempt {
    /// What it asked for want of an answer; empty when it finished.
    pub questions: Vec<Asked>,
    /// The response when it finished.
    pub response: Option<Value>,
}

impl Rehearsal {
    /// The response of the last attempt.
    ///
    /// # Errors
    /// When it still asks.
    pub fn response(&self) -> Result<&Value, TestError> {
        let last = self.attempts.last();
        last.and_then(|attempt| attempt.response.as_ref())
            .ok_or_else(|| TestError::new(format!("answers are missing: {:?}", last.map(|attempt| &attempt.questions))))
    }
}

/// Calls a tool with none of the `answers`, then with the first, and so on, and compares the questions.
///
/// An answer is a question's key and the result that answers it, in the order in which they are to be given. Questions
/// that are asked together may be answered in any order, one by one: each attempt but the first has one more.
///
/// ```
/// # use mcp_core::{testing::rehearse, Elicited, Form, HandlerError, NoArguments, RequestContext, Server, Tool};
/// # use serde_json::json;
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name { name: String }
///
/// let greet = Tool::typed("greet", |_: NoArguments, context: RequestContext| async move {
///     let answer = context.ask("name", Form::<Name>::new("Who are you?"))?;
///     let Elicited::Accepted(Name { name }) = answer else { return Err(HandlerError::tell("nobody")) };
///     Ok(format!("Hello, {name}!"))
/// });
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let server = Server::builder("greeter", "1.0.0").tool(greet).build()?;
/// let ada = json!({ "action": "accept", "content": { "name": "Ada" } });
/// let rehearsal = rehearse(&server, "greet", json!({}), &[("name", ada)]).await?;
/// assert_eq!(rehearsal.attempts[0].questions[0].params["message"], "Who are you?");
/// assert_eq!(rehearsal.response()?["result"]["content"][0]["text"], "Hello, Ada!");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// A question that changed from one attempt to the next, was asked again after it was answered, or was not asked any more
/// before it was; an answer to what was not asked; a server that does not serve the newest revision.
pub async fn rehearse(
    server: &Server,
    tool: &str,
    arguments: Value,
    answers: &[(&str, Value)],
) -> Result<Rehearsal, TestError> {
    let client = TestClient::modern(server);
    let params = json!({ "name": tool, "arguments": arguments });
    let mut attempts = Vec::new();
    let mut next = params.clone();
    for given in 0..=answers.len() {
        let round = client.round("tools/call", next.clone()).await?;
        let result = &round.response["result"];
        let asks = result["resultType"] == "input_required";
        let questions = if asks { questions_of(result) } else { Vec::new() };
        let (before, coming) = answers.split_at(given);
        if let Some(((key, _), earlier)) = before.last().zip(attempts.last()) {
            compare(key, before, earlier, &questions, asks)?;
        }
        if let Some((key, answer)) = coming.first() {
            if !questions.iter().any(|question| question.key.as_deref() == Some(*key)) {
                let reason = format!("after {given} answers \"{key}\" is not asked; the tool says {}", round.response);
                return Err(TestError::new(reason));
            }
            next = retried(&params, result, Map::from_iter([((*key).to_owned(), answer.clone())]));
        }
        let response = (!asks).then_some(round.response);
        attempts.push(Attempt { questions, response });
    }
    Ok(Rehearsal { attempts })
}

/// Compares what is asked with one answer more, that of `key`, with what was asked before.
fn compare(
    key: &str,
    answered: &[(&str, Value)],
    earlier: &Attempt,
    questions: &[Asked],
    asks: bool,
) -> Result<(), TestError> {
    let now = |key: &Option<String>| questions.iter().find(|question| question.key == *key);
    for (answered, _) in answered {
        if let Some(again) = now(&Some((*answered).to_owned())) {
            let reason = format!(
                "\"{answered}\" was answered and is asked again, so its wording has changed; a time or a random value in \
                 it goes through `ask_with` or `once`: {again:?}"
            );
            return Err(TestError::new(reason));
        }
    }
    for before in earlier.questions.iter().filter(|question| question.key.as_deref() != Some(key)) {
        match now(&before.key) {
            Some(after) if after == before => {}
            Some(after) => return Err(TestError::new(format!("a question has changed from {before:?} to {after:?}"))),
            None if asks => return Err(TestError::new(format!("a question is not asked any more: {before:?}"))),
            // The tool came to its end without it.
            None => {}
        }
    }
    Ok(())
}
