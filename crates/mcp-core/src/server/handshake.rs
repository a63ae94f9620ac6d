//! The handshake of the revisions that have one, and the sessions that come of it.
//!
//! Why here: what both sides agree on, and where it is remembered, is decided once.
//! Invariants: answering a handshake remembers nothing; a session has an owner, a bound on how many there are, and ends with the
//! server.
//! Spec: 2025-11-25 basic/lifecycle, "Initialization"

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use mcp_wire::capability::ServerCapabilities;
use mcp_wire::types::{InitializeParams, InitializeResult};
use mcp_wire::{ErrorCode, RawJson, Request, Revision, RpcError, encode_error, encode_result};

use super::Server;
use crate::engine::hub::{OfExtensions, Wants};
use crate::engine::peer::Ids;
use crate::engine::sessions::{Agreement, Session};
use crate::extension::ProtocolCapability;
use crate::protocol::rejection::Hint;
use crate::store::SessionRecord;
use crate::telemetry::{self, Open};
use crate::{ClientFacts, Principal, random};

/// What a handshake came to: see [`Server::handshake`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Handshake {
    /// The response frame.
    pub response: Bytes,
    /// What it means for a status.
    pub hint: Hint,
    pub(crate) agreement: Option<Agreement>,
}

impl Handshake {
    /// Whether both sides agreed, so that a session may be opened.
    #[must_use]
    pub fn is_agreed(&self) -> bool {
        self.agreement.is_some()
    }
}

impl Server {
    /// Answers an `initialize` request. Nothing is remembered: a session is opened by [`Self::open_session`].
    #[must_use]
    pub fn handshake(&self, request: &Request) -> Handshake {
        match self.agree(request) {
            Ok((agreement, result)) => {
                telemetry::shaken(self, request, Ok(agreement.revision));
                let response = encode_result(&request.id, &result).unwrap_or_default();
                Handshake { response, hint: Hint::Ok, agreement: Some(agreement) }
            }
            Err(error) => {
                telemetry::shaken(self, request, Err(error.code));
                let response = encode_error(Some(&request.id), &error, false);
                // Whoever looks for a server of this era has to find that there is none.
                let hint = if error.code == ErrorCode::UNSUPPORTED_VERSION { Hint::BadRequest } else { Hint::Ok };
                Handshake { response, hint, agreement: None }
            }
        }
    }

    /// Opens the session that a handshake agreed on, owned by `principal`.
    ///
    /// # Errors
    /// When the handshake was refused, or there is no room or randomness for another session.
    pub fn open_session(&self, principal: Principal, handshake: Handshake) -> Result<Session, RpcError> {
        let Some(agreement) = handshake.agreement else {
            return Err(RpcError::new(ErrorCode::INVALID_REQUEST, "the handshake was refused"));
        };
        let ids = Arc::new(Ids::new(self.0.limits.in_flight_per_peer));
        self.new_session(principal, agreement, ids)
    }

    /// Opens a session here that another process has opened before, for the principal whose record it is. Whoever carries its
    /// messages [shares](Session::share) it and lets it [follow](Session::follow) the record.
    ///
    /// # Errors
    /// When the record is somebody else's or of a revision that is not served, or there is no room for another session.
    pub fn adopt_session(&self, principal: Principal, record: &SessionRecord) -> Result<Session, RpcError> {
        if principal.key() != record.owner || !self.0.legacy.contains(&record.revision) {
            return Err(RpcError::new(ErrorCode::INVALID_REQUEST, "there is no such session here"));
        }
        let client = ClientFacts { capabilities: record.capabilities.clone(), info: record.client_info.clone() };
        let agreement = Agreement { revision: record.revision, client };
        let ids = Arc::new(Ids::new(self.0.limits.in_flight_per_peer));
        self.session(record.id.clone(), principal, agreement, ids)
    }

