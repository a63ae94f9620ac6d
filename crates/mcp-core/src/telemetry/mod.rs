//! What is told of each request to whoever runs the server: a span, an audit record, counts.
//!
//! Why here: one place decides what may be told of a request, so that nothing of its arguments or results, no credential and
//! no name that its sender made up gets anywhere.
//! Invariants: where nobody listens nothing is made; each observed request ends once, with one outcome; names are those of
//! the registry, so that their number is bounded.
//! Spec: 2026-07-28 basic/index, "General fields"

mod meter;

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mcp_wire::{ErrorCode, Method, Request, Revision};
use tokio::time::Instant;
use tracing::{Level, Span};

pub(crate) use self::meter::ToolMeter;
pub use self::meter::{Held, Meter, Open};
use crate::access::Item;
use crate::engine::worker::panic_text;
use crate::methods::registered_address;
use crate::protocol::admit::Carrier;
use crate::protocol::rejection::{Hint, Rejection};
use crate::resource::normalized;
use crate::tool::ToolEntry;
use crate::trace::TraceContext;
use crate::{OwnerKey, Principal, Server};

/// The target of audit records.
pub(crate) const AUDIT: &str = "mcp.audit";
/// Stands for every method that is neither the protocol's nor an extension's.
const OTHER: &str = "_OTHER";
/// Most characters of a request's id that are told.
const ID_CHARS: usize = 64;

/// What a program does with the span of a request that belongs to a trace.
pub(crate) type OnTrace = Arc<dyn Fn(&Span, &TraceContext) + Send + Sync>;

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With a result.
    #[default]
    Ok,
    /// With questions that the client answers in another request.
    InputRequired,
    /// With the result of a tool that says that it failed.
    ToolError,
    /// With this error.
    Error(ErrorCode),
    /// Without any answer.
    Cancelled,
}

impl Outcome {
    /// All words for an outcome, in the order of [`Self::place`].
    const WORDS: [&'static str; 6] = ["ok", "input_required", "tool_error", "error", "failed", "cancelled"];

    fn place(self) -> usize {
        match self {
            Self::Ok => 0,
            Self::InputRequired => 1,
            Self::ToolError => 2,
            Self::Error(ErrorCode::INTERNAL_ERROR) => 4,
            Self::Error(_) => 3,
            Self::Cancelled => 5,
        }
    }

    fn word(self) -> &'static str {
        Self::WORDS.get(self.place()).copied().unwrap_or_default()
    }
}

/// A request that has come, and what is known of it before it is served.
pub(crate) struct Seen<'a> {
    pub(crate) server: &'a Server,
    pub(crate) principal: &'a Principal,
    pub(crate) request: &'a Request,
    pub(crate) revision: Revision,
    pub(crate) tool: Option<&'a Arc<ToolEntry>>,
    pub(crate) trace: &'a TraceContext,
    pub(crate) carrier: &'a dyn Carrier,
}

/// A request that is observed, from here to its end. Dropped before, it was cancelled.
pub(crate) struct Observed {
    server: Server,
    span: Span,
    method: Method,
    revision: Revision,
    tool: Option<Arc<ToolEntry>>,
    audit: Option<Audited>,
    started: Instant,
    has_ended: bool,
    _under_way: Held,
}

struct Audited {
    who: OwnerKey,
    client: Option<IpAddr>,
    target: Option<String>,
}

impl Observed {
    /// Begins to observe a request; `None` where nobody listens.
    pub(crate) fn begin(seen: &Seen<'_>) -> Option<Box<Self>> {
        let span = span_of(seen);
        // A sign of life is nothing that anybody did.
        let is_audited = seen.request.method != Method::Ping && tracing::enabled!(target: AUDIT, Level::INFO);
        if span.is_disabled() && !is_audited && !Meter::COUNTS {
            return None;
        }
        let mut target = None;
        if is_audited || !span.is_disabled() {
            target = target_of(seen);
            seen.tell_target(&span, target.as_deref());
        }
        seen.join_trace(&span);
        let audit = is_audited.then(|| Audited { who: seen.principal.key(), client: seen.carrier.client(), target });
        Some(Box::new(Self {
            server: seen.server.clone(),
            span,
            method: seen.request.method.clone(),
            revision: seen.revision,
            tool: seen.tool.cloned(),
            audit,
            started: Instant::now(),
            has_ended: false,
            _under_way: seen.server.meter().opened(Open::Request),
        }))
    }

    /// Runs this as part of the request, if it is observed.
    pub(crate) fn within<T>(observed: Option<&Self>, run: impl FnOnce() -> T) -> T {
        match observed {
            Some(observed) => observed.span.in_scope(run),
            None => run(),
        }
    }

    /// The request has ended. Only the first end counts.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let duration = Instant::now().saturating_duration_since(self.started);
        let word = outcome.word();
        let code = match outcome {
            Outcome::Error(code) => Some(code.0),
            _ => None,
        };
        if !self.span.is_disabled() {
            self.span.record("mcp.outcome", word);
            if let Some(code) = code {
                self.span.record("rpc.response.status_code", code);
            }
            match outcome {
                Outcome::Ok | Outcome::InputRequired => {}
                Outcome::Error(code) => {
                    self.span.record("error.type", tracing::field::display(code.0));
                    self.span.record("otel.status_code", "ERROR");
                }
                Outcome::ToolError | Outcome::Cancelled => {
                    self.span.record("error.type", word);
                    self.span.record("otel.status_code", "ERROR");
                }
            }
        }
        if let Some(audit) = &self.audit {
            tracing::event!(
                target: AUDIT,
                parent: &self.span,
                Level::INFO,
                {
                    mcp.principal = %audit.who,
                    mcp.method.name = method_name(&self.server, &self.method),
                    mcp.target = audit.target,
                    mcp.outcome = word,
                    rpc.response.status_code = code,
                    duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
                    client.address = audit.client.map(tracing::field::display)
                },
                "a request has ended"
            );
        }
        let counted = self.server.meter();
        counted.ended(&self.method, self.revision, outcome, duration);
        if let Some(tool) = &self.tool {
            tool.counted.ended(&tool.definition.name, outcome);
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled);
    }
}

