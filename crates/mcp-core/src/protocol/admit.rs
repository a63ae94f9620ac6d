//! The one door in: which era a message belongs to, and whether it may go on to its method.
//!
//! Why here: the era is decided once, and the order of the checks is written once, as the rows of a table.
//! Invariants: pure; the first failing check decides; a header alone never selects an era that its body does not claim.
//! Spec: 2026-07-28 basic/versioning, "Protocol Version Negotiation"; basic/transports/streamable-http, "Standard Headers"

use std::borrow::Cow;
use std::net::IpAddr;

use mcp_wire::capability::{ClientCapabilities, ClientCapability};
use mcp_wire::params::{self, Params};
use mcp_wire::types::{LoggingLevel, MetaObject, ProgressToken};
use mcp_wire::{
    DecodeError, Direction, Era, ErrorCode, Gate, JsonKind, Message, Method, Notification, RawJson, Request, RequestId,
    Revision, RpcError,
};

use super::rejection::{self, Hint, Rejection};
use super::schema::MirroredParameter;
use crate::extension::Served;
use crate::trace::TraceContext;
use crate::{ClientFacts, Principal};

/// A message whose era is decided.
#[derive(Debug)]
pub struct Classified(Split);

/// A classified message, for carriers that treat the eras differently.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a carrier must treat every kind")]
pub enum Split {
    /// Everything is in the message itself.
    Modern(Modern),
    /// The message belongs to a handshake or a session.
    Legacy(Legacy),
    /// Neither: the answer is this refusal.
    Refused(Rejection),
}

/// A message of the modern era.
#[derive(Debug)]
pub struct Modern {
    pub(crate) message: ModernMessage,
    /// The revision that the message claims, if it is one that anybody knows.
    pub(crate) claim: Option<Revision>,
}

#[derive(Debug)]
pub(crate) enum ModernMessage {
    Request(Request),
    Notification(Notification),
}

/// A message of the legacy era.
#[derive(Debug)]
pub struct Legacy {
    pub(crate) message: Message,
}

impl Classified {
    /// Takes the message apart by era.
    #[must_use]
    pub fn split(self) -> Split {
        self.0
    }

    /// A frame that could not be decoded.
    #[must_use]
    pub fn malformed(error: &DecodeError) -> Self {
        Self(Split::Refused(Rejection::bad_request(error.id().cloned(), error.to_rpc())))
    }

    /// The same message as an element of a batch, in which only what belongs to a session has a place: handshakes and
    /// modern requests become refusals.
    #[must_use]
    pub fn in_batch(self) -> Self {
        let (id, text) = match &self.0 {
            Split::Legacy(legacy) if legacy.is_initialize() => {
                (legacy.id().cloned(), "\"initialize\" must not be part of a batch")
            }
            Split::Modern(Modern { message: ModernMessage::Request(request), .. }) => {
                (Some(request.id.clone()), "the revision that this request names has no batches")
            }
            Split::Legacy(_) | Split::Modern(_) | Split::Refused(_) => return self,
        };
        Self(Split::Refused(Rejection::bad_request(id, RpcError::new(ErrorCode::INVALID_REQUEST, text))))
    }
}

impl From<Modern> for Classified {
    fn from(message: Modern) -> Self {
        Self(Split::Modern(message))
    }
}

impl From<Legacy> for Classified {
    fn from(message: Legacy) -> Self {
        Self(Split::Legacy(message))
    }
}

impl From<Rejection> for Classified {
    fn from(rejection: Rejection) -> Self {
        Self(Split::Refused(rejection))
    }
}

impl Legacy {
    /// Whether this asks for a handshake: the one request that needs no session.
    #[must_use]
    pub fn is_initialize(&self) -> bool {
        matches!(&self.message, Message::Request(request) if request.method == Method::Initialize)
    }

    /// Whether an answer is owed.
    #[must_use]
    pub fn is_request(&self) -> bool {
        matches!(self.message, Message::Request(_))
    }

    /// The message itself.
    #[must_use]
    pub fn into_message(self) -> Message {
        self.message
    }

    /// The id of the request, if this is one.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        match &self.message {
            Message::Request(request) => Some(&request.id),
            Message::Notification(_) | Message::Response(_) => None,
        }
    }

    /// The refusal of a request that came without the session it needs.
    #[must_use]
    pub fn without_session(&self) -> Rejection {
        match &self.message {
            // Only modern clients know these methods: tell them what a modern request lacks.
            Message::Request(request) if is_modern_only(&request.method) => {
                Rejection::bad_request(Some(request.id.clone()), missing_meta())
            }
            _ => Rejection::bad_request(
                self.id().cloned(),
                RpcError::new(
                    ErrorCode::INVALID_REQUEST,
                    "this needs a session: send \"initialize\" and repeat the session id it returns",
                ),
            ),
        }
    }

    /// The refusal of a request in a session that does not exist, has ended, or belongs to somebody else.
    #[must_use]
    pub fn unknown_session(&self) -> Rejection {
        Rejection {
            id: self.id().cloned(),
            error: RpcError::new(ErrorCode::INVALID_REQUEST, "there is no such session: send \"initialize\" again"),
            hint: Hint::NotFound,
        }
    }
}

