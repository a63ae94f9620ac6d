//! What a server can ask a client: its user by a form or a link, its model, its folders.
//!
//! Why here: a question knows its wire form in every revision, what it needs of the client, and what counts as an answer.
//! Invariants: an answer is checked against the question as it was asked; nothing unchecked reaches a handler.
//! Spec: 2026-07-28 client/elicitation, client/sampling, client/roots

mod visit;

use std::marker::PhantomData;

use mcp_wire::capability::ClientCapability;
use mcp_wire::types::{CreateMessageParams, CreateMessageResult, ElicitAction, ElicitResult, ListRootsResult, Root};
use mcp_wire::{Method, RawJson, Revision};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::form::FormSchema;
use crate::{HandlerError, RequestContext};

pub use self::visit::Visit;

/// A question to the client. The kinds that the protocol knows are in this module.
pub trait Question: Send {
    /// What the handler gets.
    type Answer: Send + 'static;

    /// The method that asks it.
    const METHOD: &'static str;

    /// What the client must have declared.
    fn needs(&self) -> Vec<ClientCapability>;

    /// The question's parameters under a revision.
    ///
    /// # Errors
    /// When the revision has no form for it.
    fn params(&self, revision: Revision) -> Result<RawJson, HandlerError>;

    /// Checks an answer against the question as the newest revision words it.
    ///
    /// # Errors
    /// What does not fit, for whoever answered.
    fn accept(asked: &RawJson, given: &RawJson) -> Result<Self::Answer, String>;
}

/// What a user made of a form or a link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the user's choices")]
pub enum Elicited<T> {
    /// Filled in, or agreed to.
    Accepted(T),
    /// Refused.
    Declined,
    /// Closed without a decision.
    Cancelled,
}

impl<T> Elicited<T> {
    /// What was accepted, if anything.
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(value) => Some(value),
            Self::Declined | Self::Cancelled => None,
        }
    }
}

/// A form for the user, whose content decodes into `T`.
///
/// Never ask for secrets in a form: use [`Visit`].
#[derive(Clone, Debug)]
pub struct Form<T> {
    message: String,
    schema: Result<FormSchema, String>,
    content: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> Form<T> {
    /// A form whose fields are those of the struct `T`. Allowed are strings, numbers, booleans, unit enums and vectors of
    /// unit enums; anything else fails when the form is asked.
    #[cfg(feature = "schemars")]
    pub fn new(message: impl Into<String>) -> Self
    where
        T: schemars::JsonSchema,
    {
        Self {
            message: message.into(),
            schema: FormSchema::of::<T>().map_err(|error| error.to_string()),
            content: PhantomData,
        }
    }

    /// A form with fields of one's own making.
    pub fn with_schema(message: impl Into<String>, schema: FormSchema) -> Self {
        Self { message: message.into(), schema: Ok(schema), content: PhantomData }
    }
}

impl<T: DeserializeOwned + Send + 'static> Question for Form<T> {
    type Answer = Elicited<T>;

    const METHOD: &'static str = "elicitation/create";

    fn needs(&self) -> Vec<ClientCapability> {
        vec![ClientCapability::ElicitationForm]
    }

    fn params(&self, revision: Revision) -> Result<RawJson, HandlerError> {
        let schema = self.schema.as_ref().map_err(|error| HandlerError::internal(error.clone()))?;
        let rules = revision.rules();
        if rules.elicitation_extended {
            return form_params(&FormParams { mode: Some("form"), message: &self.message, requested_schema: schema });
        }
        let schema = schema.for_2025_06_18().ok_or_else(|| {
            HandlerError::tell("this client's protocol revision has no way to choose several values in a form")
        })?;
        form_params(&FormParams { mode: None, message: &self.message, requested_schema: &schema })
    }

    fn accept(asked: &RawJson, given: &RawJson) -> Result<Self::Answer, String> {
        let result = elicited(given)?;
        match result.action {
            ElicitAction::Decline => return Ok(Elicited::Declined),
            ElicitAction::Cancel => return Ok(Elicited::Cancelled),
            _ => {}
        }
        let content = result.content.ok_or("an accepted form needs \"content\"")?;
        let members: serde_json::Map<String, serde_json::Value> =
            content.parse().map_err(|_| "\"content\" must be an object")?;
        let asked: serde_json::Value = asked.parse().map_err(|error| error.to_string())?;
        let schema = asked.get("requestedSchema").unwrap_or(&serde_json::Value::Null);
        let schema = FormSchema::from_value(schema).map_err(|error| error.to_string())?;
        schema.check(&members).map_err(|violations| {
            let listed: Vec<String> =
                violations.iter().map(|each| format!("content{}: {}", each.path, each.reason)).collect();
            listed.join("; ")
        })?;
        content.parse().map(Elicited::Accepted).map_err(|error| format!("content: {error}"))
    }
}

/// A form on the wire. A struct and no JSON value, which would sort the fields by name.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FormParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    message: &'a str,
    requested_schema: &'a FormSchema,
}

fn form_params(params: &FormParams<'_>) -> Result<RawJson, HandlerError> {
    RawJson::from_serialize(params).map_err(HandlerError::internal)
}

fn elicited(given: &RawJson) -> Result<ElicitResult, String> {
    object(given).map_err(|_| "it must be an object with \"action\": \"accept\", \"decline\" or \"cancel\"".to_owned())
}

