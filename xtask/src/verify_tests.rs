//! `cargo xtask verify-tests`: breaks one rule at a time in a copy of the source, and demands that a test fails.
//!
//! Why here: a test that cannot fail looks like any other; a rule that no test misses is not kept.
//! Invariants: the source and what is built of it are never touched; a mutation counts as caught only by a test that fails,
//! or does not end, where all tests pass without it; one that does not compile is a mistake in `xtask/mutations.toml`.

mod copy;
mod mutation;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use self::mutation::Mutation;
use crate::process::Guarded;
use crate::{Reported, cargo, options, refuse_leftovers, root};

/// The package whose tests have to notice every mutation, unless the mutation names more.
const BEHAVIOUR: &str = "mcp-tests";

/// How long one test program may take. Those of this repository take a minute at most, on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);

/// What the tests say of a mutation.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// How many tests failed, and one of them.
    Caught(usize, String),
    /// A test program did not end.
    Hung,
    Survived,
    /// It does not compile.
    Bad,
}

impl Verdict {
    fn is_good(&self) -> bool {
        matches!(self, Self::Caught(..) | Self::Hung)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught(count, first) => write!(formatter, "caught by {count}, such as {first}"),
            Self::Hung => write!(formatter, "caught: the tests did not end within {} s", LIMIT.as_secs()),
            Self::Survived => formatter.write_str("SURVIVED: no test fails"),
            Self::Bad => formatter.write_str("BAD: it does not compile"),
        }
    }
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let only: Vec<String> = options.values_from_str("--only")?;
    let list = options.contains("--list");
    refuse_leftovers(options)?;
    let mutations = mutation::read(&root())?;
    for name in &only {
        ensure!(mutations.iter().any(|mutation| mutation.name == *name), "no mutation is called `{name}`");
    }
    if list {
        mutations.iter().for_each(|mutation| println!("{:28} {}", mutation.name, mutation.rule));
        return Ok(());
    }
    let chosen: Vec<&Mutation> =
        mutations.iter().filter(|mutation| only.is_empty() || only.contains(&mutation.name)).collect();

    let folder = root().join("target/verify-tests");
    let bench = Bench { tree: folder.join("tree"), target: folder.join("target"), logs: folder.join("logs") };
    fs::create_dir_all(&bench.logs)?;
    copy::bring_up_to_date(&root(), &bench.tree)?;
    let mut libraries: Vec<&str> = chosen.iter().flat_map(|mutation| &mutation.libraries).map(String::as_str).collect();
    libraries.sort_unstable();
    libraries.dedup();
    println!("== unchanged");
    let unchanged = bench.judge("unchanged", &libraries)?;
    ensure!(unchanged == Verdict::Survived, "without any mutation: {unchanged}; see {}", bench.logs.display());

    let mut verdicts = Vec::new();
    for mutation in chosen {
        println!("== {}", mutation.name);
        let verdict = bench.try_out(mutation)?;
        println!("{verdict}");
        verdicts.push((mutation, verdict));
    }
    println!();
    for (mutation, verdict) in &verdicts {
        println!("{:28} {verdict}\n{:28} {}", mutation.name, "", mutation.rule);
    }
    let good = verdicts.iter().filter(|(_, verdict)| verdict.is_good()).count();
    println!("verify-tests: {good} of {} mutations caught", verdicts.len());
    if good == verdicts.len() { Ok(()) } else { Err(Reported.into()) }
}

/// The copy of the source, and where the tests' output goes.
struct Bench {
    tree: PathBuf,
    /// Not the workspace's: cargo would take what was built of the copy for its own, mutations included.
    target: PathBuf,
    logs: PathBuf,
}

impl Bench {
    fn try_out(&self, mutation: &Mutation) -> anyhow::Result<Verdict> {
        let file = self.tree.join(&mutation.file);
        let source = fs::read_to_string(&file)?;
        fs::write(&file, mutation.apply(&source)?)?;
        let libraries: Vec<&str> = mutation.libraries.iter().map(String::as_str).collect();
        let verdict = self.judge(&mutation.name, &libraries);
        // Should this not be reached, the next run brings the copy up to date again.
        fs::write(&file, source)?;
        verdict
    }

