//! `cargo xtask race-tasks`: calls that end at their window's edge while clients leave, in release mode and many of them.
//!
//! Why here: two thousand of them are a test of `bench/tasks`; a hundred thousand are for a night.
//! Invariants: `bench/tasks` judges; this builds it, and keeps what it said.

use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::{options, refuse_leftovers, task_report};

/// Calls on each of the two runtimes, without `--calls`.
const CALLS: usize = 100_000;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let calls: usize = options.opt_value_from_str("--calls")?.unwrap_or(CALLS);
    let is_written = options.contains("--write");
    refuse_leftovers(options)?;
    let mut command = Command::new(crate::bench::build_tasks()?.join("bench-tasks"));
    let output = command.args(["race", &calls.to_string()]).stderr(Stdio::inherit()).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{}", told.trim_end());
    ensure!(output.status.success(), "an outcome was not settled once: {}", output.status);
    if is_written {
        task_report::write("Raced", &format!("race-tasks --calls {calls}"), told.trim_end())?;
    }
    Ok(())
}
