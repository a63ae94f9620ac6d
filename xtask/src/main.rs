//! `cargo xtask`: the automation of this repository.
//!
//! Why here: what CI runs and what a developer runs is one program, in the language of the rest.
//! Invariants: exit 0 is success, 1 a failure, 3 that a tool is missing and nothing was judged (`NOT RUN`).
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program: printing is its job")]

mod auth_timing;
mod baseline;
mod bench;
mod checks;
mod ci;
mod conformance;
mod features;
mod fuzz;
mod interop;
mod kill_tasks;
mod night;
mod node;
mod process;
mod race_tasks;
mod soak;
mod task_report;
mod tidy;
mod verify_tests;

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND [OPTIONS]

  ci           everything CI runs, in its order; stops at the first failure
    --skip NAME       leave out a step (repeatable)
    --list            print the steps' names

  tidy         the rules of ARCHITECTURE.md that a machine can check; exceptions are in xtask/tidy.toml

  conformance  run the official conformance suite and compare with tests/baseline
    --side SIDE       server (default) or client
    --revision REV    only this revision's requirement set
    --scenario NAME   only this scenario

  verify-tests breaks one rule at a time in a copy of the source; each time a test has to fail
    --only NAME       only this mutation of xtask/mutations.toml (repeatable)
    --list            print the mutations' names and rules

  auth-timing  whether the time of a refusal tells unknown credentials from wrong ones; takes a minute

  kill-tasks   kill a server with tasks in a file under load; what it acknowledged has to hold; then trace its flushes
    --rounds N        deaths (default 50)
    --seed N          of the load and the moments (default 1)
    --write           keep what came of it in bench/TASKS.md

  race-tasks   calls that end at their window's edge while clients leave; every outcome has to be settled once
    --calls N         on each of two runtimes (default 100000)
    --write           keep what came of it in bench/TASKS.md

  interop      official clients against the sample server, over HTTP and stdio, in both eras
    --with CLIENT     python, typescript, inspector or all; installed by the command itself
    --all-versions    older versions of the SDKs as well, with what they can do

  features     every combination of each library's features compiles without a warning
    --list            print the combinations

  night        what takes too long for every change; the report goes to bench/NIGHT.md
    --only STEP       only this step (repeatable)

  fuzz         build the targets of fuzz/ and run each for a while; what is found fails
    --seconds N       time of each target (default 20)
    --runs N          inputs of each target, if the time is enough for them (default: as many as it is)
    --seed N          begin every run alike, without what earlier ones learnt (default: at random, with it)
    --target NAME     only this target (repeatable)
    --parallel N      targets that run at a time (default 2)

  soak         well-behaved, slow, vanishing and hostile clients against one server; fails on growth, wrong answers, delay
    --minutes N       how long (default 20)
    --p99-ms N        bound on the time of small calls (default 250)
    --rate PERCENT    how often the clients come (default 100)
    --note TEXT       a line for the report
    --write           keep the report in bench/SOAK.md

  bench        our server beside bare hyper and other libraries, in rounds: time, memory, size; takes half an hour
    --quick           one short round
    --row NAME        only this row (repeatable); --peer NAME, --rounds N, --write: see bench/README.md
    --counts          instead, what a request costs in instructions, against bench/budget.toml (--row, --top, --check, --write)
    --auth            instead, what each way to authenticate adds

exit status: 0 success, 1 failure, 3 a tool is missing and nothing was judged";

/// A tool is missing, so nothing was judged. Holds what to install.
#[derive(Debug)]
struct NotRun(String);

impl fmt::Display for NotRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NotRun {}

/// A failure that has been printed already, where it belongs in the output.
#[derive(Debug)]
struct Reported;

impl fmt::Display for Reported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("failed, as reported above")
    }
}

impl std::error::Error for Reported {}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        None => {
            println!("{HELP}");
            Ok(())
        }
        Some((command, rest)) => match command.as_str() {
            "help" | "--help" | "-h" => {
                println!("{HELP}");
                Ok(())
            }
            "auth-timing" => auth_timing::run(rest),
            "bench" => bench::run(rest),
            "ci" => ci::run(rest),
            "conformance" => conformance::run(rest),
            "features" => features::run(rest),
            "fuzz" => fuzz::run(rest),
            "interop" => interop::run(rest),
            "kill-tasks" => kill_tasks::run(rest),
            "night" => night::run(rest),
            "race-tasks" => race_tasks::run(rest),
            "soak" => soak::run(rest),
            "tidy" => tidy::run(rest),
            "verify-tests" => verify_tests::run(rest),
            unknown => Err(anyhow::anyhow!("no command is called `{unknown}`\n\n{HELP}")),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    if let Some(missing) = error.downcast_ref::<NotRun>() {
        println!("NOT RUN: {missing}");
        return ExitCode::from(3);
    }
    if !error.is::<Reported>() {
        eprintln!("error: {error:#}");
    }
    ExitCode::FAILURE
}

/// The repository's root. cargo names the manifest's folder at run time; the folder of the build is the fallback.
fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.parent().map_or_else(|| manifest.clone(), PathBuf::from)
}

/// The cargo that started this program, or the one on the path.
fn cargo() -> std::process::Command {
    let mut command = std::process::Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The folder of builds.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Options as `pico-args` wants them, which checks that none is left over at the end.
fn options(arguments: &[String]) -> pico_args::Arguments {
    pico_args::Arguments::from_vec(arguments.iter().map(Into::into).collect())
}

/// Refuses what no option took.
fn refuse_leftovers(options: pico_args::Arguments) -> anyhow::Result<()> {
    let left = options.finish();
    anyhow::ensure!(left.is_empty(), "not understood: {}", left.join(" ".as_ref()).to_string_lossy());
    Ok(())
}
