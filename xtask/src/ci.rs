//! `cargo xtask ci`: everything CI runs, in its order.
//!
//! Why here: a developer can run before a push exactly what is run after it.
//! Invariants: the first failure stops the run; the last line counts the tests, also after a failure.

use std::io::{BufRead as _, BufReader, PipeReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::process::now;
use crate::{Reported, cargo, options, refuse_leftovers};

/// Example programs that end with their input, of which there is none here; the other examples run as tests.
const EXAMPLES: [&[&str]; 3] = [
    &["--package", "mcp-stdio", "--example", "echo-stdio"],
    &["--package", "mcp-stdio", "--example", "ask"],
    &["--package", "skills-extension", "--example", "serve", "--", "tests/everything-server/assets/skills"],
];

/// The example that is a workspace of its own.
const OTLP: &str = "examples/otlp/Cargo.toml";

/// What a step runs: one or more commands of cargo.
struct Step {
    name: &'static str,
    commands: Vec<Vec<&'static str>>,
    /// Who counts the tests in its output, if it has tests.
    counts: Option<Counts>,
}

/// A test runner, known by its closing lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// `Summary [0.1s] 3 tests run: 2 passed (1 slow), 1 failed, 0 skipped`, once. It also shows what a failed test
    /// printed, which may look like the other form.
    Nextest,
    /// `test result: ok. 2 passed; 0 failed; …`, once for each program.
    Libtest,
}

/// Tests that passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let skipped: Vec<String> = options.values_from_str("--skip")?;
    let list = options.contains("--list");
    refuse_leftovers(options)?;
    let steps = steps(has_nextest());
    for name in &skipped {
        ensure!(steps.iter().any(|step| step.name == name), "no step is called `{name}`");
    }
    if list {
        steps.iter().for_each(|step| println!("{}", step.name));
        return Ok(());
    }

    let mut totals = Totals::default();
    let outcome = run_steps(&steps, &skipped, &mut totals);
    if let Err(error) = &outcome {
        println!("FAILED: {error:#}");
    }
    // CI looks for these counts at the end of the output, whatever happened.
    println!("{} passed, {} failed", totals.passed, totals.failed);
    outcome.map_err(|_| Reported.into())
}

fn run_steps(steps: &[Step], skipped: &[String], totals: &mut Totals) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for step in steps {
        if skipped.iter().any(|name| name == step.name) {
            println!("== {} SKIPPED", step.name);
            continue;
        }
        println!("== {}", step.name);
        let started = now();
        for arguments in &step.commands {
            run_command(step, arguments, totals)?;
        }
        println!("== {} ok, {}", step.name, seconds(started.elapsed()));
        times.push((step.name, started.elapsed()));
    }
    for (name, time) in &times {
        println!("{name:12} {:>8}", seconds(*time));
    }
    println!("{:12} {:>8}", "all", seconds(times.iter().map(|(_, time)| *time).sum()));
    Ok(())
}

fn steps(nextest: bool) -> Vec<Step> {
    let step = |name, commands| Step { name, commands, counts: None };
    let (counts, test) = if nextest {
        // Colours would hide the summary from the parser.
        (Counts::Nextest, vec!["nextest", "run", "--workspace", "--color", "never", "--no-fail-fast"])
    } else {
        // Doc tests are their own step.
        (Counts::Libtest, vec!["test", "--workspace", "--all-targets", "--no-fail-fast"])
    };
    let run: Vec<_> = EXAMPLES.iter().map(|row| [&["run", "--quiet"], *row].concat()).collect();
    let xtask = |arguments: &[&'static str]| [&["run", "--quiet", "--package", "xtask", "--"], arguments].concat();
    vec![
        step(
            "fmt",
            vec![
                vec!["fmt", "--all", "--check"],
                vec!["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"],
                vec!["fmt", "--manifest-path", OTLP, "--check"],
            ],
        ),
        step("tidy", vec![xtask(&["tidy"])]),
        step(
            "clippy",
            vec![
                vec!["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"],
                vec!["clippy", "--locked", "--manifest-path", OTLP, "--all-targets", "--", "--deny", "warnings"],
            ],
        ),
        step("doc", vec![vec!["doc", "--workspace", "--no-deps"]]),
        Step { name: "test", commands: vec![test], counts: Some(counts) },
        Step { name: "doctest", commands: vec![vec!["test", "--doc", "--workspace"]], counts: Some(Counts::Libtest) },
        step("features", vec![xtask(&["features"])]),
        step("examples", [run, vec![vec!["test", "--quiet", "--locked", "--manifest-path", OTLP]]].concat()),
        step("conformance", vec![xtask(&["conformance", "--side", "server"])]),
        step("interop", vec![xtask(&["interop", "--with", "python"])]),
        step("fuzz", vec![xtask(&["fuzz", "--seconds", "20", "--runs", "20000", "--seed", "1"])]),
        step("counts", vec![xtask(&["bench", "--counts", "--check"])]),
    ]
}

fn run_command(step: &Step, arguments: &[&str], totals: &mut Totals) -> anyhow::Result<()> {
    let shown = format!("cargo {}", arguments.join(" "));
    println!("$ {shown}");
    let mut command = cargo();
    command.args(arguments).stdin(Stdio::null());
    if step.name == "doc" {
        command.env("RUSTDOCFLAGS", "-D warnings");
    }
    let (status, counted) = if let Some(counts) = step.counts {
        let (reader, writer) = std::io::pipe().context("cannot create a pipe")?;
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
        // Its copies of the pipe's end would keep the reader waiting.
        drop(command);
        let counted = echo_and_count(reader, counts)?;
        (child.wait()?, counted)
    } else {
        (command.status().with_context(|| format!("cannot start {shown}"))?, Some(Totals::default()))
    };
    totals.add(counted.unwrap_or_default());
    ensure!(status.code() != Some(3), "step {}: a tool is missing, so nothing was judged", step.name);
    ensure!(status.success(), "step {}: {shown}: {status}", step.name);
    ensure!(counted.is_some(), "step {}: {shown} printed no counts of tests", step.name);
    Ok(())
}

/// Prints what comes through the pipe as it comes, and adds up the counts in it.
fn echo_and_count(reader: PipeReader, counts: Counts) -> anyhow::Result<Option<Totals>> {
    let mut totals: Option<Totals> = None;
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        if let Some(counted) = parse_counts(&line, counts) {
            totals.get_or_insert_default().add(counted);
        }
    }
    Ok(totals)
}

