//! The checks of the conformance suite that may fall short, each with its reason, and the comparison with a run.
//!
//! Why here: a failure that is known must not hide a new one, and a failure that is gone must not stay excused.
//! Invariants: a line excuses one check with one status; a line that excuses nothing is itself an error.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

use crate::checks::{Check, Scenario, Status};

/// The scenarios of which a failure or warning may be excused: extensions the server does not implement yet.
/// A skip or a note says that the suite did not judge, and may be excused anywhere.
const EXCUSABLE: [&str; 1] = ["tasks-"];

/// One line: `scenario check-id STATUS reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    scenario: String,
    check: String,
    status: Status,
    reason: String,
}

impl Line {
    fn excuses(&self, scenario: &Scenario, check: &Check) -> bool {
        self.scenario == scenario.name && self.check == check.id && self.status == check.status
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {} {}", self.scenario, self.check, self.status, self.reason)
    }
}

/// What a run shows that its baseline does not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference<'a> {
    /// Checks that fall short without an excuse.
    pub(crate) unexcused: Vec<(&'a Scenario, &'a Check)>,
    /// Lines whose check passed, has another status or did not occur although its scenario ran.
    pub(crate) stale: Vec<&'a Line>,
}

impl Difference<'_> {
    pub(crate) fn is_none(&self) -> bool {
        self.unexcused.is_empty() && self.stale.is_empty()
    }
}

/// Reads a baseline. A missing file is an empty one.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Line>> {
    match fs::read_to_string(path) {
        Ok(text) => parse(&text).with_context(|| format!("{} is not a baseline", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

pub(crate) fn compare<'a>(baseline: &'a [Line], scenarios: &'a [Scenario]) -> Difference<'a> {
    let checks = || scenarios.iter().flat_map(|scenario| scenario.checks.iter().map(move |check| (scenario, check)));
    let excused = |scenario, check| baseline.iter().any(|line| line.excuses(scenario, check));
    let ran = |line: &Line| scenarios.iter().any(|scenario| scenario.name == line.scenario);
    let used = |line: &Line| checks().any(|(scenario, check)| line.excuses(scenario, check));
    Difference {
        unexcused: checks()
            .filter(|(scenario, check)| check.status.needs_reason() && !excused(scenario, check))
            .collect(),
        stale: baseline.iter().filter(|line| ran(line) && !used(line)).collect(),
    }
}

/// One line of the file each; empty lines and those that start with `#` are for people.
fn parse(text: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let line = parse_line(text).with_context(|| format!("line {}", index + 1))?;
        let repeated = lines
            .iter()
            .any(|other| other.scenario == line.scenario && other.check == line.check && other.status == line.status);
        ensure!(!repeated, "line {}: `{line}` is there twice", index + 1);
        lines.push(line);
    }
    Ok(lines)
}

fn parse_line(text: &str) -> anyhow::Result<Line> {
    let mut words = text.split_whitespace();
    let (Some(scenario), Some(check), Some(status)) = (words.next(), words.next(), words.next()) else {
        bail!("expected `scenario check-id STATUS reason`");
    };
    let status = Status::ALL.into_iter().find(|known| known.word() == status && known.needs_reason());
    let status = status.context("the status is not FAILURE, WARNING, SKIPPED or INFO")?;
    let reason = words.collect::<Vec<_>>().join(" ");
    ensure!(!reason.is_empty(), "no reason is given");
    ensure!(
        matches!(status, Status::Skipped | Status::Info) || EXCUSABLE.iter().any(|prefix| scenario.starts_with(prefix)),
        "`{scenario}` must pass: only {} may be excused",
        EXCUSABLE.map(|prefix| format!("{prefix}*")).join(" and "),
    );
    Ok(Line { scenario: scenario.into(), check: check.into(), status, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str, checks: &[(&str, Status)]) -> Scenario {
        let checks = checks.iter().map(|&(id, status)| Check { id: id.into(), status, message: None }).collect();
        Scenario { name: name.into(), checks }
    }

    #[test]
    fn a_line_excuses_its_check_with_its_status_only() {
        let baseline = parse("# note\n\ntasks-a one FAILURE not implemented yet\n").unwrap();
        let same = [scenario("tasks-a", &[("one", Status::Failure), ("one", Status::Success)])];
        assert!(compare(&baseline, &same).is_none());
        let other_check = [scenario("tasks-a", &[("one", Status::Failure), ("two", Status::Failure)])];
        assert_eq!(compare(&baseline, &other_check).unexcused, [(&other_check[0], &other_check[0].checks[1])]);
        let other_status = [scenario("tasks-a", &[("one", Status::Warning)])];
        let difference = compare(&baseline, &other_status);
        assert_eq!((difference.unexcused.len(), difference.stale.len()), (1, 1));
        let other_scenario = [scenario("tasks-b", &[("one", Status::Failure)])];
        assert_eq!(compare(&baseline, &other_scenario).unexcused.len(), 1);
    }

    #[test]
    fn whatever_did_not_pass_needs_an_excuse() {
        let run = [scenario(
            "ping",
            &[
                ("a", Status::Failure),
                ("b", Status::Warning),
                ("c", Status::Skipped),
                ("d", Status::Info),
                ("e", Status::Success),
            ],
        )];
        let ids: Vec<&str> = compare(&[], &run).unexcused.iter().map(|(_, check)| check.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_line_is_stale_when_its_scenario_ran_without_it() {
        let baseline = parse("tasks-a one FAILURE not implemented yet\n").unwrap();
        let passed = [scenario("tasks-a", &[("one", Status::Success)])];
        assert_eq!(compare(&baseline, &passed).stale, [&baseline[0]]);
        let absent = [scenario("tasks-a", &[("two", Status::Success)])];
        assert_eq!(compare(&baseline, &absent).stale, [&baseline[0]]);
        let not_run = [scenario("ping", &[("one", Status::Success)])];
        assert!(compare(&baseline, &not_run).is_none());
    }

    #[test]
    fn malformed_lines_are_refused() {
        for text in [
            "tasks-a one FAILURE",
            "tasks-a one SUCCESS it passes",
            "tasks-a one MAYBE a word of nobody",
            "tasks-a one",
            "ping one FAILURE must pass",
            "ping one WARNING must pass",
            "tasks-a one FAILURE why\ntasks-a one FAILURE again",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let text = "ping one SKIPPED the suite does not look\nping two INFO the server may choose";
        assert_eq!(parse(text).unwrap().len(), 2);
    }

    #[test]
    fn the_committed_baselines_are_well_formed() {
        for run in ["2025-11-25", "2026-07-28", "all"] {
            let path = crate::root().join(format!("tests/baseline/server.{run}.txt"));
            assert!(path.is_file(), "{} is missing", path.display());
            read(&path).unwrap();
        }
    }
}
