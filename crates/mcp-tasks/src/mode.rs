//! How a tool call is run: in place, as a task, or not at all.
//!
//! Why here: one pure, total function, so that no transport and no era has a rule of its own.
//! Invariants: every row of its table is a test; it has one caller, the executor.
//! Spec: 2025-11-25 basic/utilities/tasks, "Tool-Level Negotiation"; tasks extension draft, "Capability Negotiation"

use mcp_core::TaskStart;
use mcp_wire::types::TaskSupport;

/// What a client says about tasks with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientOffer {
    /// It knows of none, or its revision has none.
    Nothing,
    /// It can be given one, if the server likes.
    Declared,
    /// It wants one.
    Requested,
}

/// How a call is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallMode {
    /// In place, to its end.
    Inline,
    /// Not at all.
    Refuse(Refusal),
    /// As a task, from when on the start says.
    Task(TaskStart),
}

/// Why a call is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client wants a task and the tool makes none.
    NoTasks,
    /// The tool makes tasks only, and the client cannot be given one.
    OnlyTasks,
}

/// The one rule.
pub(crate) fn call_mode(support: TaskSupport, offer: ClientOffer, start: TaskStart) -> CallMode {
    match (support, offer) {
        (TaskSupport::Optional | TaskSupport::Required, ClientOffer::Requested) => CallMode::Task(TaskStart::AtOnce),
        (TaskSupport::Optional | TaskSupport::Required, ClientOffer::Declared) => CallMode::Task(start),
        (TaskSupport::Optional, ClientOffer::Nothing) => CallMode::Inline,
        (TaskSupport::Required, ClientOffer::Nothing) => CallMode::Refuse(Refusal::OnlyTasks),
        // `TaskSupport` may get kinds that are not known here: they make no tasks.
        (_, ClientOffer::Requested) => CallMode::Refuse(Refusal::NoTasks),
        (_, ClientOffer::Nothing | ClientOffer::Declared) => CallMode::Inline,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_row_of_the_table_is_as_decided() {
        use CallMode::{Inline, Refuse, Task};
        use ClientOffer::{Declared, Nothing, Requested};
        use TaskSupport::{Forbidden, Optional, Required};
        for start in [TaskStart::AtOnce, TaskStart::After(Duration::from_millis(100)), TaskStart::WhenAsked] {
            let table = [
                (Forbidden, Nothing, Inline),
                (Forbidden, Declared, Inline),
                (Forbidden, Requested, Refuse(Refusal::NoTasks)),
                (Optional, Nothing, Inline),
                (Optional, Declared, Task(start)),
                (Optional, Requested, Task(TaskStart::AtOnce)),
                (Required, Nothing, Refuse(Refusal::OnlyTasks)),
                (Required, Declared, Task(start)),
                (Required, Requested, Task(TaskStart::AtOnce)),
            ];
            for (support, offer, mode) in table {
                assert_eq!(call_mode(support, offer, start), mode, "{support:?} {offer:?} {start:?}");
            }
        }
    }
}
