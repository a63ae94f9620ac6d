//! The question whether the user would open a link.
//!
//! Why here: what must not pass through the client, secrets first of all, is asked for on a page.
//! Invariants: no link leaves that a careful client would refuse: `https`, with a host and without credentials.
//! Spec: 2026-07-28 client/elicitation, "URL Mode Elicitation"; 2025-11-25 client/elicitation, "Completion Notifications"

use mcp_wire::capability::ClientCapability;
use mcp_wire::types::{ElicitAction, ElicitUrlParams};
use mcp_wire::{RawJson, Revision};

use super::{Elicited, Question, elicited};
use crate::HandlerError;

/// A link for the user to open: for everything that must not pass through the client, secrets first of all.
///
/// Accepting means that the user agreed to open it, not that anything was done there. The page has to find out by itself
/// that whoever finishes there is the user who was sent there.
#[derive(Clone, Debug)]
pub struct Visit {
    message: String,
    url: String,
    id: Option<String>,
    insecure: bool,
}

impl Visit {
    /// A link with the reason why it should be opened. The address has to begin with `https://`, name a host and hold no
    /// credentials; with another one the call fails with -32603.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into(), id: None, insecure: false }
    }

    /// Takes a link that begins with `http://` as well: for development.
    #[must_use]
    pub fn allow_insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// Names the visit, so that the client can be told when it is over:
    /// [`Server::visit_completed`](crate::Server::visit_completed). The name must not be guessable, and must be the same
    /// whenever the handler runs: `context.once("visit", || mcp_core::random_id())`. Only clients of 2025-11-25 are told;
    /// with others it makes no difference.
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The parameters, with the name that the visit has or gets where the revision needs one.
    pub(crate) fn worded(&self, id: Option<String>) -> Result<ElicitUrlParams, HandlerError> {
        check(&self.url, self.insecure).map_err(|flaw| {
            tracing::error!(flaw, "a handler sends the user to an address that is no good");
            HandlerError::internal(flaw)
        })?;
        let mut params = ElicitUrlParams::new(self.message.clone(), self.url.clone());
        params.elicitation_id = id;
        Ok(params)
    }
}

impl Question for Visit {
    type Answer = Elicited<()>;

    const METHOD: &'static str = "elicitation/create";

    fn needs(&self) -> Vec<ClientCapability> {
        vec![ClientCapability::ElicitationUrl]
    }

    fn params(&self, revision: Revision) -> Result<RawJson, HandlerError> {
        let rules = revision.rules();
        if !rules.elicitation_extended {
            return Err(HandlerError::tell("this client's protocol revision cannot open a link for its user"));
        }
        let params = self.worded(self.id.clone().filter(|_| rules.named_visits))?;
        RawJson::from_serialize(&params).map_err(HandlerError::internal)
    }

    fn accept(_asked: &RawJson, given: &RawJson) -> Result<Self::Answer, String> {
        Ok(match elicited(given)?.action {
            ElicitAction::Accept => Elicited::Accepted(()),
            ElicitAction::Decline => Elicited::Declined,
            _ => Elicited::Cancelled,
        })
    }
}

/// What is wrong with an address to send somebody to.
fn check(url: &str, insecure: bool) -> Result<(), &'static str> {
    let (scheme, rest) = url.split_once("://").ok_or("the address of a visit needs a scheme: https://…")?;
    let allowed = scheme.eq_ignore_ascii_case("https") || (insecure && scheme.eq_ignore_ascii_case("http"));
    if !allowed {
        return Err("the address of a visit must begin with https://");
    }
    if url.bytes().any(|byte| byte.is_ascii_control() || byte == b' ' || byte == b'\\') {
        return Err("the address of a visit must not hold blanks, backslashes or control characters");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("the address of a visit must not hold credentials");
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err("the address of a visit needs a host");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_a_careful_client_opens_are_sent() {
        for good in
            ["https://example.com", "HTTPS://example.com:8443/a?b=c@d#e", "https://[::1]/", "https://bücher.example"]
        {
            assert_eq!(check(good, false), Ok(()), "{good}");
        }
        for bad in [
            "",
            "example.com",
            "/login",
            "http://example.com",
            "ftp://example.com",
            "javascript:alert(1)",
            "javascript://example.com/%0aalert(1)",
            "https://",
            "https:///path",
            "https://:443/",
            "https://user@example.com",
            "https://user:secret@example.com/",
            "https://example.com\\@evil.example",
            "https://exam ple.com",
            "https://example.com/\n",
        ] {
            assert!(check(bad, false).is_err(), "{bad:?}");
        }
        assert_eq!(check("http://localhost:3000/x", true), Ok(()));
        assert!(check("ftp://localhost", true).is_err());
    }
}
