//! `cargo xtask bench --tasks`: what tasks cost, as ratios and rates of one run.
//!
//! Why here: a tool that may become a task should cost next to nothing when it does not.
//! Invariants: both calls are the same request to the same program, whose tool makes tasks or does not.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::{Bench, Cost, OURS, Probe, Row, dearest, say, thousands};
use crate::task_report;

/// What the client of both calls declares.
const CAPABILITIES: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// Tasks that wait while memory is read.
const WAITING: &str = "100000";

/// Prints the figures, and keeps them if told so.
///
/// # Errors
/// If an answer is wrong, or an instrument fails.
pub(super) fn run(bench: &Bench, row: &Row, is_written: bool) -> anyhow::Result<()> {
    let plain = measure(bench, row, "none")?;
    let optional = measure(bench, row, "optional")?;
    let mut text = String::from("call          instructions allocations x plain\n");
    for (name, cost) in [("plain", &plain), ("may be a task", &optional)] {
        let (instructions, ratio) =
            (thousands(cost.figures.instructions), cost.figures.instructions / plain.figures.instructions);
        writeln!(text, "{name:<13} {instructions:>12} {:>11.1} {ratio:>7.3}", cost.figures.allocations)?;
    }
    text.push_str("\nthe functions that make the difference, by their own instructions\n");
    for (optional, plain, name) in dearest(&optional, &plain).into_iter().take(6) {
        writeln!(text, "{:>+7.0}  {}", optional - plain, name.chars().take(100).collect::<String>())?;
    }
    say(&text)?;
    let program = bench.binaries.join("bench-tasks");
    let folder = bench.binaries.join("bench-counts");
    fs::create_dir_all(&folder)?;
    for arguments in [vec!["rates".as_ref(), folder.as_os_str()], vec!["memory".as_ref(), WAITING.as_ref()]] {
        let output = Command::new(&program).args(arguments).output().context("bench-tasks did not start")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let told = String::from_utf8_lossy(&output.stdout);
        say(&told)?;
        write!(text, "\n{told}")?;
    }
    if is_written {
        task_report::write("Counted and timed", "bench --tasks", text.trim_end())?;
    }
    Ok(())
}

fn measure(bench: &Bench, row: &Row, tasks: &'static str) -> anyhow::Result<Cost> {
    let environment = [("TASKS", tasks)];
    let name = format!("tasks-{tasks}");
    let server = &bench.binaries.join(OURS.package);
    let load_arguments = &["--capabilities", CAPABILITIES];
    let probe = Probe { server, name: &name, load_arguments, is_piped: false, environment: &environment };
    bench.measure_server(row, &probe)
}
