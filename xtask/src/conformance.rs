//! `cargo xtask conformance`: runs the official suite against our fixture and judges every check.
//!
//! Why here: the suite's modes pass over warnings, skips and unscored failures; this gate does not.
//! Invariants: one server serves all runs, as a real one would; each run's results go to a fresh folder.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::checks::{self, Scenario};
use crate::node::Packages;
use crate::process::{Guarded, now, piped};
use crate::{NotRun, baseline, cargo, options, refuse_leftovers, root};

/// The revisions for which the suite has a requirement set.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Where npm puts the suite, and the oldest major version of Node on which it starts.
const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const NODE_MAJOR: u32 = 22;
const START_LIMIT: Duration = Duration::from_secs(20);
/// A whole run takes seconds; only a server that does not answer makes it long.
const SUITE_LIMIT: Duration = Duration::from_secs(600);

/// One start of the suite.
struct Run {
    /// Names the folder of results and the baseline.
    name: String,
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let side: Option<String> = options.opt_value_from_str("--side")?;
    let revision: Option<String> = options.opt_value_from_str("--revision")?;
    let scenario: Option<String> = options.opt_value_from_str("--scenario")?;
    refuse_leftovers(options)?;
    if let Some(revision) = &revision {
        ensure!(REVISIONS.contains(&revision.as_str()), "the revisions are {}", REVISIONS.join(" and "));
    }
    match side.as_deref() {
        None | Some("server") => judge_server(&runs(revision.as_deref(), scenario.as_deref())),
        Some("client") => bail!(NotRun("the client does not exist yet".into())),
        Some(other) => bail!("no side is called `{other}`: it is server or client"),
    }
}

/// The starts of the suite that were asked for.
fn runs(revision: Option<&str>, scenario: Option<&str>) -> Vec<Run> {
    let run = |name: &str, arguments: &[&str]| Run {
        name: name.into(),
        arguments: arguments.iter().map(|&argument| argument.into()).collect(),
    };
    match (revision, scenario) {
        // Without force the suite leaves out extensions when a revision is named.
        (Some(revision), Some(scenario)) => {
            vec![run(revision, &["--scenario", scenario, "--spec-version", revision, "--force"])]
        }
        (None, Some(scenario)) => vec![run("all", &["--scenario", scenario])],
        (Some(revision), None) => vec![run(revision, &["--requirements", revision])],
        (None, None) => {
            let mut runs: Vec<Run> =
                REVISIONS.iter().map(|revision| run(revision, &["--requirements", revision])).collect();
            // The only mode with the scenarios that stand in no requirement set.
            runs.push(run("all", &["--suite", "all"]));
            runs
        }
    }
}

fn judge_server(runs: &[Run]) -> anyhow::Result<()> {
    let root = root();
    let suite = Packages::available(root.join("tests/conformance"), NODE_MAJOR)?;
    let program = build("everything-server")?;
    let results = results_folder(&root);
    fs::create_dir_all(&results).with_context(|| format!("cannot create {}", results.display()))?;

    let log = results.join("server.log");
    let mut command = Command::new(&program);
    command.args(["--http", "127.0.0.1:0"]);
    piped(&mut command).stderr(File::create(&log)?);
    let server = Guarded::spawn("server", &mut command)?;
    let line = server.first_line(START_LIMIT).with_context(|| format!("see {}", log.display()))?;
    let url = line.strip_prefix("listening on ").with_context(|| format!("the server said `{line}`"))?;
    println!("server {url}, its log {}", log.display());

    let (mut different, mut checks) = (Vec::new(), 0);
    for run in runs {
        let (agrees, judged) = run_and_compare(&root, &results, &suite, url, run)?;
        checks += judged;
        if let Some(status) = server.wait_at_most(Duration::ZERO)? {
            bail!("the server ended during the run {}: {status}; see {}", run.name, log.display());
        }
        if !agrees {
            different.push(run.name.as_str());
        }
    }
    let status = server.end().context("cannot end the server")?;
    println!("the server ended: {status}");
    ensure!(different.is_empty(), "not as the baseline says: {}", different.join(", "));
    println!("conformance: {checks} checks in {} runs, all as the baseline says", runs.len());
    Ok(())
}

