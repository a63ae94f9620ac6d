//! `cargo xtask night`: what takes too long for every change, with a report of what came of it.
//!
//! Why here: measurements, long fuzzing and every old client are worth little unless somebody can see when they were run,
//! on what, and how they ended.
//! Invariants: a failed step stops none of the others; the report names the commit, and whether the tree differed from it.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::process::now;
use crate::{Reported, cargo, options, refuse_leftovers, root};

/// Where the report is kept.
const REPORT: &str = "bench/NIGHT.md";

/// The steps, in order: a name and the arguments of `cargo xtask`.
const STEPS: [(&str, &[&str]); 10] = [
    ("conformance", &["conformance", "--side", "server"]),
    ("interop", &["interop", "--with", "all", "--all-versions"]),
    ("fuzz", &["fuzz", "--seconds", "300"]),
    ("verify-tests", &["verify-tests"]),
    ("auth-timing", &["auth-timing"]),
    ("kill-tasks", &["kill-tasks", "--rounds", "50"]),
    ("race-tasks", &["race-tasks", "--calls", "100000"]),
    ("counts", &["bench", "--counts", "--check"]),
    ("soak", &["soak", "--minutes", "20", "--write"]),
    ("bench", &["bench", "--build-time", "--write"]),
];

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// A tool was missing.
    NotRun,
    Skipped,
}

impl Outcome {
    fn of(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Passed,
            Some(3) => Self::NotRun,
            _ => Self::Failed,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::NotRun => "NOT RUN",
            Self::Skipped => "skipped",
        }
    }
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let only: Vec<String> = options.values_from_str("--only")?;
    refuse_leftovers(options)?;
    for name in &only {
        ensure!(STEPS.iter().any(|(step, _)| step == name), "no step is called `{name}`");
    }
    let begun = printed(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]))?;
    let commit = commit()?;
    let folder = root().join("target/night");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut ended = Vec::new();
    for (name, arguments) in STEPS {
        if !only.is_empty() && !only.iter().any(|wanted| wanted == name) {
            ended.push((name, arguments, Outcome::Skipped, Duration::ZERO, String::new()));
            continue;
        }
        println!("== {name}");
        let started = now();
        let log = folder.join(format!("{name}.txt"));
        let outcome = step(arguments, &log)?;
        let last = last_line(&fs::read_to_string(&log).unwrap_or_default());
        println!("== {name} {}: {last}", outcome.as_str());
        ended.push((name, arguments, outcome, started.elapsed(), last));
    }
    let report = report(&begun, &commit, &ended);
    fs::write(root().join(REPORT), &report).with_context(|| format!("cannot write {REPORT}"))?;
    print!("{report}");
    let failed = ended.iter().any(|(_, _, outcome, ..)| matches!(outcome, Outcome::Failed | Outcome::NotRun));
    if failed { Err(Reported.into()) } else { Ok(()) }
}

fn step(arguments: &[&str], log: &std::path::Path) -> anyhow::Result<Outcome> {
    let output = fs::File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    let status = cargo()
        .args(["run", "--quiet", "--package", "xtask", "--"])
        .args(arguments)
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .context("cannot start cargo")?;
    Ok(Outcome::of(status.code()))
}

/// The commit, and whether anything differs from it.
pub(crate) fn commit() -> anyhow::Result<String> {
    let commit = printed(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).current_dir(root()))?;
    let changed = printed(Command::new("git").args(["status", "--porcelain"]).current_dir(root()))?;
    Ok(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}

/// The day, in UTC.
pub(crate) fn today() -> anyhow::Result<String> {
    printed(Command::new("date").args(["-u", "+%Y-%m-%d"]))
}

pub(crate) fn printed(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    ensure!(output.status.success(), "{:?} failed", command.get_program());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The last line that says anything, which is where each command here puts its sum.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing was printed");
    line.chars().take(200).collect()
}

type Ended<'a> = (&'a str, &'a [&'a str], Outcome, Duration, String);

fn report(begun: &str, commit: &str, ended: &[Ended<'_>]) -> String {
    let mut report = format!(
        "# The last night\n\nWritten by `cargo xtask night`. Begun {begun}, at commit {commit}.\n\n\
         | step | command | outcome | seconds | last line |\n| --- | --- | --- | ---: | --- |\n"
    );
    for (name, arguments, outcome, time, last) in ended {
        let (outcome, seconds, last) = (outcome.as_str(), time.as_secs(), last.replace('|', "\\|"));
        // Writing into a text cannot fail.
        let _ = writeln!(report, "| {name} | `cargo xtask {}` | {outcome} | {seconds} | {last} |", arguments.join(" "));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_neither_a_success_nor_a_failure() {
        assert_eq!(Outcome::of(Some(0)), Outcome::Passed);
        assert_eq!(Outcome::of(Some(1)), Outcome::Failed);
        assert_eq!(Outcome::of(Some(3)), Outcome::NotRun);
        assert_eq!(Outcome::of(None), Outcome::Failed, "ended by a signal");
    }

    #[test]
    fn a_row_of_the_report_says_what_ran_and_how_it_ended() {
        let arguments: &[&str] = &["fuzz", "--seconds", "300"];
        let ended = [("fuzz", arguments, Outcome::Failed, Duration::from_secs(61), "a | b".to_owned())];
        let report = report("2026-01-02 03:04 UTC", "abc with changes", &ended);
        assert!(report.contains("Begun 2026-01-02 03:04 UTC, at commit abc with changes."));
        assert!(report.ends_with("| fuzz | `cargo xtask fuzz --seconds 300` | FAILED | 61 | a \\| b |\n"), "{report}");
        assert_eq!(last_line("one\n two \n\n"), "two");
    }
}