/// Reads a closing line of the test runner.
fn parse_counts(line: &str, runner: Counts) -> Option<Totals> {
    let line = line.trim_start();
    let counts = match runner {
        Counts::Nextest => line.strip_prefix("Summary [")?.split_once(" run: ")?.1,
        Counts::Libtest => line.strip_prefix("test result: ")?.split_once(". ")?.1,
    };
    let mut totals = Totals::default();
    for part in counts.split([',', ';']) {
        let mut words = part.split_whitespace();
        // A part in brackets does not begin with a number and says nothing new.
        let Some(Ok(count)) = words.next().map(str::parse::<u64>) else { continue };
        match words.next() {
            Some("passed") => totals.passed += count,
            Some("failed" | "timed" | "exec") => totals.failed += count,
            _ => {}
        }
    }
    Some(totals)
}

fn has_nextest() -> bool {
    let mut command: Command = cargo();
    command.args(["nextest", "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_both_test_runners_are_read() {
        let nextest = [
            ("     Summary [   0.014s] 3 tests run: 3 passed, 0 skipped", (3, 0)),
            ("     Summary [   1.200s] 1 test run: 1 passed, 4 skipped", (1, 0)),
            (
                "     Summary [ 1.2s] 5/9 tests run: 2 passed (1 slow, 1 flaky), 2 failed, 1 timed out, 7 skipped",
                (2, 3),
            ),
        ];
        for (line, (passed, failed)) in nextest {
            assert_eq!(parse_counts(line, Counts::Nextest), Some(Totals { passed, failed }), "{line}");
            assert_eq!(parse_counts(line, Counts::Libtest), None, "{line}");
        }
        let libtest = [
            ("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s", (12, 0)),
            ("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", (1, 2)),
        ];
        for (line, (passed, failed)) in libtest {
            assert_eq!(parse_counts(line, Counts::Libtest), Some(Totals { passed, failed }), "{line}");
            assert_eq!(parse_counts(line, Counts::Nextest), None, "{line}");
        }
        assert_eq!(parse_counts("running 3 tests", Counts::Libtest), None);
    }

    #[test]
    fn counts_of_several_programs_add_up() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let text = b"test result: ok. 2 passed; 0 failed\nother\ntest result: FAILED. 3 passed; 1 failed\n";
        std::io::Write::write_all(&mut writer, text).unwrap();
        drop(writer);
        assert_eq!(echo_and_count(reader, Counts::Libtest).unwrap(), Some(Totals { passed: 5, failed: 1 }));
    }

    #[test]
    fn an_unknown_step_cannot_be_skipped() {
        assert!(run(&["--skip".into(), "everything".into()]).is_err());
    }

    #[test]
    fn steps_have_distinct_names_and_count_tests_with_either_runner() {
        for nextest in [true, false] {
            let steps = steps(nextest);
            let names: std::collections::BTreeSet<&str> = steps.iter().map(|step| step.name).collect();
            assert_eq!(names.len(), steps.len());
            assert!(steps.iter().any(|step| step.counts.is_some()));
        }
    }
}
