//! `cargo xtask night`: what takes too long for every change, with a report of what came of it.
//!
//! Why here: measurements, long fuzzing and every old client are worth little unless somebody can see when they were run,
//! on what, and how they ended.
//! Invariants: a failed step stops none of the others; each row names its commit, and whether the tree differed from it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::process::now;
use crate::{Reported, cargo, options, refuse_leftovers, root};

/// Where the report is kept.
const REPORT: &str = "bench/NIGHT.md";

/// The steps, in order: a name and the arguments of `cargo xtask`.
const STEPS: [(&str, &[&str]); 12] = [
    ("conformance", &["conformance", "--side", "server"]),
    ("interop", &["interop", "--with", "all", "--all-versions"]),
    ("fuzz", &["fuzz", "--seconds", "300"]),
    ("verify-tests", &["verify-tests"]),
    ("auth-timing", &["auth-timing"]),
    ("kill-tasks", &["kill-tasks", "--rounds", "50", "--write"]),
    ("race-tasks", &["race-tasks", "--calls", "100000", "--write"]),
    ("counts", &["bench", "--counts", "--check"]),
    ("tasks", &["bench", "--tasks", "--write"]),
    ("soak", &["soak", "--minutes", "20", "--write"]),
    ("bench", &["bench", "--write"]),
    ("build-time", &["bench", "--row", "build-time", "--write"]),
];

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// A tool was missing.
    NotRun,
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
    let folder = root().join("target/night");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut rows = Rows::of(&fs::read_to_string(root().join(REPORT)).unwrap_or_default());
    let mut all_passed = true;
    for (name, arguments) in STEPS {
        if !only.is_empty() && !only.iter().any(|wanted| wanted == name) {
            continue;
        }
        println!("== {name}");
        let begun = printed(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M"]))?;
        let commit = commit()?;
        let started = now();
        let log = folder.join(format!("{name}.txt"));
        let outcome = step(arguments, &log)?;
        let last = last_line(&fs::read_to_string(&log).unwrap_or_default());
        println!("== {name} {}: {last}", outcome.as_str());
        all_passed &= outcome == Outcome::Passed;
        let time = started.elapsed();
        rows.put(name, &Ended { arguments, outcome, begun: &begun, commit: &commit, time, last: &last });
        // After each step, so that a night that is cut short leaves what it found.
        fs::write(root().join(REPORT), rows.report()).with_context(|| format!("cannot write {REPORT}"))?;
    }
    print!("{}", rows.report());
    if all_passed { Ok(()) } else { Err(Reported.into()) }
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

/// The commit, and whether anything but the reports that are being written differs from it.
pub(crate) fn commit() -> anyhow::Result<String> {
    let commit = printed(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).current_dir(root()))?;
    let changed = printed(
        Command::new("git").args(["status", "--porcelain", "--", ".", ":(exclude)bench/*.md"]).current_dir(root()),
    )?;
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

/// The last line that says anything, which is where each command here puts its sum. Where the source stands is nobody's
/// business.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing was printed");
    line.replace(&*root().to_string_lossy(), ".").chars().take(200).collect()
}

/// What is said of a step that has ended.
struct Ended<'a> {
    arguments: &'a [&'a str],
    outcome: Outcome,
    begun: &'a str,
    commit: &'a str,
    time: Duration,
    last: &'a str,
}

/// The rows of the report by the names of their steps.
struct Rows(BTreeMap<String, String>);

impl Rows {
    /// Those of a report that was written before; a step that ran alone replaces its own.
    fn of(report: &str) -> Self {
        let row_of = |line: &str| {
            let name = line.strip_prefix("| ")?.split(" |").next()?;
            STEPS.iter().any(|(step, _)| *step == name).then(|| (name.to_owned(), line.to_owned()))
        };
        Self(report.lines().filter_map(row_of).collect())
    }

    fn put(&mut self, name: &str, ended: &Ended<'_>) {
        let Ended { arguments, outcome, begun, commit, time, last } = ended;
        let (command, outcome, seconds) = (arguments.join(" "), outcome.as_str(), time.as_secs());
        let last = last.replace('|', "\\|");
        let row = format!("| {name} | `cargo xtask {command}` | {outcome} | {seconds} | {begun} | {commit} | {last} |");
        self.0.insert(name.to_owned(), row);
    }

    fn report(&self) -> String {
        let mut report = String::from(
            "# The last night\n\nWritten by `cargo xtask night`, each row when its step had ended; times are UTC.\n\n\
             | step | command | outcome | seconds | begun | commit | last line |\n\
             | --- | --- | --- | ---: | --- | --- | --- |\n",
        );
        for (name, arguments) in STEPS {
            let never = || format!("| {name} | `cargo xtask {}` | never run | | | | |", arguments.join(" "));
            report.push_str(&self.0.get(name).cloned().unwrap_or_else(never));
            report.push('\n');
        }
        report
    }
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
        let mut rows = Rows::of("");
        let arguments: &[&str] = &["fuzz", "--seconds", "300"];
        let (begun, commit, time) = ("2026-01-02 03:04", "abc with changes", Duration::from_secs(61));
        rows.put("fuzz", &Ended { arguments, outcome: Outcome::Failed, begun, commit, time, last: "a | b" });
        let row =
            "| fuzz | `cargo xtask fuzz --seconds 300` | FAILED | 61 | 2026-01-02 03:04 | abc with changes | a \\| b |";
        assert!(rows.report().lines().any(|line| line == row), "{}", rows.report());
        assert_eq!(last_line("one\n two \n\n"), "two");
        assert_eq!(last_line(&format!("see {}", root().join("log").display())), "see ./log");
    }

    #[test]
    fn a_step_that_runs_alone_leaves_the_rows_of_the_others() {
        let mut rows = Rows::of("# The last night\n\n| step | command |\n| soak | as it was |\n| gone | of old |\n");
        let arguments: &[&str] = &[];
        let (begun, commit, time) = ("2026-01-02 03:04", "abc", Duration::from_secs(1));
        rows.put("fuzz", &Ended { arguments, outcome: Outcome::Passed, begun, commit, time, last: "" });
        let report = rows.report();
        assert!(report.contains("\n| soak | as it was |\n") && report.contains("\n| fuzz |"), "{report}");
        assert!(!report.contains("gone"), "{report}");
        assert!(report.contains("| bench | `cargo xtask bench --write` | never run |"), "{report}");
    }
}