/// Decides the era of a message. `declared` is the carrier's version header, if the carrier has one and it came;
/// `listed` is every revision that is served.
pub(crate) fn classify(message: Message, declared: Option<&str>, listed: &[Revision]) -> Classified {
    Classified(split(message, declared, listed))
}

fn split(message: Message, declared: Option<&str>, listed: &[Revision]) -> Split {
    let (id, params) = match &message {
        Message::Request(request) => (Some(&request.id), &request.params),
        Message::Notification(notification) => (None, &notification.params),
        // Only legacy servers ask, so only legacy clients answer.
        Message::Response(_) => return Split::Legacy(Legacy { message }),
    };
    let declared = declared.map(|text| (text, text.parse::<Revision>().ok()));
    let claim = match params.keys.protocol_version.as_ref().map(RawJson::text) {
        None => None,
        Some(Some(text)) => Some(text.parse::<Revision>().ok()),
        Some(None) => {
            let problem = format!("_meta[\"{}\"] must be a string", params::PROTOCOL_VERSION);
            return Split::Refused(Rejection::bad_request(id.cloned(), RpcError::invalid_params(problem)));
        }
    };
    // A revision that nobody knows can only be one to come.
    let era = |revision: Option<Revision>| revision.map_or(Era::Modern, Revision::era);
    match (claim.map(era), declared.map(|(_, revision)| era(revision))) {
        (None | Some(Era::Legacy), None | Some(Era::Legacy)) => Split::Legacy(Legacy { message }),
        (None, Some(Era::Modern)) if id.is_some() => {
            let error = match declared {
                Some((unknown, None)) => rejection::unsupported_version(unknown, listed),
                _ => missing_meta(),
            };
            Split::Refused(Rejection::bad_request(id.cloned(), error))
        }
        (Some(_), Some(Era::Modern)) | (Some(Era::Modern), _) | (None, Some(Era::Modern)) => {
            let message = match message {
                Message::Request(request) => ModernMessage::Request(request),
                Message::Notification(notification) => ModernMessage::Notification(notification),
                Message::Response(_) => return Split::Legacy(Legacy { message }),
            };
            Split::Modern(Modern { message, claim: claim.flatten() })
        }
    }
}

fn is_modern_only(method: &Method) -> bool {
    !matches!(method, Method::Other(_)) && method.revisions().start().era() == Era::Modern
}

fn missing_meta() -> RpcError {
    RpcError::invalid_params(format!(
        "params._meta must carry \"{}\" and \"{}\"",
        params::PROTOCOL_VERSION,
        params::CLIENT_CAPABILITIES
    ))
}

/// What a carrier that repeats parts of a message in headers has to say about it; a pipe has nothing to say.
pub trait Carrier {
    /// Compares the headers that every request has with its body.
    ///
    /// # Errors
    /// What was wrong and what is right: -32020.
    fn check_head(&self, head: &Head<'_>) -> Result<(), String>;

    /// Compares the header of one annotated parameter with the argument at its path (`None`: absent or `null`).
    ///
    /// # Errors
    /// What was wrong and what is right: -32020.
    fn check_parameter(&self, parameter: &MirroredParameter, argument: Option<&RawJson>) -> Result<(), String>;

    /// Whether notices and requests can be brought to the client before the response.
    fn streams(&self) -> bool;

    /// The trace that a message belongs to which says nothing of it itself. Default: none.
    fn trace(&self) -> TraceContext {
        TraceContext::default()
    }

    /// Where the client is, as far as the carrier vouches for it; told to audits and traces alone. Default: unknown.
    fn client(&self) -> Option<IpAddr> {
        None
    }
}

/// A carrier without headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pipe {
    client: Option<IpAddr>,
}

impl Pipe {
    /// Of which nobody knows where its client is.
    #[must_use]
    pub const fn new() -> Self {
        Self { client: None }
    }

    /// From a client at this address, as far as is known.
    pub(crate) const fn from_client(client: Option<IpAddr>) -> Self {
        Self { client }
    }
}

impl Carrier for Pipe {
    fn check_head(&self, _head: &Head<'_>) -> Result<(), String> {
        Ok(())
    }

    fn check_parameter(&self, _parameter: &MirroredParameter, _argument: Option<&RawJson>) -> Result<(), String> {
        Ok(())
    }

    fn streams(&self) -> bool {
        true
    }

