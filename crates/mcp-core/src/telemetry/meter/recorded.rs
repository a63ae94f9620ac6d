//! Counts that go to the recorder of the facade `metrics`.
//!
//! Why here: the one file that knows the facade.
//! Invariants: a handle is made at its first use and kept, so that no request builds or looks up a key.

use std::sync::OnceLock;
use std::time::Duration;

use mcp_wire::{Method, Revision};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, SharedString, Unit, with_recorder};

use super::super::OTHER;
use super::{Open, Outcome};

const REQUESTS: &str = "mcp.server.requests";
const DURATION: &str = "mcp.server.operation.duration";
const CALLS: &str = "mcp.server.tool.calls";
const REFUSALS: &str = "mcp.server.refusals";
const ACTIVE: &str = "mcp.server.active";

const METADATA: Metadata<'static> = Metadata::new("mcp_core", Level::INFO, Some("mcp_core"));

const ERAS: usize = 2;
const OUTCOMES: usize = Outcome::WORDS.len();
const KINDS: [&str; 5] = ["request", "session", "subscription", "stream", "connection"];

pub(super) struct Table {
    known: Box<[MethodTable]>,
    extended: Box<[(String, MethodTable)]>,
    other: MethodTable,
    open: [OnceLock<Gauge>; KINDS.len()],
}

/// The ends of the requests of one method, by era and outcome.
#[derive(Default)]
struct MethodTable([[OnceLock<Ends>; OUTCOMES]; ERAS]);

struct Ends {
    requests: Counter,
    seconds: Histogram,
}

pub(super) struct Held(Gauge);

/// The calls of a tool, by outcome.
#[derive(Default)]
pub(super) struct ToolTable([OnceLock<Counter>; OUTCOMES]);

impl Table {
    pub(super) fn new<'a>(extended: impl Iterator<Item = &'a str>) -> Self {
        describe();
        Self {
            known: Method::KNOWN.iter().map(|_| MethodTable::default()).collect(),
            extended: extended.map(|name| (name.to_owned(), MethodTable::default())).collect(),
            other: MethodTable::default(),
            open: Default::default(),
        }
    }

    #[expect(clippy::unused_self, reason = "as the one that does not count")]
    pub(super) fn refused(&self, reason: &'static str) {
        counter(REFUSALS, vec![Label::from_static_parts("reason", reason)]).increment(1);
    }

    pub(super) fn opened(&self, what: Open) -> Held {
        let place = what as usize;
        let gauge = self.open.get(place).map_or_else(Gauge::noop, |gauge| {
            let kind = KINDS.get(place).copied().unwrap_or_default();
            gauge.get_or_init(|| gauge_of(vec![Label::from_static_parts("kind", kind)])).clone()
        });
        gauge.increment(1);
        Held(gauge)
    }

    pub(super) fn ended(&self, method: &Method, revision: Revision, outcome: Outcome, duration: Duration) {
        let (name, table) = match method {
            Method::Other(name) => match self.extended.iter().find(|(extended, _)| **extended == **name) {
                Some((name, table)) => (name.as_str(), table),
                None => (OTHER, &self.other),
            },
            method => match Method::KNOWN.iter().position(|known| known == method).and_then(|at| self.known.get(at)) {
                Some(table) => (method.as_str(), table),
                None => (OTHER, &self.other),
            },
        };
        let era = revision.rules().era;
        let Some(ends) = table.0.get(era as usize).and_then(|outcomes| outcomes.get(outcome.place())) else { return };
        let ends = ends.get_or_init(|| Ends::of(name, era.as_str(), outcome.word()));
        ends.requests.increment(1);
        ends.seconds.record(duration);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl Ends {
    fn of(method: &str, era: &'static str, outcome: &'static str) -> Self {
        let labels = || {
            vec![
                Label::new("mcp.method.name", method.to_owned()),
                Label::from_static_parts("mcp.era", era),
                Label::from_static_parts("mcp.outcome", outcome),
            ]
        };
        let key = Key::from_parts(DURATION, labels());
        Self {
            requests: counter(REQUESTS, labels()),
            seconds: with_recorder(|recorder| recorder.register_histogram(&key, &METADATA)),
        }
    }
}

impl ToolTable {
    pub(super) fn ended(&self, name: &str, outcome: Outcome) {
        let Some(calls) = self.0.get(outcome.place()) else { return };
        let labels = || {
            vec![
                Label::new("gen_ai.tool.name", name.to_owned()),
                Label::from_static_parts("mcp.outcome", outcome.word()),
            ]
        };
        calls.get_or_init(|| counter(CALLS, labels())).increment(1);
    }
}

fn counter(name: &'static str, labels: Vec<Label>) -> Counter {
    let key = Key::from_parts(name, labels);
    with_recorder(|recorder| recorder.register_counter(&key, &METADATA))
}

fn gauge_of(labels: Vec<Label>) -> Gauge {
    let key = Key::from_parts(ACTIVE, labels);
    with_recorder(|recorder| recorder.register_gauge(&key, &METADATA))
}

/// Tells the recorder what the names mean.
fn describe() {
    let text = SharedString::const_str;
    with_recorder(|recorder| {
        let name = KeyName::from_const_str;
        recorder.describe_counter(name(REQUESTS), Some(Unit::Count), text("Requests that have ended."));
        recorder.describe_histogram(name(DURATION), Some(Unit::Seconds), text("How long requests took."));
        recorder.describe_counter(name(CALLS), Some(Unit::Count), text("Calls of tools that have ended."));
        recorder.describe_counter(name(REFUSALS), Some(Unit::Count), text("Messages that were not served."));
        recorder.describe_gauge(name(ACTIVE), Some(Unit::Count), text("What is open."));
    });
}