/// Counts a refusal, and says why.
pub(crate) fn refused(server: &Server, rejection: &Rejection) {
    if Meter::COUNTS
        && let Some(reason) = reason(rejection)
    {
        server.meter().refused(reason);
    }
}

/// A handshake, which begins and ends at once and belongs to nobody yet.
pub(crate) fn shaken(server: &Server, request: &Request, agreed: Result<Revision, ErrorCode>) {
    let outcome = agreed.map_or_else(Outcome::Error, |_| Outcome::Ok);
    let span = tracing::info_span!(
        target: "mcp_core", "mcp.request", otel.kind = "server", mcp.method.name = request.method.as_str(),
        mcp.protocol.version = agreed.ok().map(Revision::as_str), mcp.outcome = outcome.word(),
        rpc.response.status_code = agreed.err().map(|code| code.0),
    );
    drop(span);
    server.meter().ended(
        &request.method,
        agreed.unwrap_or(Revision::NEWEST_LEGACY),
        outcome,
        std::time::Duration::ZERO,
    );
}

fn span_of(seen: &Seen<'_>) -> Span {
    tracing::info_span!(
        target: "mcp_core",
        "mcp.request",
        otel.kind = "server",
        otel.name = tracing::field::Empty,
        otel.status_code = tracing::field::Empty,
        mcp.method.name = method_name(seen.server, &seen.request.method),
        mcp.protocol.version = seen.revision.as_str(),
        mcp.resource.uri = tracing::field::Empty,
        mcp.outcome = tracing::field::Empty,
        gen_ai.operation.name = tracing::field::Empty,
        gen_ai.tool.name = tracing::field::Empty,
        gen_ai.prompt.name = tracing::field::Empty,
        jsonrpc.request.id = %seen.request.id.to_string().chars().take(ID_CHARS).collect::<String>(),
        rpc.response.status_code = tracing::field::Empty,
        error.type = tracing::field::Empty,
        client.address = seen.carrier.client().map(tracing::field::display),
        traceparent = seen.trace.traceparent(),
        tracestate = seen.trace.tracestate(),
    )
}

impl Seen<'_> {
    fn join_trace(&self, span: &Span) {
        let Some(join) = self.server.on_trace() else { return };
        if span.is_disabled() || self.trace.traceparent().is_none() {
            return;
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| join(span, self.trace))) {
            tracing::error!(panic = panic_text(&*payload), "joining a request's trace panicked");
        }
    }

    fn tell_target(&self, span: &Span, target: Option<&str>) {
        let Some(target) = target else { return };
        let method = &self.request.method;
        match method {
            Method::ToolsCall => {
                span.record("gen_ai.tool.name", target);
                span.record("gen_ai.operation.name", "execute_tool");
            }
            Method::PromptsGet => {
                span.record("gen_ai.prompt.name", target);
            }
            _ => {
                span.record("mcp.resource.uri", target);
                return;
            }
        }
        span.record("otel.name", tracing::field::display(format_args!("{} {target}", method.as_str())));
    }
}

/// The method's name, if it has one that somebody registered.
fn method_name<'a>(server: &Server, method: &'a Method) -> &'a str {
    match method {
        Method::Other(_) if server.extensions().method(method).is_none() => OTHER,
        method => method.as_str(),
    }
}

/// What the request is about, in the words of whoever registered it: the name of a tool or prompt, the address of a
/// resource, or the template behind an address. `None` where its caller sees no such thing.
fn target_of(seen: &Seen<'_>) -> Option<String> {
    let (server, params) = (seen.server, &seen.request.params);
    match seen.request.method {
        Method::ToolsCall => Some(seen.tool?.definition.name.clone()),
        Method::PromptsGet => {
            let name = params.name.as_ref()?.text()?;
            let registry = server.registry();
            let prompt = registry.prompts.get(&*name)?;
            server.access().sees(seen.principal, Item::Prompt(&name)).then(|| prompt.definition.name.clone())
        }
        Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
            let uri = params.uri.as_ref()?.text()?;
            let key = normalized(&uri)?;
            registered_address(&server.registry(), |item| server.access().sees(seen.principal, item), &uri, &key)
        }
        _ => None,
    }
}

/// Why a request was not served; `None` where it was, and failed.
fn reason(rejection: &Rejection) -> Option<&'static str> {
    Some(match (rejection.error.code, &rejection.hint) {
        (_, Hint::Forbidden { .. }) => "scope",
        (ErrorCode::PARSE_ERROR, _) => "syntax",
        (ErrorCode::HEADER_MISMATCH, _) => "header_mismatch",
        (ErrorCode::UNSUPPORTED_VERSION, _) => "version",
        (ErrorCode::MISSING_CLIENT_CAPABILITY, _) => "capability",
        (ErrorCode::METHOD_NOT_FOUND, _) => "method",
        (_, Hint::BadRequest) => "envelope",
        (_, Hint::NotFound) => "session",
        (_, Hint::Ok) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_word_of_its_own() {
        let outcomes = [
            Outcome::Ok,
            Outcome::InputRequired,
            Outcome::ToolError,
            Outcome::Error(ErrorCode::INVALID_PARAMS),
            Outcome::Error(ErrorCode::INTERNAL_ERROR),
            Outcome::Cancelled,
        ];
        assert_eq!(outcomes.map(Outcome::word), Outcome::WORDS);
    }
}
