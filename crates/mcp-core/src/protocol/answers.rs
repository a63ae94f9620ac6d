//! Questions of a call and the answers it has so far.
//!
//! Why here: a handler is run again with more answers each time, in both eras and in tasks; what counts as an answer is
//! decided here alone.
//! Invariants: an answer counts only for the very question it was given to (a digest pins them together); answers
//! nobody asked for are ignored; keys asked in one attempt are unique.
//! Spec: 2026-07-28 basic/patterns/mrtr, "Server Requirements"

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_wire::{RawJson, RpcError};
use serde::{Deserialize, Serialize};

use super::digest;
use super::few::Few;

/// What survives from one round of a call to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Remembered {
    /// Rounds that were asked so far.
    #[serde(rename = "r")]
    pub(crate) round: u32,
    /// The questions of the last round, by key.
    #[serde(rename = "q", skip_serializing_if = "Few::is_empty")]
    pub(crate) asked: Few<QuestionDigest>,
    /// Every answer so far, by key.
    #[serde(rename = "a", skip_serializing_if = "Few::is_empty")]
    pub(crate) answered: Few<Answered>,
    /// The handler's own state.
    #[serde(rename = "n", skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<RawJson>,
    /// How many log messages the client has already been sent.
    #[serde(rename = "l", skip_serializing_if = "is_zero")]
    pub(crate) logged: u32,
    /// The wording of questions whose wording must not be made again.
    #[serde(rename = "w", skip_serializing_if = "Few::is_empty")]
    pub(crate) worded: Few<RawJson>,
    /// Values the handler made once.
    #[serde(rename = "o", skip_serializing_if = "Few::is_empty")]
    pub(crate) once: Few<RawJson>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    #[serde(rename = "q")]
    question: QuestionDigest,
    #[serde(rename = "v")]
    value: RawJson,
}

/// Tells questions apart: method and parameters, however they were written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct QuestionDigest(String);

impl QuestionDigest {
    pub(crate) fn of(method: &str, params: &RawJson) -> Self {
        let digest = digest::of(params);
        Self(format!("{method} {}", URL_SAFE_NO_PAD.encode(digest)))
    }
}

/// A question that was asked and has no answer yet.
#[derive(Clone, Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) key: String,
    pub(crate) digest: QuestionDigest,
    pub(crate) method: &'static str,
    pub(crate) params: RawJson,
}

/// The answers of one call and the questions of its current attempt.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) remembered: Remembered,
    /// Answers that came without a state: taken for whichever question has their key, as in a first round.
    unpinned: Few<RawJson>,
    open: Vec<OpenQuestion>,
}

impl Answers {
    /// The answers of a request: what its state remembers, and what the client answers now.
    ///
    /// # Errors
    /// -32602 when `inputResponses` is not an object.
    pub(crate) fn received(remembered: Option<Remembered>, responses: Option<&RawJson>) -> Result<Self, RpcError> {
        let responses: BTreeMap<String, RawJson> = match responses {
            Some(responses) if responses.as_str() != "null" => responses.parse().map_err(|_| {
                RpcError::invalid_params(
                    "\"inputResponses\" must be an object that maps each question's key to its answer",
                )
            })?,
            _ => BTreeMap::new(),
        };
        let Some(remembered) = remembered else {
            return Ok(Self { unpinned: responses.into(), ..Self::default() });
        };
        Ok(Self::resumed(remembered, responses))
    }

    /// The answers of a call that waited for them somewhere else; those that nobody asked for are ignored.
    pub(crate) fn resumed(mut remembered: Remembered, given: BTreeMap<String, RawJson>) -> Self {
        for (key, value) in given {
            if let Some(question) = remembered.asked.remove(&key) {
                remembered.answered.insert(key, Answered { question, value });
            }
        }
        Self { remembered, ..Self::default() }
    }

    /// The answer to this question, if there is one.
    pub(crate) fn answer(&self, key: &str, question: &QuestionDigest) -> Option<&RawJson> {
        match self.remembered.answered.get(key) {
            Some(answered) if answered.question == *question => Some(&answered.value),
            Some(_) => None,
            None => self.unpinned.get(key),
        }
    }