/// Decodes an object: a derived decoder takes an array of the members' values as well.
fn object<T: DeserializeOwned>(given: &RawJson) -> Result<T, String> {
    if !given.is_object() {
        return Err(format!("not {}", given.kind().with_article()));
    }
    given.parse().map_err(|error| error.to_string())
}

/// A question to the client's model.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a question is its parameters")]
pub struct Sample(pub CreateMessageParams);

impl Question for Sample {
    type Answer = CreateMessageResult;

    const METHOD: &'static str = "sampling/createMessage";

    fn needs(&self) -> Vec<ClientCapability> {
        let mut needs = vec![ClientCapability::Sampling];
        if self.0.tools.is_some() || self.0.tool_choice.is_some() {
            needs.push(ClientCapability::SamplingTools);
        }
        needs
    }

    fn params(&self, revision: Revision) -> Result<RawJson, HandlerError> {
        let mut params = self.0.clone();
        params.for_rules(revision.rules()).map_err(|error| HandlerError::tell(error.to_string()))?;
        RawJson::from_serialize(&params).map_err(HandlerError::internal)
    }

    fn accept(_asked: &RawJson, given: &RawJson) -> Result<Self::Answer, String> {
        object(given).map_err(|error| format!("it must be a CreateMessageResult: {error}"))
    }
}

/// A question for the folders that the client works in. They guide; they fence nothing in.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the question has no parameters")]
pub struct ListRoots;

impl Question for ListRoots {
    type Answer = Vec<Root>;

    const METHOD: &'static str = "roots/list";

    fn needs(&self) -> Vec<ClientCapability> {
        vec![ClientCapability::Roots]
    }

    fn params(&self, _revision: Revision) -> Result<RawJson, HandlerError> {
        Ok(RawJson::EMPTY_OBJECT)
    }

    fn accept(_asked: &RawJson, given: &RawJson) -> Result<Self::Answer, String> {
        let result: ListRootsResult =
            object(given).map_err(|error| format!("it must be a ListRootsResult: {error}"))?;
        Ok(result.roots)
    }
}

/// Checks an answer that came for a question of one of the protocol's kinds, before its handler is run again. What is
/// asked by other methods is for their handlers to check.
///
/// # Errors
/// What does not fit, for whoever answered.
pub fn check_answer(method: &str, asked: &RawJson, given: &RawJson) -> Result<(), String> {
    let is_page =
        || mcp_wire::params::member_of(asked, "mode").ok().flatten().is_some_and(|mode| mode.as_str() == "\"url\"");
    match method {
        Visit::METHOD if is_page() => Visit::accept(asked, given).map(drop),
        Form::<serde_json::Value>::METHOD => Form::<serde_json::Value>::accept(asked, given).map(drop),
        Sample::METHOD => Sample::accept(asked, given).map(drop),
        ListRoots::METHOD => ListRoots::accept(asked, given).map(drop),
        _ => Ok(()),
    }
}

/// Several questions under their keys; implemented for tuples of up to eight `(key, question)` pairs.
pub trait Questions: Send {
    /// The answers in the same order.
    type Answers;

    /// Looks all of them up.
    ///
    /// # Errors
    /// As [`RequestContext::ask`]; all that lack an answer are asked in one round.
    fn ask_all(self, context: &RequestContext) -> Result<Self::Answers, HandlerError>;
}

macro_rules! questions {
    ($(($question:ident, $index:tt)),+) => {
        impl<$($question: Question),+> Questions for ($((&str, $question),)+) {
            type Answers = ($($question::Answer,)+);

            fn ask_all(self, context: &RequestContext) -> Result<Self::Answers, HandlerError> {
                // Every question is asked before the first missing answer ends the attempt.
                let answers = ($(context.ask(self.$index.0, self.$index.1),)+);
                Ok(($(answers.$index?,)+))
            }
        }
    };
}

questions!((A, 0));
questions!((A, 0), (B, 1));
questions!((A, 0), (B, 1), (C, 2));
questions!((A, 0), (B, 1), (C, 2), (D, 3));
questions!((A, 0), (B, 1), (C, 2), (D, 3), (E, 4));
questions!((A, 0), (B, 1), (C, 2), (D, 3), (E, 4), (F, 5));
questions!((A, 0), (B, 1), (C, 2), (D, 3), (E, 4), (F, 5), (G, 6));
questions!((A, 0), (B, 1), (C, 2), (D, 3), (E, 4), (F, 5), (G, 6), (H, 7));

/// The methods that questions use; what a client engine has to answer.
pub const QUESTION_METHODS: [Method; 3] = [Method::ElicitationCreate, Method::SamplingCreateMessage, Method::RootsList];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_asked_with_its_fields_in_their_order() {
        let schema = FormSchema::builder()
            .string("username", |field| field.required())
            .string("email", |field| field.required())
            .build()
            .unwrap();
        let form = Form::<serde_json::Value>::with_schema("Who are you?", schema);
        let fields = r#""properties":{"username":{"type":"string"},"email":{"type":"string"}}"#;
        for revision in [Revision::V2026_07_28, Revision::V2025_06_18] {
            let params = form.params(revision).unwrap();
            assert!(params.as_str().contains(fields), "{params:?}");
        }
    }
}
