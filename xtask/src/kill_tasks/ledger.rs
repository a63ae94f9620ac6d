//! What was acknowledged, and whether it still holds.
//!
//! Why here: the rules of what may have become of a task are in one place, beside the facts that they are about.
//! Invariants: a fact is written down after its acknowledgement came, an attempt before it was sent.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::http::{Connection, OWNERS};

/// What a task is told that ran when its server died.
const LOST: &str = "the server ended while the task ran";

/// A task that was acknowledged.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: String,
    /// An index into `OWNERS`.
    pub(super) owner: usize,
    pub(super) tool: &'static str,
    marker: String,
    /// It was seen to wait for its answer.
    pub(super) parked: bool,
    /// Answers that were sent.
    tried: Vec<String>,
    /// One of them was acknowledged.
    answered: bool,
    cancel_tried: bool,
    /// Its end, as it was first seen.
    ended: Option<Value>,
}

impl Known {
    pub(super) fn new(id: String, owner: usize, tool: &'static str, marker: String) -> Self {
        let tried = Vec::new();
        Self { id, owner, tool, marker, parked: false, tried, answered: false, cancel_tried: false, ended: None }
    }
}

/// How often each thing happened.
#[derive(Debug, Default)]
struct Counts {
    looks: usize,
    foreign: usize,
    answers: usize,
    effects: usize,
    unacknowledged: usize,
}

/// Everything that was acknowledged.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<(Vec<Known>, Counts)>);

impl Ledger {
    fn open(&self) -> MutexGuard<'_, (Vec<Known>, Counts)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn created(&self, known: Known) {
        self.open().0.push(known);
    }

    /// Somebody's connection died with a request on it.
    pub(super) fn unacknowledged(&self) {
        self.open().1.unacknowledged += 1;
    }

    /// The index and id of one of the owner's tasks that fits, chosen by `pick`.
    pub(super) fn one(
        &self,
        owner: usize,
        fits: impl Fn(&Known) -> bool,
        pick: impl FnOnce(u64) -> u64,
    ) -> Option<(usize, String)> {
        let ledger = self.open();
        let all = ledger.0.iter().enumerate().filter(|(_, known)| known.owner == owner && fits(known));
        let fitting: Vec<usize> = all.map(|(index, _)| index).collect();
        if fitting.is_empty() {
            return None;
        }
        let index = *fitting.get(usize::try_from(pick(fitting.len() as u64)).ok()?)?;
        Some((index, ledger.0.get(index)?.id.clone()))
    }

    pub(super) fn tries_answer(&self, index: usize, answer: &str) {
        self.change(index, |known| known.tried.push(answer.to_owned()));
    }

    pub(super) fn answered(&self, index: usize) {
        self.change(index, |known| known.answered = true);
        self.open().1.answers += 1;
    }

    pub(super) fn tries_cancel(&self, index: usize) {
        self.change(index, |known| known.cancel_tried = true);
    }

    fn change(&self, index: usize, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.open().0.get_mut(index) {
            change(known);
        }
    }

    /// Writes down what was seen of a task while its server lived.
    ///
    /// # Errors
    /// When an end that was seen before is another now.
    pub(super) fn seen(&self, index: usize, answer: &Value) -> anyhow::Result<()> {
        let mut ledger = self.open();
        let known = ledger.0.get_mut(index).context("an unknown task")?;
        note(known, &answer["result"]).with_context(|| format!("{known:?} was seen as {answer}"))
    }

    /// Holds everything against a server that has just begun, with so many tasks in its file.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub(super) fn verify(&self, connection: &mut Connection, stored: usize, effects: &Path) -> anyhow::Result<()> {
        let mut ledger = self.open();
        let (all, counts) = &mut *ledger;
        ensure!(stored >= all.len(), "{} tasks were acknowledged and {stored} are there", all.len());
        let effects = fs::read_to_string(effects).unwrap_or_default();
        let mut by_marker: HashMap<&str, &str> = HashMap::new();
        for line in effects.lines() {
            let (marker, answer) = line.split_once('=').context("an effect that is none")?;
            ensure!(by_marker.insert(marker, answer).is_none(), "{marker} was answered twice");
        }
        counts.effects = by_marker.len();
        for known in all {
            let owner = OWNERS[known.owner];
            let answer = connection.about(owner, "tasks/get", &known.id, json!({}))?;
            let after = after_a_death(known, &answer["result"], by_marker.get(known.marker.as_str()).copied());
            after.with_context(|| format!("{known:?} is {answer}"))?;
            note(known, &answer["result"]).with_context(|| format!("{known:?} is {answer}"))?;
            counts.looks += 1;
            let other = OWNERS[(known.owner + 1) % OWNERS.len()];
            let foreign = connection.about(other, "tasks/get", &known.id, json!({}))?;
            let unknown = connection.about(other, "tasks/get", "task_000000000000000000000000", json!({}))?;
            ensure!(foreign["error"].is_object() && foreign == unknown, "{other} sees {known:?} as {foreign}");
            counts.foreign += 1;
        }
        Ok(())
    }

    /// What it all came to.
    ///
    /// # Errors
    /// When too little happened for it to mean anything.
    pub(super) fn told(&self, rounds: u64, lost: usize) -> anyhow::Result<String> {
        let ledger = self.open();
        let (all, counts) = &*ledger;
        let with = |status: &str| {
            all.iter().filter(|known| known.ended.as_ref().is_some_and(|ended| ended["status"] == status)).count()
        };
        let (completed, failed, cancelled) = (with("completed"), with("failed"), with("cancelled"));
        let waiting = all.iter().filter(|known| known.parked && known.ended.is_none()).count();
        for (what, number) in
            [("completed", completed), ("failed", failed), ("cancelled", cancelled), ("wait", waiting)]
        {
            ensure!(rounds < 20 || number > 0, "no task {what}, so nothing was shown of those");
        }
        let Counts { looks, foreign, answers, effects, unacknowledged } = counts;
        let tasks = all.len();
        Ok(format!(
            "kill-tasks: {rounds} deaths by SIGKILL, {unacknowledged} requests in flight at them; {tasks} tasks of \
             {} owners acknowledged: {completed} completed, {failed} failed, {cancelled} cancelled, {waiting} wait for input; \
             {lost} were found running after a death (unacknowledged ones included) and failed; {answers} answers \
             acknowledged, {effects} acted on; {looks} looks by owners and {foreign} by others after deaths: 0 lost, \
             0 revived, 0 changed, 0 seen by another, 0 answered twice",
            OWNERS.len()
        ))
    }
}

