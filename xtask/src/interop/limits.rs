//! What the official clients cannot do, and why: the only reasons for a step that is not `ok`.
//!
//! Why here: a step that a client leaves out looks like a step that was forgotten, unless it stands here.
//! Invariants: a step that works although it stands here fails the run, as one does that fails and does not.

use super::clients::MODES;

/// Why a step of a client is not applicable.
#[derive(Debug)]
pub(super) struct Limit {
    /// What `--with` calls the client.
    pub(super) client: &'static str,
    /// A word of the names of the columns that this is about; empty for all of the client.
    pub(super) column: &'static str,
    pub(super) step: &'static str,
    /// What the failure says. `None`: the client's script has no such step, for there is nothing to try.
    pub(super) shows: Option<&'static str>,
    pub(super) reason: &'static str,
}

impl Limit {
    /// Whether this is about a column of a client.
    pub(super) fn covers(&self, client: &str, column: &str) -> bool {
        self.client == client && (self.column.is_empty() || column.split(' ').any(|word| word == self.column))
    }
}

const ONE_CALL: &str = "each command is a process and a connection of its own, which ends with its answer";
const NO_MARK_OF_LEAVING: &str = "this SDK tells no server that it does not wait any more";
const NO_FORMS: &str = "this version cannot ask its user; forms came with 2025-06-18";
const NO_STRUCTURE: &str = "structured results came with 2025-06-18";
const NO_MESSAGE: &str = "this version does not pass on the messages of progress, which came with 2025-03-26";
const NO_TASKS: &str = "core tasks came with 2025-11-25";
const NO_TASKS_YET: &str = "this SDK can ask for core tasks from 1.24.0 on";
const NO_TASKS_NOW: &str = "this client takes no result that is a task of the extension, and so learns of none";
const NO_CURSOR: &str = "this version cannot ask for another page";

/// A step that the inspector's command line has no words for.
const fn unsaid(step: &'static str, reason: &'static str) -> Limit {
    Limit { client: "inspector", column: "", step, shows: None, reason }
}

/// A step that fails in all columns of the inspector.
const fn failing(step: &'static str, shows: &'static str, reason: &'static str) -> Limit {
    Limit { client: "inspector", column: "", step, shows: Some(shows), reason }
}

/// A step that only the inspector has.
const fn foreign(client: &'static str) -> Limit {
    let reason = "an extension, which the inspector checks with rules of its own";
    Limit { client, column: "", step: "skills", shows: None, reason }
}

/// A step that fails with one or all older versions of the Python SDK.
const fn python(version: &'static str, step: &'static str, shows: &'static str, reason: &'static str) -> Limit {
    Limit { client: "older python", column: version, step, shows: Some(shows), reason }
}

/// A step that fails with an older version of the TypeScript SDK.
const fn typescript(version: &'static str, step: &'static str, shows: &'static str, reason: &'static str) -> Limit {
    Limit { client: "older typescript", column: version, step, shows: Some(shows), reason }
}

/// The tasks of the modern era, in a mode of the TypeScript client that gets there.
const fn modern_typescript(mode: &'static str) -> Limit {
    let shows = Some("Unsupported result type 'task'");
    Limit { client: "typescript", column: mode, step: "tasks", shows, reason: NO_TASKS_NOW }
}

pub(super) const LIMITS: [Limit; 53] = [
    unsaid("progress", "the command line prints results only"),
    unsaid("cancellation", ONE_CALL),
    unsaid("time_limit", ONE_CALL),
    unsaid("list_changes", ONE_CALL),
    unsaid("resource_updates", ONE_CALL),
    unsaid("tasks", "the command line has no words for tasks"),
    unsaid("restart", ONE_CALL),
    failing("completion", "Unsupported method: completion/complete", "the command line has no such method"),
    failing("elicitation", "elicitation", "the command line has nobody to ask and declares no elicitation"),
    failing("sampling_and_roots", "sampling", "the command line has no model and no folders"),
    Limit {
        client: "inspector",
        column: "legacy",
        step: "skills",
        shows: Some("skills_unsupported"),
        reason: "the extension is for revisions from 2026-07-28, as is the map of extensions",
    },
    foreign("python"),
    foreign("older python"),
    foreign("typescript"),
    foreign("older typescript"),
    python("1.2.1", "lists", "list_tools()", NO_CURSOR),
    python("1.2.1", "pages", "list_tools()", NO_CURSOR),
    python("1.2.1", "structured", "list_tools()", NO_CURSOR),
    python("1.2.1", "progress", "progress_callback", "this version cannot listen to progress"),
    python("1.2.1", "prompts", "elicitation", NO_FORMS),
    python("1.2.1", "elicitation", "elicitation", NO_FORMS),
    python("1.2.1", "sampling_and_roots", "sampling", "this version has no place for a model or folders"),
    python("1.2.1", "cancellation", "progress_callback", "this version cannot listen to progress"),
    python("1.2.1", "time_limit", "read_timeout_seconds", "this version has no time limits of single calls"),
    python("1.2.1", "list_changes", "TimeoutError", "this version passes on no notifications"),
    python("1.2.1", "resource_updates", "TimeoutError", "this version passes on no notifications"),
    python("1.2.1", "restart", "TimeoutError", "this version hangs on an error in a second connection"),
    python("1.9.4", "structured", "set()", NO_STRUCTURE),
    python("1.9.4", "prompts", "elicitation", NO_FORMS),
    python("1.9.4", "elicitation", "elicitation", NO_FORMS),
    python("1.9.4", "sampling_and_roots", "elicitation", NO_FORMS),
    python("", "cancellation", "did not hear", NO_MARK_OF_LEAVING),
    python("", "time_limit", "did not hear", NO_MARK_OF_LEAVING),
    Limit {
        client: "python",
        column: "",
        step: "tasks",
        shows: None,
        reason: "the client of this version has no words for tasks of either kind",
    },
    python("1.2.1", "tasks", "experimental", NO_TASKS),
    python("1.9.4", "tasks", "experimental", NO_TASKS),
    python("1.13.1", "tasks", "experimental", NO_TASKS),
    python("1.20.0", "tasks", "experimental", NO_TASKS),
    modern_typescript(MODES[0]),
    modern_typescript(MODES[2]),
    typescript("1.0.4", "tasks", "'tasks'", NO_TASKS_YET),
    typescript("1.10.2", "tasks", "'tasks'", NO_TASKS_YET),
    typescript("1.17.5", "tasks", "'tasks'", NO_TASKS_YET),
    typescript("1.0.4", "structured", "'required'", NO_STRUCTURE),
    typescript("1.0.4", "progress", "undefined", NO_MESSAGE),
    typescript("1.0.4", "prompts", "elicitation", NO_FORMS),
    typescript("1.0.4", "elicitation", "elicitation", NO_FORMS),
    typescript("1.0.4", "sampling_and_roots", "elicitation", NO_FORMS),
    typescript("1.10.2", "structured", "'required'", NO_STRUCTURE),
    typescript("1.10.2", "progress", "undefined", NO_MESSAGE),
    typescript("1.10.2", "prompts", "elicitation", NO_FORMS),
    typescript("1.10.2", "elicitation", "elicitation", NO_FORMS),
    typescript("1.10.2", "sampling_and_roots", "elicitation", NO_FORMS),
];