    fn client(&self) -> Option<IpAddr> {
        self.client
    }
}

/// The parts of a modern request that a carrier may repeat.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Head<'a> {
    /// The claimed version, as text.
    pub version: Cow<'a, str>,
    /// The method.
    pub method: &'a Method,
    /// The tool, prompt, resource or task that the request names, for methods that name one.
    pub target: Target<'a>,
}

/// What a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a carrier must treat every case")]
pub enum Target<'a> {
    /// The method names nothing.
    None,
    /// The method names something, but this request does not, or not as a string: the method will refuse it.
    Missing,
    /// The name.
    Named(Cow<'a, str>),
}

/// What has to be known of a server to admit a request.
pub(crate) struct Facts<'a> {
    /// Modern revisions that are served.
    pub(crate) served: &'a [Revision],
    /// Every revision to name to a client that asked for another.
    pub(crate) listed: &'a [Revision],
    pub(crate) offered: &'a crate::Server,
    /// The rules of the tool that a call names, if there is one.
    pub(crate) tool: Option<&'a ToolRules>,
    /// The method as an extension brought it, if one did.
    pub(crate) extension: Option<&'a Served>,
}

/// What a tool demands before its handler is met.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolRules {
    pub(crate) mirrored: Vec<MirroredParameter>,
    pub(crate) needs: Vec<ClientCapability>,
    pub(crate) scopes: Vec<String>,
}

/// A request that may go on to its method.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) revision: Revision,
    pub(crate) client: ClientFacts,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) progress_token: Option<ProgressToken>,
}

/// The checks of a modern request, in the order in which they count.
pub(crate) fn admit_modern(
    request: &Request,
    claim: Option<Revision>,
    facts: &Facts<'_>,
    principal: &Principal,
    carrier: &dyn Carrier,
) -> Result<Admitted, Rejection> {
    let refuse = |error| Rejection::bad_request(Some(request.id.clone()), error);
    let head = &*request.params;
    // 1. The envelope is complete and well-typed.
    let version = head.keys.protocol_version.as_ref().and_then(RawJson::text);
    let version = version.ok_or_else(|| refuse(missing_meta()))?;
    let client = client_facts(head).map_err(refuse)?;
    let log_level = log_level(head).map_err(refuse)?;
    let progress_token = progress_token(head).map_err(refuse)?;
    let target = target(request, facts.extension).map_err(refuse)?;
    // 2. The headers say what the body says.
    let mismatch = |problem: String| refuse(RpcError::new(ErrorCode::HEADER_MISMATCH, problem));
    let head_view = Head { version, method: &request.method, target };
    carrier.check_head(&head_view).map_err(mismatch)?;
    // 3. The version is served, as a modern one.
    let Some(revision) = claim.filter(|claim| facts.served.contains(claim)) else {
        return Err(refuse(rejection::unsupported_version(&head_view.version, facts.listed)));
    };
    // 4. The method exists there and is offered.
    if !exists(&request.method, revision) || !is_offered(&request.method, revision, facts) {
        return Err(Rejection {
            id: Some(request.id.clone()),
            error: rejection::method_not_found(request.method.as_str()),
            hint: Hint::NotFound,
        });
    }
    if let Some(tool) = facts.tool {
        // 5. The headers of annotated parameters say what the arguments say.
        for parameter in &tool.mirrored {
            let argument = argument_at(head.arguments.as_ref(), &parameter.path);
            carrier.check_parameter(parameter, argument.as_ref()).map_err(mismatch)?;
        }
        // 6. The client declared what the tool needs.
        check_needs(&tool.needs, &client.capabilities, revision).map_err(refuse)?;
        check_scopes(&tool.scopes, principal, &request.id)?;
    }
    if let Some(extension) = facts.extension {
        // 6. As well: the client declared the extension.
        check_needs(&extension.needs, &client.capabilities, revision).map_err(refuse)?;
    }
    Ok(Admitted { revision, client, log_level, progress_token })
}

/// The checks of a legacy request in its session, in the order in which they count. They are answered in band.
pub(crate) fn admit_legacy(
    request: &Request,
    revision: Revision,
    client: &ClientFacts,
    facts: &Facts<'_>,
    principal: &Principal,
) -> Result<Option<ProgressToken>, Rejection> {
    let refuse = |error| Rejection::in_band(Some(request.id.clone()), error);
    if !exists(&request.method, revision) || !is_offered(&request.method, revision, facts) {
        return Err(refuse(rejection::method_not_found(request.method.as_str())));
    }
    let progress_token = progress_token(&request.params).map_err(refuse)?;
    if let Some(tool) = facts.tool {
        check_needs(&tool.needs, &client.capabilities, revision).map_err(refuse)?;
        check_scopes(&tool.scopes, principal, &request.id)?;
    }
    Ok(progress_token)
}

