//! Records and owners of the contract.
//!
//! Why here: every check needs some, and those of every kind should meet every store.
//! Invariants: the same arguments give the same record.

use mcp_core::{OwnerKey, Principal};
use mcp_wire::{ErrorCode, RawJson, RpcError};
use serde_json::json;

use crate::record::{OpenQuestion, Parked, TaskRecord, TaskState};
use crate::store::Room;

/// More than any check needs.
pub(super) const AMPLE: Room = Room::new(10_000, 10_000, 1 << 30);

/// Some time in 2026.
pub(super) const THEN: u64 = 1_790_000_000_000;

pub(super) fn owner(name: &str) -> OwnerKey {
    Principal::new("testing", "", name).key()
}

pub(super) fn record(owner: OwnerKey, id: &str, created_at: u64) -> TaskRecord {
    TaskRecord {
        id: id.into(),
        owner,
        version: 1,
        created_at,
        updated_at: created_at,
        ttl: 60_000,
        poll_interval: 1_000,
        tool: "tool".into(),
        arguments: RawJson::EMPTY_OBJECT,
        issued: Vec::new(),
        state: TaskState::Working,
    }
}

/// A record with arguments of so many bytes.
pub(super) fn heavy(owner: OwnerKey, id: &str, bytes: usize) -> TaskRecord {
    let empty = json!({ "text": "" }).to_string().len();
    let text = "x".repeat(bytes.saturating_sub(empty));
    TaskRecord { arguments: RawJson::from(json!({ "text": text })), ..record(owner, id, THEN) }
}

/// The next version of a record, with a mark to know it by.
pub(super) fn changed(record: &TaskRecord, mark: u64) -> TaskRecord {
    TaskRecord { version: record.version + 1, poll_interval: mark, ..record.clone() }
}

/// One record in each state, small and large.
pub(super) fn of_every_state(owner: OwnerKey) -> Vec<TaskRecord> {
    let long = "\u{1F980} \"quoted\" \\ \n".repeat(100_000);
    let error = RpcError::new(ErrorCode::INTERNAL_ERROR, "failed").with_data(json!({ "why": [1, null, 0.5] }));
    let question = |key: &str, asked_as: Option<&str>| OpenQuestion {
        key: key.into(),
        asked_as: asked_as.map(Into::into),
        method: "elicitation/create".into(),
        params: json!({ "message": "Name?", "requestedSchema": { "type": "object" } }).into(),
    };
    let parked = Parked {
        memory: json!({ "round": 1 }).into(),
        open: vec![question("name", None), question("name#2", Some("name"))],
        answers: vec![("age".into(), json!({ "action": "accept", "content": { "age": 9.5 } }).into())],
    };
    let states = [
        TaskState::Working,
        TaskState::Elsewhere { provider: "queue".into(), job: "job \u{0} 7".into() },
        TaskState::InputRequired(Box::new(parked)),
        TaskState::Completed { result: json!({ "content": [] }).into(), is_error: false },
        TaskState::Completed {
            result: json!({ "content": [{ "type": "text", "text": long }] }).into(),
            is_error: true,
        },
        TaskState::Failed { error },
        TaskState::Cancelled,
    ];
    let mut records = Vec::new();
    for (number, state) in states.into_iter().enumerate() {
        let mut record = record(owner, &format!("task_{number}"), THEN);
        record.version = 7;
        record.updated_at = THEN + 5;
        record.ttl = if number == 0 { u64::MAX } else { 1 };
        record.tool = "outil \u{e9}tendu".into();
        record.issued = vec!["name".into(), "name#2".into(), "age".into()];
        record.arguments = json!({ "text": "a\u{2028}b", "large": 12_345_678_901_234_567_890_u64 }).into();
        record.state = state;
        records.push(record);
    }
    records
}