/// Whether the run shows what its baseline says, and in how many checks, after printing the table and the differences.
fn run_and_compare(
    root: &Path,
    results: &Path,
    suite: &Packages,
    url: &str,
    run: &Run,
) -> anyhow::Result<(bool, usize)> {
    let started = now();
    let scenarios = run_suite(&results.join(format!("server-{}", run.name)), suite, url, run)?;
    println!("\n{} ({:.1} s)", run.arguments.join(" "), started.elapsed().as_secs_f64());
    print!("{}", checks::table(&scenarios));

    let path = root.join(format!("tests/baseline/server.{}.txt", run.name));
    let baseline = baseline::read(&path)?;
    let difference = baseline::compare(&baseline, &scenarios);
    for (scenario, check) in &difference.unexcused {
        let message = check.message.as_deref().unwrap_or_default();
        println!("not in the baseline: {} {} {} {message}", scenario.name, check.id, check.status);
    }
    for line in &difference.stale {
        println!("in the baseline, but not seen: {line}");
    }
    Ok((difference.is_none(), scenarios.iter().map(|scenario| scenario.checks.len()).sum()))
}

/// Runs the suite into a fresh folder and reads what it wrote. Its exit status says less than the files do.
fn run_suite(folder: &Path, suite: &Packages, url: &str, run: &Run) -> anyhow::Result<Vec<Scenario>> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder)?;
    let log = folder.with_extension("log");
    let output = File::create(&log)?;
    let mut command = suite.command(SUITE)?;
    command.args(["server", "--url", url]).args(&run.arguments).arg("-o").arg(folder);
    command.stdout(output.try_clone()?).stderr(output);
    let child = Guarded::spawn("suite", &mut command)?;
    if child.wait_at_most(SUITE_LIMIT)?.is_none() {
        child.end()?;
        bail!("the suite did not end within {SUITE_LIMIT:?}; see {}", log.display());
    }
    let scenarios = checks::read(folder)?;
    let log_text = fs::read_to_string(&log)?;
    let expected = checks::announced(&log_text).unwrap_or(1);
    ensure!(
        scenarios.len() == expected,
        "the suite wrote {} of {expected} results; {} ends with\n{}",
        scenarios.len(),
        log.display(),
        last_lines(&log_text, 15),
    );
    Ok(scenarios)
}

/// Builds a program of this workspace, with the checks of a debug build on, and says where it is.
pub(crate) fn build(package: &str) -> anyhow::Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--package", package, "--message-format", "json-render-diagnostics"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start cargo")?;
    let output = child.stdout.take().context("cargo's output is not piped")?;
    let mut program = None;
    for line in BufReader::new(output).lines() {
        program = executable(&line?, package).or(program);
    }
    let status = child.wait()?;
    ensure!(status.success(), "cargo could not build {package}: {status}");
    program.with_context(|| format!("cargo built no program {package}"))
}

/// The program that cargo's message tells of, if it is the one of this name.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_program = message["reason"] == "compiler-artifact" && message["target"]["name"] == name;
    let path = message["executable"].as_str().filter(|_| is_program)?;
    Some(path.into())
}

fn results_folder(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root.join(target).join("conformance")
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_runs_cover_each_revision_and_the_whole_suite() {
        let names: Vec<String> = runs(None, None).into_iter().map(|run| run.name).collect();
        assert_eq!(names, ["2025-11-25", "2026-07-28", "all"]);
    }

    #[test]
    fn one_scenario_runs_at_the_revision_asked_for() {
        let runs = runs(Some("2026-07-28"), Some("caching"));
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].arguments, ["--scenario", "caching", "--spec-version", "2026-07-28", "--force"]);
    }

    #[test]
    fn the_program_is_taken_from_cargos_message() {
        let message = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":"/x/a"}"#;
        assert_eq!(executable(message, "a"), Some("/x/a".into()));
        assert_eq!(executable(message, "b"), None);
        let library = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":null}"#;
        assert_eq!(executable(library, "a"), None);
    }

    #[test]
    fn an_unknown_revision_or_side_is_refused() {
        let arguments = |text: &str| text.split(' ').map(Into::into).collect::<Vec<String>>();
        assert!(run(&arguments("--revision 2024-01-01")).is_err());
        assert!(run(&arguments("--side both")).is_err());
        assert!(run(&arguments("--sides server")).is_err());
    }

    #[test]
    fn the_client_side_is_said_not_to_run() {
        let error = run(&["--side".into(), "client".into()]).unwrap_err();
        assert!(error.downcast_ref::<NotRun>().is_some());
    }
}
