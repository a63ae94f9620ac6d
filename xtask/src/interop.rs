//! `cargo xtask interop`: official clients against the sample server, each step asserting what came back.
//!
//! Why here: a client that nobody here wrote is the best witness that any client just works.
//! Invariants: the client is pinned and installed by the command itself; a carrier or era that was not tried fails.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::conformance::build;
use crate::process::{Guarded, piped};
use crate::{NotRun, options, refuse_leftovers, root};

/// How long the sample server may take to listen.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long one client may take for all its steps, and an installation for its packages.
const CLIENT_LIMIT: Duration = Duration::from_secs(180);
/// How the Python client is told to choose an era: by a probe, the old way, the new way.
const MODES: [&str; 3] = ["auto", "legacy", "2026-07-28"];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let with: String = options.value_from_str("--with")?;
    refuse_leftovers(options)?;
    match with.as_str() {
        "python" => python(),
        other => bail!("`--with {other}` is not known; there is `python`"),
    }
}

fn python() -> anyhow::Result<()> {
    let root = root();
    let folder = root.join("tests/interop/python");
    let results = root.join("target/interop/python");
    fs::create_dir_all(&results).with_context(|| format!("cannot create {}", results.display()))?;
    let interpreter = environment(&folder, &results)?;
    let program = build("everything-server")?;

    let mut command = Command::new(&program);
    command.args(["--http", "127.0.0.1:0"]);
    piped(&mut command).stderr(File::create(results.join("server.log"))?);
    let server = Guarded::spawn("server", &mut command)?;
    let line = server.first_line(START_LIMIT)?;
    let url = line.strip_prefix("listening on ").with_context(|| format!("the server said `{line}`"))?;

    let mut matrix = Matrix::default();
    let client = folder.join("client.py");
    for (carrier, target) in [("http", OsStr::new(url)), ("stdio", program.as_os_str())] {
        for mode in MODES {
            let name = format!("{carrier} {mode}");
            let output = results.join(format!("{carrier}-{mode}.txt"));
            let mut command = Command::new(&interpreter);
            command.arg(&client).arg(target).arg(mode);
            let ended = finish(&mut command, &output)?;
            matrix.add(&name, &fs::read_to_string(&output)?, ended);
        }
    }
    server.end().context("cannot end the server")?;
    print!("{}", matrix.table());
    ensure!(
        matrix.failures.is_empty(),
        "{} of the steps failed:\n{}",
        matrix.failures.len(),
        matrix.failures.join("\n")
    );
    Ok(())
}

/// The interpreter of a virtual environment that holds what `requirements.txt` names, made when it is not there yet.
fn environment(folder: &Path, results: &Path) -> anyhow::Result<PathBuf> {
    let requirements = fs::read_to_string(folder.join("requirements.txt"))?;
    let home = results.join("venv");
    let interpreter = home.join("bin/python");
    let stamp = results.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == requirements) && interpreter.exists() {
        return Ok(interpreter);
    }
    let log = results.join("install.log");
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&home);
    if !finish(&mut make, &log).is_ok_and(|made| made) {
        let text = format!("python3 with venv is needed (apt-get install python3-venv); see {}", log.display());
        return Err(NotRun(text).into());
    }
    let mut install = Command::new(&interpreter);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    install.arg(folder.join("requirements.txt"));
    ensure!(finish(&mut install, &log)?, "the client could not be installed; see {}", log.display());
    fs::write(&stamp, requirements)?;
    Ok(interpreter)
}

/// Runs a program to its end, its output in a file; whether it succeeded.
fn finish(command: &mut Command, output: &Path) -> anyhow::Result<bool> {
    let file = File::create(output).with_context(|| format!("cannot create {}", output.display()))?;
    command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
    let child = Guarded::spawn("client", command)?;
    let status = child.wait_at_most(CLIENT_LIMIT)?;
    Ok(status.is_some_and(|status| status.success()))
}

/// What each client found, step by step.
#[derive(Default)]
struct Matrix {
    columns: Vec<String>,
    /// Steps in the order of their names, each with the columns in which it went well.
    steps: BTreeMap<String, Vec<String>>,
    failures: Vec<String>,
}

impl Matrix {
    fn add(&mut self, column: &str, output: &str, ended_well: bool) {
        self.columns.push(column.to_owned());
        let mut steps = 0;
        for line in output.lines() {
            let mut fields = line.split('\t');
            let (Some(step), Some(outcome)) = (fields.next(), fields.next()) else { continue };
            steps += 1;
            if outcome == "ok" {
                self.steps.entry(step.to_owned()).or_default().push(column.to_owned());
            } else {
                self.steps.entry(step.to_owned()).or_default();
                self.failures.push(format!("{column}: {step}: {}", fields.next().unwrap_or_default()));
            }
        }
        // A client that fell over before or between its steps has proved nothing.
        if steps == 0 || (!ended_well && !self.failures.iter().any(|failure| failure.starts_with(column))) {
            let last = output.lines().last().unwrap_or("it printed nothing");
            self.failures.push(format!("{column}: the client did not get through: {last}"));
        }
    }

    fn table(&self) -> String {
        let mut table = format!("{:20}", "step");
        self.columns.iter().for_each(|column| table.push_str(&format!("  {column}")));
        table.push('\n');
        for (step, well) in &self.steps {
            table.push_str(&format!("{step:20}"));
            for column in &self.columns {
                let mark = if well.contains(column) { "ok" } else { "-" };
                table.push_str(&format!("  {mark:width$}", width = column.len()));
            }
            table.push('\n');
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_mark_in_every_column() {
        let mut matrix = Matrix::default();
        matrix.add("http auto", "call\tok\nlists\tok\n", true);
        matrix.add("stdio auto", "call\tok\nlists\tFAILED\tAssertionError: no\n", false);
        let table = matrix.table();
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["call", "ok", "ok"]);
        assert_eq!(lines[2], ["lists", "ok", "-"]);
        assert_eq!(matrix.failures, ["stdio auto: lists: AssertionError: no"]);
    }

    #[test]
    fn a_client_that_falls_over_is_a_failure() {
        let mut matrix = Matrix::default();
        matrix.add("http auto", "Traceback\nImportError: no mcp\n", false);
        matrix.add("http legacy", "call\tok\n", false);
        assert_eq!(matrix.failures.len(), 2);
        assert!(matrix.failures[0].ends_with("ImportError: no mcp"));
    }

    #[test]
    fn an_unknown_client_is_refused() {
        assert!(run(&["--with".to_owned(), "cobol".to_owned()]).is_err());
        assert!(run(&[]).is_err());
    }
}
