//! What a program says by `tracing` while it serves a request, told to the client of that request.
//!
//! Why here: one line in a handler reaches the operator and the client who wants to hear it; the span that the engine
//! enters for a call says whose it is.
//! Invariants: only named targets are told, and never the engine's own, so that telling causes no telling; nothing is told
//! outside of a request; no lock is held while an event's values are shown.
//! Spec: 2026-07-28 server/utilities/logging

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Weak};

use mcp_wire::types::LoggingLevel;
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Span, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::RequestContext;
use crate::context::CallState;
use crate::telemetry::AUDIT;

/// The target of the engine's own events and of its spans.
const OWN: &str = "mcp_core";

/// A layer for a [`Registry`] of `tracing-subscriber` that tells clients what is said while their requests are served.
///
/// An event inside the span of a call becomes a log message as of [`RequestContext::log_as`], if the client asked for its
/// level: `logger` is the event's target, `data` its message and its other fields. TRACE is told as "debug". The engine
/// makes the span `mcp.call` of target `mcp_core` at level INFO: where a filter leaves it out, nothing is told. A blocking
/// tool runs in that span; a task or thread of one's own belongs to the call if it is put there. Where a handler runs again
/// with an answer, as many messages as it has sent are skipped, so an event that only one of the attempts has may be lost.
///
/// ```
/// use mcp_core::LogForwarding;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(LogForwarding::of(["my_server"]));
/// # drop(subscriber);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing outside of a subscriber"]
pub struct LogForwarding {
    targets: Box<[String]>,
}

impl LogForwarding {
    /// Tells the events of these targets and of the modules within them; `my_server` stands for `my_server::files` too.
    ///
    /// Clients read what is told: name no library that logs what they must not know. `mcp_core` and `mcp.audit` are never
    /// told.
    pub fn of<T: Into<String>>(targets: impl IntoIterator<Item = T>) -> Self {
        Self { targets: targets.into_iter().map(Into::into).collect() }
    }

    fn tells(&self, target: &str) -> bool {
        !within(target, OWN) && !within(target, AUDIT) && self.targets.iter().any(|named| within(target, named))
    }
}

fn within(target: &str, module: &str) -> bool {
    target.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogForwarding {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        // First of all: the engine's own events may come while it holds a lock of the call.
        if !self.tells(metadata.target()) {
            return;
        }
        let served = context
            .event_scope(event)
            .and_then(|mut spans| spans.find_map(|span| span.extensions().get::<Served>().map(|it| it.0.clone())));
        let Some(state) = served.and_then(|served| served.upgrade()) else { return };
        let level = level(*metadata.level());
        if !state.hears(level) {
            return;
        }
        // No lock is held: showing a value may say something itself.
        let mut told = Told::default();
        event.record(&mut told);
        RequestContext(state).log_as(level, Some(metadata.target()), told);
    }
}

fn level(level: Level) -> LoggingLevel {
    match level {
        Level::ERROR => LoggingLevel::Error,
        Level::WARN => LoggingLevel::Warning,
        Level::INFO => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    }
}

/// The call that a span is of. A span may outlive its call, so it holds nothing.
struct Served(Weak<CallState>);

/// Ties a span to its call, where the subscriber has the layer.
pub(crate) fn tie(span: &Span, state: &Arc<CallState>) {
    span.with_subscriber(|(id, subscriber)| {
        if subscriber.downcast_ref::<LogForwarding>().is_some()
            && let Some(span) = subscriber.downcast_ref::<Registry>().and_then(|registry| registry.span(id))
        {
            span.extensions_mut().replace(Served(Arc::downgrade(state)));
        }
    });
}

/// An event as a client reads it.
#[derive(Default, Serialize)]
struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    fields: Map<String, Value>,
}

impl Told {
    fn keep(&mut self, field: &Field, value: impl Into<Value>) {
        match field.name() {
            "message" => self.message = Some(value.into()),
            name => {
                self.fields.insert(name.to_owned(), value.into());
            }
        }
    }
}

impl Visit for Told {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.keep(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.keep(field, value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.keep(field, format!("{value:?}"));
    }
}
