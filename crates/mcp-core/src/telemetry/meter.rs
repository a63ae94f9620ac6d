//! Counts, by the facade `metrics` where the feature of that name is on, and nothing at all elsewhere.
//!
//! Why here: the rest of the engine, and carriers, count without asking whether anybody wants to know.
//! Invariants: what is open is counted down by being dropped; labels have a bounded number of values; a count costs a look
//! at a handle that was made once.

#[cfg(feature = "metrics")]
mod recorded;
#[cfg(not(feature = "metrics"))]
mod unrecorded;

use std::fmt;
use std::time::Duration;

use mcp_wire::{Method, Revision};

#[cfg(feature = "metrics")]
use self::recorded as backend;
#[cfg(not(feature = "metrics"))]
use self::unrecorded as backend;
use super::Outcome;

/// What a server counts: see [`Server::meter`](crate::Server::meter).
///
/// With the feature `metrics` these go to the recorder of the facade of that name, which has to be installed before the
/// first request; without it nothing is counted.
///
/// | name | kind | labels |
/// | --- | --- | --- |
/// | `mcp.server.requests` | counter | `mcp.method.name`, `mcp.era`, `mcp.outcome` |
/// | `mcp.server.operation.duration` | histogram, seconds | the same |
/// | `mcp.server.tool.calls` | counter | `gen_ai.tool.name`, `mcp.outcome` |
/// | `mcp.server.refusals` | counter | `reason` |
/// | `mcp.server.active` | gauge | `kind`: `request`, `session`, `subscription`, `stream`, `connection` |
///
/// Outcomes are `ok`, `input_required`, `tool_error`, `error` (a protocol error), `failed` (-32603) and `cancelled`.
/// Methods that neither the protocol nor an extension has are one value, `_OTHER`.
pub struct Meter(backend::Table);

/// What can be open for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Open {
    /// A request under way.
    Request,
    /// A legacy session.
    Session,
    /// A subscription of the modern era.
    Subscription,
    /// A stream of events of a carrier.
    Stream,
    /// A connection of a carrier.
    Connection,
}

/// Something open, until it is dropped.
#[must_use = "dropped, it counts as closed"]
pub struct Held {
    _open: backend::Held,
}

impl Meter {
    /// Whether anything is counted at all.
    pub(crate) const COUNTS: bool = cfg!(feature = "metrics");

    /// `extended` are the methods that extensions bring.
    pub(crate) fn new<'a>(extended: impl Iterator<Item = &'a str>) -> Self {
        Self(backend::Table::new(extended))
    }

    /// A message was not served, for this reason: a word of the carrier's, one of few.
    pub fn refused(&self, reason: &'static str) {
        self.0.refused(reason);
    }

    /// Something is open until the returned value is dropped.
    pub fn opened(&self, what: Open) -> Held {
        Held { _open: self.0.opened(what) }
    }

    pub(super) fn ended(&self, method: &Method, revision: Revision, outcome: Outcome, duration: Duration) {
        self.0.ended(method, revision, outcome, duration);
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

/// The calls of one tool.
#[derive(Default)]
pub(crate) struct ToolMeter(backend::ToolTable);

impl ToolMeter {
    pub(super) fn ended(&self, name: &str, outcome: Outcome) {
        self.0.ended(name, outcome);
    }
}