/// What may have become of a task over a death.
fn after_a_death(known: &Known, task: &Value, effect: Option<&str>) -> anyhow::Result<()> {
    let text = task["result"]["content"][0]["text"].as_str().unwrap_or_default();
    match task["status"].as_str().unwrap_or_default() {
        "input_required" => {
            ensure!(known.tool == "ask", "it asks and has no question");
            ensure!(!known.answered, "its answer was acknowledged and is gone");
            ensure!(effect.is_none(), "it acted on an answer and asks again");
        }
        "completed" if known.tool == "finish" => ensure!(text == known.marker, "this is another's result"),
        "completed" if known.tool == "ask" => {
            let answer = text.strip_prefix(&format!("{}=", known.marker)).context("this is another's result")?;
            ensure!(known.tried.iter().any(|tried| tried == answer), "nobody answered this");
            ensure!(effect == Some(answer), "it acted on {effect:?}");
        }
        "failed" => {
            ensure!(task["error"]["message"] == LOST, "it failed for another reason");
            let was_idle = known.parked && known.tried.is_empty();
            ensure!(known.ended.is_some() || !was_idle, "it waited, ran nowhere, and was lost");
        }
        "cancelled" => ensure!(known.cancel_tried, "nobody cancelled it"),
        _ => anyhow::bail!("this cannot be after a death"),
    }
    Ok(())
}

/// Remembers what a task came to, and that it stays so.
fn note(known: &mut Known, task: &Value) -> anyhow::Result<()> {
    let status = task["status"].as_str().context("it is not there")?;
    if matches!(status, "working" | "input_required") {
        ensure!(known.ended.is_none(), "it has come back to life");
        known.parked |= status == "input_required";
        return Ok(());
    }
    let end = json!({ "status": status, "result": task["result"], "error": task["error"] });
    match &known.ended {
        Some(ended) => ensure!(*ended == end, "it had another end"),
        None => known.ended = Some(end),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(tool: &'static str) -> Known {
        Known::new("task_1".to_owned(), 0, tool, "m1".to_owned())
    }

    fn completed(text: &str) -> Value {
        json!({ "status": "completed", "result": { "content": [{ "type": "text", "text": text }] } })
    }

    #[test]
    fn what_cannot_be_after_a_death_is_told() {
        let lost = json!({ "status": "failed", "error": { "code": -32603, "message": LOST } });
        let waits = json!({ "status": "input_required" });
        let parked = || Known { parked: true, ..known("ask") };
        let answered = || Known { parked: true, answered: true, tried: vec!["a".to_owned()], ..known("ask") };
        let cases: [(Known, &Value, Option<&str>, bool); 12] = [
            (known("go_on"), &lost, None, true),
            (parked(), &waits, None, true),
            (parked(), &lost, None, false),
            (answered(), &lost, None, true),
            (answered(), &waits, None, false),
            (parked(), &waits, Some("a"), false),
            (known("finish"), &waits, None, false),
            (known("finish"), &completed("m1"), None, true),
            (known("finish"), &completed("m2"), None, false),
            (answered(), &completed("m1=a"), Some("a"), true),
            (answered(), &completed("m1=b"), Some("b"), false),
            (known("go_on"), &json!({ "status": "working" }), None, false),
        ];
        for (known, task, effect, holds) in cases {
            assert_eq!(after_a_death(&known, task, effect).is_ok(), holds, "{known:?} {task} {effect:?}");
        }
    }

    #[test]
    fn an_end_that_was_seen_stays_the_same() {
        let mut known = known("finish");
        note(&mut known, &json!({ "status": "working" })).unwrap();
        note(&mut known, &completed("m1")).unwrap();
        note(&mut known, &completed("m1")).unwrap();
        for other in [completed("m2"), json!({ "status": "working" }), json!({ "status": "cancelled" }), Value::Null] {
            note(&mut known, &other).unwrap_err();
        }
    }
}
