//! Reads what the conformance suite writes, and lays it out as a table.
//!
//! Why here: the suite's own summary hides warnings and skips, and its exit status ignores unscored failures.
//! Invariants: a scenario that left no result counts as failed; an unknown status is an error, never ignored.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

/// The length of the time at the end of a result folder's name, with the hyphen before it.
const TIME_LENGTH: usize = "-2026-07-28T00-00-00-000Z".len();

/// What the suite found about one behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Check {
    pub(crate) id: String,
    pub(crate) status: Status,
    /// What went wrong.
    #[serde(default, rename = "errorMessage")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    Success,
    Failure,
    Warning,
    Skipped,
    Info,
}

impl Status {
    pub(crate) const ALL: [Self; 5] = [Self::Success, Self::Failure, Self::Warning, Self::Skipped, Self::Info];

    /// The suite's word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
            Self::Warning => "WARNING",
            Self::Skipped => "SKIPPED",
            Self::Info => "INFO",
        }
    }

    /// Whether a check with this status must stand in the baseline. A note often is a skip in disguise: what the suite
    /// would have judged did not happen.
    pub(crate) fn needs_reason(self) -> bool {
        self != Self::Success
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

/// One scenario of a run, with its checks in the suite's order. The same check id may occur more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) checks: Vec<Check>,
}

impl Scenario {
    fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }
}

/// Reads the result folders under `folder`, in the order in which the suite ran them.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Vec<Scenario>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let (scenario, time) = split_folder_name(&name)?;
        found.push((time.to_owned(), scenario.to_owned(), folder.join(&name)));
    }
    found.sort();
    found.into_iter().map(|(_, name, folder)| Ok(Scenario { name, checks: read_checks(&folder)? })).collect()
}

/// How many scenarios the suite said it would run, if it said so.
pub(crate) fn announced(log: &str) -> Option<usize> {
    let line = log.lines().find(|line| line.starts_with("Running ") && line.contains(" scenarios)"))?;
    let (before, _) = line.split_once(" scenarios)")?;
    before.rsplit_once('(')?.1.parse().ok()
}

/// One line per scenario and a line of totals.
pub(crate) fn table(scenarios: &[Scenario]) -> String {
    let width = scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0).max("scenario".len());
    let mut text = format!("{:width$}  passed  failed  warned  skipped  info\n", "scenario");
    let mut totals = [0; Status::ALL.len()];
    for scenario in scenarios {
        let counts = Status::ALL.map(|status| scenario.count(status));
        for (total, count) in totals.iter_mut().zip(counts) {
            *total += count;
        }
        row(&mut text, &scenario.name, width, counts);
    }
    row(&mut text, "total", width, totals);
    text
}

fn row(text: &mut String, name: &str, width: usize, [passed, failed, warned, skipped, info]: [usize; 5]) {
    text.push_str(&format!("{name:width$}  {passed:6}  {failed:6}  {warned:6}  {skipped:7}  {info:4}\n"));
}

/// `server-SCENARIO-TIME` into the scenario and the time.
fn split_folder_name(name: &str) -> anyhow::Result<(&str, &str)> {
    let split =
        name.strip_prefix("server-").and_then(|rest| rest.split_at_checked(rest.len().checked_sub(TIME_LENGTH)?));
    let (scenario, time) = split.with_context(|| format!("`{name}` is not a folder of results"))?;
    ensure!(time.starts_with("-20") && time.ends_with('Z'), "`{name}` does not end with a time");
    Ok((scenario, time))
}

fn read_checks(folder: &Path) -> anyhow::Result<Vec<Check>> {
    let path = folder.join("checks.json");
    let checks: Vec<Check> = match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("cannot understand {}", path.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    // The suite makes the folder first, and leaves it empty when the scenario throws.
    if checks.is_empty() {
        let message = Some("the suite wrote no check of this scenario; see its log".into());
        return Ok(vec![Check { id: "no-checks-written".into(), status: Status::Failure, message }]);
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, status: Status) -> Check {
        Check { id: id.into(), status, message: None }
    }

    #[test]
    fn a_folder_name_holds_scenario_and_time() {
        let name = "server-tools-call-image-2026-11-30T13-53-12-330Z";
        assert_eq!(split_folder_name(name).unwrap(), ("tools-call-image", "-2026-11-30T13-53-12-330Z"));
        for other in ["", "server-", "server-x", "client-tools-call-image-2026-11-30T13-53-12-330Z", "server-é-x"] {
            assert!(split_folder_name(other).is_err(), "{other}");
        }
    }

    #[test]
    fn results_are_read_in_the_order_of_their_times() {
        let folder = tempfile("order");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("checks.json"), text).unwrap();
        };
        write("server-b-2026-11-30T13-53-12-330Z", r#"[{"id":"one","status":"SUCCESS","name":"One"}]"#);
        write(
            "server-a-2026-11-30T13-53-12-331Z",
            r#"[{"id":"two","status":"WARNING","errorMessage":"late"},{"id":"three","status":"INFO"}]"#,
        );
        fs::create_dir_all(folder.join("server-c-2026-11-30T13-53-12-332Z")).unwrap();
        let scenarios = read(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(scenarios[0].name, "b");
        assert_eq!(scenarios[0].checks, [check("one", Status::Success)]);
        assert_eq!(scenarios[1].checks[0].message.as_deref(), Some("late"));
        assert_eq!(scenarios[1].checks[1], check("three", Status::Info));
        assert_eq!((scenarios[2].name.as_str(), scenarios[2].checks[0].status), ("c", Status::Failure));
    }

    #[test]
    fn an_unknown_status_is_refused() {
        let folder = tempfile("status");
        let result = folder.join("server-a-2026-11-30T13-53-12-331Z");
        fs::create_dir_all(&result).unwrap();
        fs::write(result.join("checks.json"), r#"[{"id":"one","status":"MAYBE"}]"#).unwrap();
        let outcome = read(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert!(format!("{:#}", outcome.unwrap_err()).contains("MAYBE"));
    }

    #[test]
    fn the_table_counts_by_status_and_totals() {
        let scenarios = [
            Scenario { name: "a".into(), checks: vec![check("x", Status::Success), check("y", Status::Failure)] },
            Scenario {
                name: "long-name".into(),
                checks: vec![check("x", Status::Success), check("z", Status::Skipped)],
            },
        ];
        let table = table(&scenarios);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["a", "1", "1", "0", "0", "0"]);
        assert_eq!(rows[2], ["long-name", "1", "0", "0", "1", "0"]);
        assert_eq!(rows[3], ["total", "2", "1", "0", "1", "0"]);
    }

    #[test]
    fn the_announced_number_is_found_in_the_log() {
        assert_eq!(announced("note\nRunning requirements 2026-07-28 (50 scenarios) against http://x\n"), Some(50));
        assert_eq!(announced("Running client scenario 'ping' against server: http://x"), None);
    }

    /// A fresh folder, named after the test and the process so that no two tests share it.
    fn tempfile(test: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-checks-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }
}
