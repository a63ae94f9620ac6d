//! `cargo xtask soak`: every kind of client against one server, for minutes, with a report that is kept.
//!
//! Why here: a run is worth its time only if what it found stands beside the commit it was found at.
//! Invariants: the clients and the server are `bench/soak`, built as released; what fails is reported like what passes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::night::{commit, printed};
use crate::process::{Guarded, piped};
use crate::{Reported, cargo, options, refuse_leftovers, root, target};

/// Where the reports are kept, the newest first.
const REPORTS: &str = "bench/SOAK.md";
/// The line behind which the newest report goes.
const NEWEST: &str = "<!-- newest -->\n";
/// What the program prints before its report.
const REPORT: &str = "== report";
/// How long the server may take to begin, to settle and to end.
const AROUND: Duration = Duration::from_secs(180);

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let minutes: u64 = options.opt_value_from_str("--minutes")?.unwrap_or(20);
    let p99: u64 = options.opt_value_from_str("--p99-ms")?.unwrap_or(250);
    let rate: u64 = options.opt_value_from_str("--rate")?.unwrap_or(100);
    let note: Option<String> = options.opt_value_from_str("--note")?;
    let is_kept = options.contains("--write");
    refuse_leftovers(options)?;
    ensure!(minutes > 0, "`--minutes` cannot be 0");

    let status = cargo().args(["build", "--release", "-p", "bench-soak"]).status().context("cannot start cargo")?;
    ensure!(status.success(), "bench-soak does not build");
    let begun = printed(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]))?;
    let commit = commit()?;
    let seconds = minutes * 60;
    let interval = (seconds / 60).clamp(2, 30);
    let values = [seconds, interval, rate, p99].map(|value| value.to_string());
    let [seconds_text, interval, rate, p99] = &values;
    let told =
        ["drive", "--seconds", seconds_text, "--interval", interval, "--rate", rate, "--p99-ms", p99].map(String::from);
    let soak = Guarded::spawn("soak", piped(Command::new(target().join("release/bench-soak")).args(&told)))?;
    let mut report = String::new();
    let mut reports = false;
    let lines = soak.lines()?;
    loop {
        let line = match lines.recv_timeout(AROUND) {
            Ok(line) => line.context("cannot read what the soak prints")?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => bail!("the soak printed nothing for {AROUND:?}"),
        };
        println!("{line}");
        if reports {
            writeln!(report, "{line}")?;
        }
        reports |= line == REPORT;
    }
    let ended = soak.wait_at_most(AROUND)?;
    let passed = ended.is_some_and(|status| status.success());
    ensure!(!report.is_empty(), "the soak ended without a report");
    if is_kept {
        let head = head(&begun, &commit, minutes, &values, note.as_deref())?;
        keep(&root().join(REPORTS), &format!("{head}{report}"))?;
    }
    if passed { Ok(()) } else { Err(Reported.into()) }
}

fn head(begun: &str, commit: &str, minutes: u64, told: &[String], note: Option<&str>) -> anyhow::Result<String> {
    let processors = std::thread::available_parallelism()?;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split_whitespace().take(3).collect();
    let note = note.map(|note| format!("- {note}\n")).unwrap_or_default();
    let (rate, p99) = (&told[2], &told[3]);
    Ok(format!(
        "## {begun}, {minutes} minutes\n\n- at commit {commit}: `cargo xtask soak --minutes {minutes} --rate {rate} --p99-ms {p99}`\n\
         - {processors} processors; load average at the end {}\n{note}",
        load.join(" ")
    ))
}

/// Puts a report before the older ones.
fn keep(file: &Path, report: &str) -> anyhow::Result<()> {
    let before = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    fs::write(file, with(&before, report)?).with_context(|| format!("cannot write {}", file.display()))
}

fn with(before: &str, report: &str) -> anyhow::Result<String> {
    let (head, older) = before.split_once(NEWEST).context("there is no place for the newest report")?;
    Ok(format!("{head}{NEWEST}\n{report}{older}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_report_stands_first() {
        let one = with("# Soak\n\n<!-- newest -->\n", "## one\n\n- passed\n").unwrap();
        let two = with(&one, "## two\n\n- passed\n").unwrap();
        assert_eq!(two, "# Soak\n\n<!-- newest -->\n\n## two\n\n- passed\n\n## one\n\n- passed\n");
        assert!(with("# Soak\n", "x").is_err());
    }

    #[test]
    fn the_file_of_reports_has_a_place_for_the_next() {
        assert!(with(&fs::read_to_string(root().join(REPORTS)).unwrap(), "x").is_ok());
    }

    #[test]
    fn a_run_of_no_minutes_is_refused() {
        assert!(run(&["--minutes".to_owned(), "0".to_owned()]).is_err());
    }
}
