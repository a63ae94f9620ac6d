//! `cargo xtask fuzz`: builds the targets of `fuzz/` and runs each for a while.
//!
//! Why here: what a fuzzer found has to fail like any other check, and its figures have to be said by the program that
//! ran it.
//! Invariants: nothing is installed outside the build directory; a target that executed nothing fails; what was learnt
//! (inputs that reach new code) stays in the build directory for the next run.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::process::Guarded;
use crate::{NotRun, cargo, options, refuse_leftovers, root};

/// What is installed when `cargo fuzz` is missing.
const VERSION: &str = "0.13.2";
/// How long a target may take to begin and to end, beside its time.
const AROUND: Duration = Duration::from_secs(60);
/// Seconds after which an input is a finding. Most take a millisecond; this leaves room for a busy machine.
const SLOWEST: u32 = 20;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let seconds: u32 = options.opt_value_from_str("--seconds")?.unwrap_or(20);
    let parallel: usize = options.opt_value_from_str("--parallel")?.unwrap_or(2);
    let bounds =
        Bounds { seconds, runs: options.opt_value_from_str("--runs")?, seed: options.opt_value_from_str("--seed")? };
    let only: Vec<String> = options.values_from_str("--target")?;
    refuse_leftovers(options)?;
    ensure!(
        seconds > 0 && parallel > 0 && bounds.runs != Some(0),
        "`--seconds`, `--runs` and `--parallel` cannot be 0"
    );
    let mut targets = targets(&root().join("fuzz/fuzz_targets"))?;
    for name in &only {
        ensure!(targets.contains(name), "no target is called `{name}`; there is {}", targets.join(", "));
    }
    targets.retain(|target| only.is_empty() || only.contains(target));

    let fuzzer = Fuzzer::build()?;
    println!("{:16} {:>12} {:>8}  findings", "target", "executions", "exec/s");
    let mut findings = String::new();
    for together in targets.chunks(parallel) {
        let running: Vec<Running> =
            together.iter().map(|target| fuzzer.start(target, &bounds)).collect::<Result<_, _>>()?;
        for running in running {
            let (figures, finding) = running.finish(seconds)?;
            let count = usize::from(finding.is_some());
            println!("{:16} {:>12} {:>8}  {count}", running.target, figures.executions, figures.per_second);
            if let Some(finding) = finding {
                write!(findings, "\n\n{}: {finding}", running.target)?;
            }
        }
    }
    ensure!(findings.is_empty(), "the fuzzers found something; each becomes a test where the code is{findings}");
    Ok(())
}

/// When a target ends, and how it begins.
struct Bounds {
    seconds: u32,
    /// Inputs to execute, if the time is enough for them.
    runs: Option<u32>,
    seed: Option<u32>,
}