    /// Runs the tests on the copy as it is.
    fn judge(&self, name: &str, libraries: &[&str]) -> anyhow::Result<Verdict> {
        let mut packages = vec![vec!["--package", BEHAVIOUR]];
        packages.extend(libraries.iter().map(|library| vec!["--lib", "--package", library]));
        let log = self.logs.join(format!("{name}.log"));
        File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let (mut passed, mut failed) = (true, Vec::new());
        for selected in packages {
            let Some(programs) = self.build(&selected)? else { return Ok(Verdict::Bad) };
            ensure!(!programs.is_empty(), "cargo built no tests of {}", selected.join(" "));
            for program in programs {
                let Some(status) = program.run(&log)? else { return Ok(Verdict::Hung) };
                passed &= status.success();
            }
            if !passed {
                failed = failed_tests(&String::from_utf8_lossy(&fs::read(&log)?));
                // One that broke off names nothing.
                failed.extend(failed.is_empty().then(|| "a test program that broke off".to_owned()));
                break;
            }
        }
        let count = failed.len();
        Ok(failed.into_iter().next().map_or(Verdict::Survived, |first| Verdict::Caught(count, first)))
    }

    /// The test programs of a package; `None` when it does not compile.
    fn build(&self, selected: &[&str]) -> anyhow::Result<Option<Vec<TestProgram>>> {
        let mut command = cargo();
        command.args(["test", "--no-run", "--quiet", "--message-format", "json-render-diagnostics"]).args(selected);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start cargo")?;
        let output = child.stdout.take().context("cargo's output is not piped")?;
        let mut programs = Vec::new();
        for line in BufReader::new(output).lines() {
            programs.extend(test_program(&line?));
        }
        Ok(child.wait()?.success().then_some(programs))
    }
}

#[derive(Debug, PartialEq, Eq)]
struct TestProgram {
    path: PathBuf,
    package: PathBuf,
}

impl TestProgram {
    /// Runs it, its output at the end of `log`; `None` when it had to be ended. It is started here and not by cargo, so
    /// that ending it leaves nothing.
    fn run(&self, log: &Path) -> anyhow::Result<Option<ExitStatus>> {
        let output = OpenOptions::new().append(true).open(log)?;
        let mut command = Command::new(&self.path);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
        Guarded::spawn("test program", &mut command)?.wait_at_most(LIMIT)
    }
}

/// The test program that cargo's message tells of.
fn test_program(message: &str) -> Option<TestProgram> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let path = message["executable"].as_str().filter(|_| is_test)?;
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(TestProgram { path: path.into(), package: package.into() })
}

/// The names of the tests that failed, from the output of test programs.
fn failed_tests(output: &str) -> Vec<String> {
    let names = output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    names.map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_failed_are_named() {
        let output = "test a::b ... ok\ntest a::c ... FAILED\nthread 'a::c' panicked\ntest d ... ignored\n\
            failures:\n    a::c\ntest result: FAILED. 1 passed; 1 failed\n";
        assert_eq!(failed_tests(output), ["a::c"]);
        assert_eq!(failed_tests("test a ... ok\ntest result: ok. 1 passed; 0 failed\n"), Vec::<String>::new());
    }

    #[test]
    fn only_programs_of_tests_are_run() {
        let message = |executable: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/x/Cargo.toml","profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let expected = TestProgram { path: "/y/a-1".into(), package: "/x".into() };
        assert_eq!(test_program(&message("\"/y/a-1\"", true)), Some(expected));
        assert_eq!(test_program(&message("\"/y/a\"", false)), None);
        assert_eq!(test_program(&message("null", true)), None);
    }

    #[test]
    fn an_unknown_mutation_is_refused() {
        assert!(run(&["--only".into(), "everything".into()]).is_err());
    }

    #[test]
    fn what_survives_or_does_not_compile_is_no_success() {
        assert!(Verdict::Caught(1, String::new()).is_good() && Verdict::Hung.is_good());
        assert!(!Verdict::Survived.is_good() && !Verdict::Bad.is_good());
    }
}