fn exists(method: &Method, revision: Revision) -> bool {
    method.revisions().contains(&revision) && method.direction() != Direction::ToClient && !method.is_notification()
}

fn is_offered(method: &Method, revision: Revision, facts: &Facts<'_>) -> bool {
    match method.gate() {
        Gate::Extension => facts.extension.is_some_and(|served| served.is_offered(revision)),
        gate => facts.offered.is_offered(gate),
    }
}

fn check_needs(needs: &[ClientCapability], declared: &ClientCapabilities, revision: Revision) -> Result<(), RpcError> {
    let mut required = MetaObject::new();
    for needed in needs.iter().filter(|needed| !declared.supports(needed)) {
        needed.add_to(&mut required);
    }
    if required.is_empty() {
        return Ok(());
    }
    Err(rejection::missing_capability(revision.rules().missing_capability, &required))
}

fn check_scopes(scopes: &[String], principal: &Principal, id: &RequestId) -> Result<(), Rejection> {
    if scopes.iter().all(|scope| principal.has_scope(scope)) {
        return Ok(());
    }
    Err(Rejection {
        id: Some(id.clone()),
        error: rejection::lacking_scope(),
        hint: Hint::Forbidden { scopes: scopes.to_vec() },
    })
}

/// What a request names, from the member of its parameters that its method has for that.
fn target<'a>(request: &'a Request, extension: Option<&Served>) -> Result<Target<'a>, RpcError> {
    let head = &*request.params;
    let member = match &request.method {
        Method::ToolsCall | Method::PromptsGet => &head.name,
        Method::ResourcesRead => &head.uri,
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => &head.task_id,
        _ => {
            let Some(name) = extension.and_then(|served| served.target.as_deref()) else { return Ok(Target::None) };
            let member = head.raw().map(|params| params::member_of(&params, name)).transpose();
            let member = member.map_err(|error| RpcError::invalid_params(error.to_string()))?.flatten();
            let text = member.as_ref().and_then(RawJson::text);
            return Ok(text.map_or(Target::Missing, |text| Target::Named(Cow::Owned(text.into_owned()))));
        }
    };
    Ok(member.as_ref().and_then(RawJson::text).map_or(Target::Missing, Target::Named))
}

fn client_facts(head: &Params) -> Result<ClientFacts, RpcError> {
    let capabilities = head.keys.client_capabilities.as_ref().ok_or_else(missing_meta)?;
    let capabilities = match capabilities.as_str() {
        "{}" => ClientCapabilities::default(),
        _ => parse_capabilities(capabilities)?,
    };
    if let Some(info) = &head.keys.client_info
        && !info.is_object()
    {
        return Err(wrong_kind(params::CLIENT_INFO, "an object", info.kind()));
    }
    Ok(ClientFacts { capabilities, info: head.keys.client_info.clone() })
}

pub(crate) fn parse_capabilities(capabilities: &RawJson) -> Result<ClientCapabilities, RpcError> {
    if !capabilities.is_object() {
        return Err(wrong_kind(params::CLIENT_CAPABILITIES, "an object", capabilities.kind()));
    }
    capabilities.parse().map_err(|error| {
        RpcError::invalid_params(format!("the client capabilities do not have the shape of the schema: {error}"))
    })
}

fn log_level(head: &Params) -> Result<Option<LoggingLevel>, RpcError> {
    let Some(level) = &head.keys.log_level else { return Ok(None) };
    let text = level.text().ok_or_else(|| wrong_kind(params::LOG_LEVEL, "a string", level.kind()))?;
    text.parse().map(Some).map_err(|_| {
        RpcError::invalid_params(format!(
            "_meta[\"{}\"] must be one of debug, info, notice, warning, error, critical, alert, emergency",
            params::LOG_LEVEL
        ))
    })
}

fn progress_token(head: &Params) -> Result<Option<ProgressToken>, RpcError> {
    match &head.keys.progress_token {
        None => Ok(None),
        Some(token) => ProgressToken::from_json(token)
            .map(Some)
            .ok_or_else(|| RpcError::invalid_params("_meta.progressToken must be a string or an integer")),
    }
}

fn wrong_kind(key: &str, right: &str, found: JsonKind) -> RpcError {
    RpcError::invalid_params(format!("_meta[\"{key}\"] must be {right}, not {}", found.with_article()))
}

/// The argument at a path of member names; `null` counts as absent.
fn argument_at(arguments: Option<&RawJson>, path: &[String]) -> Option<RawJson> {
    let mut value = arguments?.clone();
    for name in path {
        let members: std::collections::BTreeMap<Cow<'_, str>, &serde_json::value::RawValue> =
            value.parse_borrowed().ok()?;
        let member = *members.get(name.as_str())?;
        value = value.part(member);
    }
    (value.kind() != JsonKind::Null).then_some(value)
}