    /// Records a question without an answer. Asking it twice in one attempt is one question.
    ///
    /// # Errors
    /// A text for the log when the same key is asked with two different questions.
    pub(crate) fn ask(&mut self, question: OpenQuestion) -> Result<(), &'static str> {
        match self.open.iter().find(|open| open.key == question.key) {
            Some(open) if open.digest == question.digest => Ok(()),
            Some(_) => Err("two different questions were asked under one key in the same attempt"),
            None => {
                self.open.push(question);
                Ok(())
            }
        }
    }

    /// The questions of this attempt that lack an answer.
    pub(crate) fn open(&self) -> &[OpenQuestion] {
        &self.open
    }

    /// Takes the open questions to ask them: a new round begins.
    pub(crate) fn begin_round(&mut self) -> Vec<OpenQuestion> {
        let open = std::mem::take(&mut self.open);
        self.remembered.round += 1;
        self.remembered.asked = open.iter().map(|open| (open.key.clone(), open.digest.clone())).collect();
        // What came unpinned and was not refused is an answer like any other from here on.
        open
    }

    /// Records an answer that was waited for in place.
    pub(crate) fn give(&mut self, question: OpenQuestion, value: RawJson) {
        self.remembered.asked.remove(&question.key);
        self.remembered.answered.insert(question.key, Answered { question: question.digest, value });
    }

    /// An unpinned answer was accepted by its question: keep it for the rounds to come.
    pub(crate) fn pin(&mut self, key: &str, question: &QuestionDigest) {
        if let Some(value) = self.unpinned.remove(key) {
            self.remembered.answered.insert(key.to_owned(), Answered { question: question.clone(), value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(key: &str, text: &str) -> OpenQuestion {
        let params = RawJson::from(serde_json::json!({ "message": text }));
        OpenQuestion {
            key: key.to_owned(),
            digest: QuestionDigest::of("elicitation/create", &params),
            method: "elicitation/create",
            params,
        }
    }

    fn responses(value: serde_json::Value) -> RawJson {
        RawJson::from(value)
    }

    #[test]
    fn an_answer_counts_only_for_the_question_it_was_given_to() {
        let mut first = Answers::default();
        first.ask(question("k", "really?")).unwrap();
        first.begin_round();
        let given = responses(serde_json::json!({ "k": {"action": "accept"} }));
        let second = Answers::received(Some(first.remembered), Some(&given)).unwrap();
        assert!(second.answer("k", &question("k", "really?").digest).is_some());
        assert!(second.answer("k", &question("k", "delete everything?").digest).is_none());
    }

    #[test]
    fn answers_to_nothing_that_was_asked_are_ignored() {
        let mut first = Answers::default();
        first.ask(question("k", "?")).unwrap();
        first.begin_round();
        let given = responses(serde_json::json!({ "other": {}, "k2": 1 }));
        let second = Answers::received(Some(first.remembered), Some(&given)).unwrap();
        assert!(second.answer("other", &question("other", "?").digest).is_none());
        assert!(second.remembered.asked.get("k").is_some(), "the question stays open");
    }

    #[test]
    fn answers_without_a_state_serve_a_first_round() {
        let given = responses(serde_json::json!({ "k": {"action": "decline"} }));
        let mut answers = Answers::received(None, Some(&given)).unwrap();
        let asked = question("k", "?");
        assert!(answers.answer("k", &asked.digest).is_some());
        answers.pin("k", &asked.digest);
        assert!(answers.answer("k", &asked.digest).is_some());
        assert!(answers.answer("k", &question("k", "!").digest).is_none(), "pinned now");
    }

    #[test]
    fn responses_that_are_no_object_are_refused_and_null_is_none() {
        for bad in [serde_json::json!([]), serde_json::json!("x"), serde_json::json!(1)] {
            assert_eq!(Answers::received(None, Some(&responses(bad))).unwrap_err().code.0, -32602);
        }
        assert!(Answers::received(None, Some(&RawJson::NULL)).is_ok());
    }

    #[test]
    fn one_key_cannot_hold_two_questions() {
        let mut answers = Answers::default();
        answers.ask(question("k", "a")).unwrap();
        answers.ask(question("k", "a")).unwrap();
        assert_eq!(answers.open().len(), 1);
        assert!(answers.ask(question("k", "b")).is_err());
    }

    #[test]
    fn what_is_remembered_survives_its_encoding() {
        let mut answers = Answers::default();
        answers.ask(question("k", "a")).unwrap();
        let open = answers.begin_round();
        answers.give(open.into_iter().next().unwrap(), RawJson::EMPTY_OBJECT);
        answers.remembered.note = Some(RawJson::from(serde_json::json!(7)));
        let text = serde_json::to_string(&answers.remembered).unwrap();
        let again: Remembered = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}