    fn agree(&self, request: &Request) -> Result<(Agreement, InitializeResult), RpcError> {
        let params = request.params.raw().unwrap_or_default();
        let most = self.0.limits.handshake_bytes;
        if params.as_str().len() > most {
            let text = format!("the parameters of \"initialize\" may have at most {most} bytes");
            return Err(RpcError::invalid_params(text));
        }
        let params: InitializeParams = params.parse().map_err(|error| {
            RpcError::invalid_params(format!(
                "\"initialize\" needs \"protocolVersion\", \"capabilities\" and \"clientInfo\": {error}"
            ))
        })?;
        let asked = params.protocol_version.parse::<Revision>().ok().filter(|asked| self.0.legacy.contains(asked));
        let Some(revision) = asked.or_else(|| self.0.legacy.first().copied()) else {
            let supported: Vec<&str> = self.0.listed.iter().map(|revision| revision.as_str()).collect();
            let requested: String = params.protocol_version.chars().take(100).collect();
            let error = RpcError::new(ErrorCode::UNSUPPORTED_VERSION, "no revision with a handshake is served here");
            return Err(error.with_data(serde_json::json!({ "supported": supported, "requested": requested })));
        };
        let mut info = self.0.info.clone();
        info.for_rules(revision.rules());
        let mut result = InitializeResult::new(revision.as_str(), self.capabilities(revision), info);
        result.instructions.clone_from(&self.0.instructions);
        let client_info = RawJson::from_serialize(&params.client_info).ok();
        let client = ClientFacts { capabilities: params.capabilities, info: client_info };
        Ok((Agreement { revision, client }, result))
    }

    pub(crate) fn new_session(
        &self,
        principal: Principal,
        agreement: Agreement,
        ids: Arc<Ids>,
    ) -> Result<Session, RpcError> {
        let id = random::id().map_err(|_| RpcError::internal())?;
        self.session(id, principal, agreement, ids)
    }

    fn session(
        &self,
        id: String,
        principal: Principal,
        agreement: Agreement,
        ids: Arc<Ids>,
    ) -> Result<Session, RpcError> {
        let kinds = self.0.extensions.kinds(agreement.revision).map(|kind| Arc::clone(&kind.notification)).collect();
        let wants = Wants {
            tools: self.0.offers.tools,
            prompts: self.0.offers.prompts,
            resources: self.0.offers.resources,
            of_extensions: OfExtensions::new(kinds, BTreeSet::new()),
            ..Wants::default()
        };
        let most = self.0.limits.sessions.saturating_add(self.0.limits.subscriptions);
        let changes = self.0.hub.subscribe(wants, most).map_err(|_| {
            self.meter().refused("sessions");
            RpcError::new(ErrorCode::INTERNAL_ERROR, "there are too many sessions; try again later")
        })?;
        let changes = changes.counted(self.meter().opened(Open::Session));
        Ok(Session::open(id, principal, agreement, ids, changes, self.0.limits.pending_requests, self.0.root.clone()))
    }

    /// What is advertised under a revision.
    pub(crate) fn capabilities(&self, revision: Revision) -> ServerCapabilities {
        let offers = self.0.offers;
        let mut capabilities = ServerCapabilities::new().with_logging();
        if offers.tools {
            capabilities = capabilities.with_tools(true);
        }
        if offers.resources {
            capabilities = capabilities.with_resources(true, true);
        }
        if offers.prompts {
            capabilities = capabilities.with_prompts(true);
        }
        // The capability has a name from the revision on that brought tool annotations.
        if offers.completions && revision.rules().tool_annotations {
            capabilities = capabilities.with_completions();
        }
        for (id, settings, capability) in self.0.extensions.advertised(revision) {
            match capability {
                Some(ProtocolCapability::Tasks) => capabilities.tasks = Some(Box::new(settings.clone().into())),
                None if revision.rules().extensions => {
                    capabilities = capabilities.with_extension(id, settings.clone());
                }
                None => {
                    let experimental = capabilities.experimental.get_or_insert_default();
                    experimental.insert(id.to_owned(), settings.clone().into());
                }
            }
        }
        capabilities
    }
}
