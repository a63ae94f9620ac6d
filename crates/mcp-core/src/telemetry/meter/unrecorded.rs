//! Counts that nobody wants to know.
//!
//! Why here: without the feature the calls are still there, and cost nothing.

use std::time::Duration;

use mcp_wire::{Method, Revision};

use super::{Open, Outcome};

pub(super) struct Table;
pub(super) struct Held;
#[derive(Default)]
pub(super) struct ToolTable;

impl Table {
    pub(super) fn new<'a>(_extended: impl Iterator<Item = &'a str>) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "as the one that counts")]
    pub(super) fn refused(&self, _reason: &'static str) {}

    #[expect(clippy::unused_self, reason = "as the one that counts")]
    pub(super) fn opened(&self, _what: Open) -> Held {
        Held
    }

    #[expect(clippy::unused_self, reason = "as the one that counts")]
    pub(super) fn ended(&self, _method: &Method, _revision: Revision, _outcome: Outcome, _duration: Duration) {}
}

impl ToolTable {
    #[expect(clippy::unused_self, reason = "as the one that counts")]
    pub(super) fn ended(&self, _name: &str, _outcome: Outcome) {}
}