/// The names of the targets: one file each.
fn targets(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(ToOwned::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

/// The built targets.
struct Fuzzer {
    programs: PathBuf,
    /// Where corpora, findings and logs are kept.
    kept: PathBuf,
}

impl Fuzzer {
    /// # Errors
    /// [`NotRun`] when there is no C++ compiler, which libFuzzer is built with, or `cargo fuzz` is missing and cannot be
    /// installed.
    fn build() -> anyhow::Result<Self> {
        let mut compiler = Command::new(env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        ensure!(
            starts(compiler.arg("--version")),
            NotRun("a C++ compiler is missing: libFuzzer is written in it".into())
        );
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder));
        let path = with_cargo_fuzz(&target.join("tools"))?;
        let kept = target.join("fuzz");
        let mut command = cargo();
        // No sanitizer: the code is safe Rust, and sanitizers need an unstable compiler.
        command.args(["fuzz", "build", "--fuzz-dir", "fuzz", "--sanitizer", "none", "--target-dir"]).arg(&kept);
        let status = command.env("PATH", path).stdin(Stdio::null()).status().context("cannot start cargo fuzz")?;
        ensure!(status.success(), "the targets cannot be built: {status}");
        Ok(Self { programs: kept.join(host()?).join("release"), kept })
    }

    /// With a seed a run knows nothing of earlier ones, so that it tries what another with that seed does: on a machine that
    /// is busy less of it, and never something else.
    fn start(&self, target: &str, bounds: &Bounds) -> anyhow::Result<Running> {
        let folder = |kind: &str| {
            let folder = self.kept.join(kind).join(target);
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
            Ok::<_, anyhow::Error>(folder)
        };
        let (corpus, found) = if bounds.seed.is_some() {
            let corpus = folder("seeded")?;
            fs::remove_dir_all(&corpus).with_context(|| format!("cannot empty {}", corpus.display()))?;
            (folder("seeded")?, folder("findings")?)
        } else {
            (folder("corpus")?, folder("findings")?)
        };
        let log = self.kept.join(format!("{target}.log"));
        let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        let fuzz = root().join("fuzz");
        let mut command = Command::new(self.programs.join(target));
        command.arg(corpus);
        command.args(Some(fuzz.join("seeds").join(target)).filter(|seeds| seeds.is_dir()));
        command.arg(format!("-dict={}", fuzz.join("json.dict").display()));
        command.arg(format!("-artifact_prefix={}/", found.display()));
        command.args([format!("-max_total_time={}", bounds.seconds), format!("-timeout={SLOWEST}")]);
        command.args(bounds.runs.map(|runs| format!("-runs={runs}")));
        command.args(bounds.seed.map(|seed| format!("-seed={seed}")));
        command.args(["-print_final_stats=1", "-rss_limit_mb=1024"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        Ok(Running { child: Guarded::spawn("fuzzer", &mut command)?, target: target.to_owned(), log })
    }
}

/// A target that runs.
struct Running {
    child: Guarded,
    target: String,
    log: PathBuf,
}

impl Running {
    /// The figures of the run, and the finding that ended it, if any did.
    fn finish(&self, seconds: u32) -> anyhow::Result<(Figures, Option<String>)> {
        let limit = Duration::from_secs(seconds.into()) + AROUND;
        let status = self.child.wait_at_most(limit)?;
        let output = fs::read(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        let output = String::from_utf8_lossy(&output);
        let figures = Figures::read(&output).unwrap_or_default();
        let finding = match status {
            Some(status) if status.success() && figures.executions > 0 => None,
            Some(status) if status.success() => Some("nothing was executed".to_owned()),
            Some(_) => Some(format!("{}\nall of it: {}", reason(&output), self.log.display())),
            None => Some(format!("it did not end within {limit:?}")),
        };
        Ok((figures, finding))
    }
}

/// What libFuzzer counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    executions: u64,
    per_second: u64,
}

impl Figures {
    fn read(output: &str) -> Option<Self> {
        let figure = |name: &str| {
            let line = output.lines().rev().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name))?;
            line.trim_start_matches(':').trim().parse().ok()
        };
        Some(Self { executions: figure("number_of_executed_units")?, per_second: figure("average_exec_per_sec")? })
    }
}

/// The lines of the output that say what went wrong, and with which input.
fn reason(output: &str) -> String {
    let mut lines = output.lines();
    let mut told: Vec<&str> = Vec::new();
    // A panic's text is on the lines behind it.
    if lines.by_ref().find_map(|line| line.contains("panicked at").then(|| told.push(line))).is_some() {
        told.extend(
            lines.by_ref().take_while(|line| !line.starts_with("stack backtrace") && !line.starts_with("note:")),
        );
    }
    told.extend(output.lines().filter(|line| line.contains("Test unit written to") || line.starts_with("ALARM")));
    told.join("\n")
}

/// A search path on which there is a `cargo fuzz`, installed if need be.
fn with_cargo_fuzz(tools: &Path) -> anyhow::Result<std::ffi::OsString> {
    let before = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools.join("bin")].into_iter().chain(env::split_paths(&before)))?;
    let works = || starts(cargo().args(["fuzz", "--version"]).env("PATH", &path));
    if !works() {
        println!("installing cargo-fuzz {VERSION} into {}", tools.display());
        let mut command = cargo();
        command.args(["install", "cargo-fuzz", "--quiet", "--locked", "--version", VERSION, "--root"]).arg(tools);
        let installed = command.stdin(Stdio::null()).status().is_ok_and(|status| status.success());
        if !installed || !works() {
            bail!(NotRun(format!("cargo-fuzz is missing: cargo install cargo-fuzz --locked --version {VERSION}")));
        }
    }
    Ok(path)
}

/// Whether the program can be started and is content.
fn starts(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The machine that is built for, which names a folder of the build.
fn host() -> anyhow::Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--version", "--verbose"]).output().context("cannot start rustc")?;
    let output = String::from_utf8_lossy(&output.stdout);
    let host = output.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not say its host")?;
    Ok(host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_end() {
        let output =
            "#8\tNEW    cov: 3\nstat::number_of_executed_units: 1816163\nstat::average_exec_per_sec:     44296\n";
        assert_eq!(Figures::read(output), Some(Figures { executions: 1_816_163, per_second: 44_296 }));
        assert_eq!(Figures::read("INFO: Seed: 1\n"), None);
    }

    #[test]
    fn a_finding_says_what_and_with_which_input() {
        let output = "#9 NEW\nthread 'x' panicked at fuzz_targets/frame.rs:36:17:\nassertion failed\n  left: 1\nstack backtrace:\n \
                      0: main\n==1== ERROR: libFuzzer: deadly signal\nartifact_prefix='f/'; Test unit written to f/crash-1\n";
        let expected = "thread 'x' panicked at fuzz_targets/frame.rs:36:17:\nassertion failed\n  left: 1\n\
                        artifact_prefix='f/'; Test unit written to f/crash-1";
        assert_eq!(reason(output), expected);
        assert_eq!(
            reason("ALARM: working on the last Unit for 11 seconds\n"),
            "ALARM: working on the last Unit for 11 seconds"
        );
    }

    #[test]
    fn an_unknown_target_is_refused_before_anything_is_built() {
        assert!(run(&["--target".to_owned(), "everything".to_owned()]).is_err());
        for bound in ["--seconds", "--runs", "--parallel"] {
            assert!(run(&[bound.to_owned(), "0".to_owned()]).is_err(), "{bound}");
        }
    }

    #[test]
    fn each_target_is_a_file_and_an_entry_of_the_manifest() {
        let fuzz = root().join("fuzz");
        let manifest: toml_edit::DocumentMut = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap().parse().unwrap();
        let programs = manifest["bin"].as_array_of_tables().unwrap();
        let mut named: Vec<String> = programs.iter().map(|bin| bin["name"].as_str().unwrap().to_owned()).collect();
        named.sort();
        assert_eq!(named, targets(&fuzz.join("fuzz_targets")).unwrap());
    }
}
