//! How a task is said in each of its two forms.
//!
//! Why here: names and members differ between the core tasks of 2025-11-25 and the extension; everything else is one.
//! Invariants: a tool's failure is a failed task in the older form and a completed one in the newer; results are said in the
//! words of the revision that asks.
//! Spec: 2025-11-25 basic/utilities/tasks, "Data Types"; tasks extension draft, "Task Status"

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use mcp_core::{ExtensionReply, HandlerError};
use mcp_wire::types::{CallToolResult, MetaObject};
use mcp_wire::{RawJson, RpcError, Rules, params};
use serde::Serialize;
use serde_json::json;

use crate::record::{OpenQuestion, TaskRecord, TaskState};

/// What the extension calls a task in the place of a result.
pub(crate) const RESULT_TYPE: &str = "task";

/// The members of a task.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskView<'a> {
    task_id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: String,
    last_updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<BTreeMap<&'a str, QuestionView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

#[derive(Serialize)]
struct QuestionView<'a> {
    method: &'a str,
    params: &'a RawJson,
}

/// The facts of a task, without what it came to.
pub(crate) fn brief<'a>(record: &'a TaskRecord, rules: &Rules) -> TaskView<'a> {
    let is_core = rules.core_tasks;
    let (ttl, poll) = (Some(record.ttl), Some(record.poll_interval));
    TaskView {
        task_id: record.id.as_str(),
        status: status(record, rules),
        status_message: match &record.state {
            TaskState::Failed { error } => Some(&error.message),
            _ => None,
        },
        created_at: moment(record.created_at),
        last_updated_at: moment(record.updated_at),
        ttl: ttl.filter(|_| is_core),
        poll_interval: poll.filter(|_| is_core),
        ttl_ms: ttl.filter(|_| !is_core),
        poll_interval_ms: poll.filter(|_| !is_core),
        input_requests: None,
        result: None,
        error: None,
    }
}

/// A task as its owner reads it. `open` are the questions of a job outside.
pub(crate) fn detailed<'a>(record: &'a TaskRecord, rules: &Rules, open: Option<&'a [OpenQuestion]>) -> TaskView<'a> {
    let mut view = brief(record, rules);
    if open.is_some() {
        view.status = INPUT_REQUIRED;
    }
    if rules.core_tasks {
        return view;
    }
    match &record.state {
        TaskState::Completed { result, .. } => view.result = Some(result),
        TaskState::Failed { error } => view.error = Some(error),
        TaskState::InputRequired(parked) => view.input_requests = Some(questions(&parked.open)),
        TaskState::Elsewhere { .. } => view.input_requests = open.map(questions),
        TaskState::Working | TaskState::Cancelled => {}
    }
    view
}

fn questions(open: &[OpenQuestion]) -> BTreeMap<&str, QuestionView<'_>> {
    open.iter().map(|open| (&*open.key, QuestionView { method: &open.method, params: &open.params })).collect()
}

/// What a call is answered with that became a task.
pub(crate) fn created(record: &TaskRecord, rules: &Rules) -> Result<RawJson, HandlerError> {
    let view = brief(record, rules);
    let result = if rules.core_tasks {
        RawJson::from_serialize(&BTreeMap::from([("task", view)]))
    } else {
        RawJson::from_serialize(&view)
    };
    result.map_err(HandlerError::internal)
}

/// What an ended task answers in the place of the call that it was.
///
/// # Errors
/// The error that the call ended with, or -32602 for a task that was cancelled.
pub(crate) fn outcome(record: &TaskRecord, rules: &Rules) -> Result<ExtensionReply, HandlerError> {
    match &record.state {
        TaskState::Completed { result, .. } => {
            let mut result: CallToolResult = result.parse().map_err(HandlerError::internal)?;
            let mut meta = result.meta.take().unwrap_or_default();
            result.for_rules(rules);
            meta.extend(related(record));
            Ok(ExtensionReply::new(&result)?.meta(meta))
        }
        TaskState::Failed { error } => Err(HandlerError::rpc(error.clone())),
        _ => Err(HandlerError::rpc(RpcError::invalid_params("the task was cancelled, so it has no result"))),
    }
}

/// The `_meta` of everything that belongs to a task in its older form.
pub(crate) fn related(record: &TaskRecord) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert(params::RELATED_TASK.to_owned(), json!({ "taskId": record.id.as_str() }));
    meta
}

const INPUT_REQUIRED: &str = "input_required";

pub(crate) fn status(record: &TaskRecord, rules: &Rules) -> &'static str {
    match &record.state {
        TaskState::Working | TaskState::Elsewhere { .. } => "working",
        TaskState::InputRequired(_) => INPUT_REQUIRED,
        TaskState::Completed { is_error: true, .. } if rules.core_tasks => "failed",
        TaskState::Completed { .. } => "completed",
        TaskState::Failed { .. } => "failed",
        TaskState::Cancelled => "cancelled",
    }
}

fn moment(milliseconds: u64) -> String {
    let moment = UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_millis(moment).to_string()
}
