//! Questions to the client's user, as a form or at a URL.
//!
//! Why here: a server asks in both eras, a client answers, and the shapes are the same.
//! Invariants: the requested schema and the content stay raw; content is checked against the schema elsewhere.
//! Spec: 2026-07-28 client/elicitation, "Protocol Messages"

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::RawJson;
use crate::types::MetaObject;

/// How the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitMode {
    /// A form that the client shows; the content comes back through the client.
    Form,
    /// A page that the user visits; the content never passes through the client.
    Url,
}

/// Parameters of `elicitation/create` for a form. Forms never ask for secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitFormParams {
    /// [`ElicitMode::Form`], or `None` for a revision without modes; both mean a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ElicitMode>,
    /// What to ask, for people.
    pub message: String,
    /// JSON Schema of a flat object of primitive values.
    pub requested_schema: RawJson,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ElicitFormParams {
    /// A form that names its mode.
    #[must_use]
    pub fn new(message: impl Into<String>, requested_schema: RawJson) -> Self {
        Self { mode: Some(ElicitMode::Form), message: message.into(), requested_schema, meta: None }
    }

    /// The same form for a revision that has no modes.
    #[must_use]
    pub fn without_mode(mut self) -> Self {
        self.mode = None;
        self
    }

    setters! {
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// Parameters of `elicitation/create` for a URL; written with `"mode": "url"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename = "url", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitUrlParams {
    /// Why the page should be visited, for people.
    pub message: String,
    /// The page.
    pub url: String,
    /// Names the elicitation in `notifications/elicitation/complete`; required in 2025-11-25, unknown afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ElicitUrlParams {
    /// Asks to visit `url`.
    #[must_use]
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into(), elicitation_id: None, meta: None }
    }

    setters! {
        /// Names the elicitation.
        with_elicitation_id(elicitation_id: String);
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// Parameters of `elicitation/create` in either mode; an absent mode is a form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitParams {
    /// A form.
    Form(ElicitFormParams),
    /// A URL.
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// How the user is asked.
    #[must_use]
    pub fn mode(&self) -> ElicitMode {
        match self {
            Self::Form(_) => ElicitMode::Form,
            Self::Url(_) => ElicitMode::Url,
        }
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Flat, because serde's tagged and untagged enums buffer their content and the schema would lose its text.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            mode: Option<ElicitMode>,
            message: String,
            requested_schema: Option<RawJson>,
            url: Option<String>,
            elicitation_id: Option<String>,
            #[serde(rename = "_meta")]
            meta: Option<MetaObject>,
        }

        let Wire { mode, message, requested_schema, url, elicitation_id, meta } = Wire::deserialize(deserializer)?;
        match mode {
            None | Some(ElicitMode::Form) => {
                let requested_schema = requested_schema.ok_or_else(|| Error::missing_field("requestedSchema"))?;
                Ok(Self::Form(ElicitFormParams { mode, message, requested_schema, meta }))
            }
            Some(ElicitMode::Url) => {
                let url = url.ok_or_else(|| Error::missing_field("url"))?;
                Ok(Self::Url(ElicitUrlParams { message, url, elicitation_id, meta }))
            }
        }
    }
}

/// What the user did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// Filled the form in, or agreed to visit the page (which does not mean that anything was finished there).
    Accept,
    /// Said no.
    Decline,
    /// Closed the question without an answer.
    Cancel,
}

/// Result of `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitResult {
    /// What the user did.
    pub action: ElicitAction,
    /// What the form holds: an object, present only in an accepted form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RawJson>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ElicitResult {
    /// An action without content: the whole answer in URL mode.
    #[must_use]
    pub fn new(action: ElicitAction) -> Self {
        Self { action, content: None, meta: None }
    }

    /// A form that was filled in.
    #[must_use]
    pub fn accept(content: RawJson) -> Self {
        Self { content: Some(content), ..Self::new(ElicitAction::Accept) }
    }

    /// A no.
    #[must_use]
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// A question that was closed.
    #[must_use]
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }

    setters! {
        /// Adds metadata.
        with_meta(meta: MetaObject);
    }
}

/// Parameters of `notifications/elicitation/complete` (2025-11-25).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The id that the URL elicitation carried.
    pub elicitation_id: String,
}

impl ElicitationCompleteParams {
    /// The elicitation with this id is finished.
    #[must_use]
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self { elicitation_id: elicitation_id.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &'static str) -> RawJson {
        RawJson::from_bytes(text.into()).unwrap()
    }

    fn read(text: &str) -> Result<ElicitParams, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_form_names_its_mode_only_where_it_is_wanted() {
        let form = ElicitFormParams::new("Who?", raw(r#"{"type":"object","properties":{"n":{"minimum":1.0}}}"#));
        let with = r#"{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"minimum":1.0}}}}"#;
        assert_eq!(serde_json::to_string(&form).unwrap(), with);
        assert_eq!(read(with).unwrap(), ElicitParams::Form(form.clone()));
        let without = with.replace(r#""mode":"form","#, "");
        assert_eq!(serde_json::to_string(&form.clone().without_mode()).unwrap(), without);
        assert_eq!(read(&without).unwrap(), ElicitParams::Form(form.without_mode()));
    }

    #[test]
    fn a_url_always_names_its_mode() {
        let url = ElicitUrlParams::new("Sign in", "https://example.com/x").with_elicitation_id("e-1");
        let text = r#"{"mode":"url","message":"Sign in","url":"https://example.com/x","elicitationId":"e-1"}"#;
        assert_eq!(serde_json::to_string(&url).unwrap(), text);
        assert_eq!(serde_json::from_str::<ElicitUrlParams>(text).unwrap(), url);
        let either = read(text).unwrap();
        assert_eq!(either.mode(), ElicitMode::Url);
        assert_eq!(either, ElicitParams::Url(url));
        assert_eq!(serde_json::to_string(&either).unwrap(), text);
    }

    #[test]
    fn a_mode_without_its_members_and_an_unknown_mode_are_refused() {
        for text in [
            r#"{"message":"m"}"#,
            r#"{"mode":"form","message":"m","url":"https://example.com"}"#,
            r#"{"mode":"url","message":"m","requestedSchema":{}}"#,
            r#"{"mode":"voice","message":"m","requestedSchema":{}}"#,
            r#"{"requestedSchema":{}}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_an_accepted_form_has_content() {
        let accepted = ElicitResult::accept(raw(r#"{"n":1.50}"#));
        for (result, text) in [
            (accepted, r#"{"action":"accept","content":{"n":1.50}}"#),
            (ElicitResult::new(ElicitAction::Accept), r#"{"action":"accept"}"#),
            (ElicitResult::decline(), r#"{"action":"decline"}"#),
            (ElicitResult::cancel(), r#"{"action":"cancel"}"#),
        ] {
            assert_eq!(serde_json::to_string(&result).unwrap(), text);
            assert_eq!(serde_json::from_str::<ElicitResult>(text).unwrap(), result);
        }
        assert_eq!(
            serde_json::from_str::<ElicitResult>(r#"{"action":"decline","content":null}"#).unwrap(),
            ElicitResult::decline()
        );
        assert!(serde_json::from_str::<ElicitResult>(r#"{"action":"maybe"}"#).is_err());
    }

    #[test]
    fn the_completion_names_its_elicitation() {
        let text = r#"{"elicitationId":"e-1"}"#;
        assert_eq!(serde_json::to_string(&ElicitationCompleteParams::new("e-1")).unwrap(), text);
        assert_eq!(serde_json::from_str::<ElicitationCompleteParams>(text).unwrap().elicitation_id, "e-1");
    }
}
