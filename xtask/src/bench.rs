//! `cargo xtask bench --counts`: instructions, allocations and system calls per request, and the budget they must keep.
//! `cargo xtask bench --auth` does the same for the providers, `--tasks` for calls that may become tasks, `--telemetry` for what
//! is told to nobody; without any of these it is `compare`'s.
//!
//! Why here: counts hold still on a busy machine, where times do not, so CI can refuse a commit by them.
//! Invariants: a figure is the difference of two runs divided by the difference of their requests; what could not be
//! measured is named as NOT RUN and makes the exit code 3.

mod auth;
mod budget;
mod callgrind;
mod compare;
mod server;
mod syscalls;
mod tasks;
mod telemetry;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::{env, fs};

use anyhow::{Context as _, bail, ensure};
use budget::{Budget, Figures, Verdict};
use callgrind::Profile;
pub(crate) use server::program;
use server::{Instrument, NeverListened, Run};
use syscalls::Calls;

const USAGE: &str = "\
usage: cargo xtask bench --counts [OPTIONS]
  --row NAME  only this row of bench/budget.toml
  --top N     also the N functions whose own instructions differ most between our server and the floor
  --check     fail if a row exceeds its kept figures
  --write     keep the measured figures
       cargo xtask bench --auth
what each way to authenticate adds to a request
       cargo xtask bench --tasks [--write]
what a tool that may become a task adds to a call; tasks per second; memory of tasks that wait
       cargo xtask bench --telemetry
what spans and events add to a request while nobody listens";

/// What is asked of the servers.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    /// bench-load's arguments for our server.
    load: &'static [&'static str],
    /// The same for the floor, which knows one revision and no sessions.
    floor_load: &'static [&'static str],
    /// How many tools the servers offer.
    tools: &'static str,
    /// Requests of the shorter and the longer run. What happens once, such as start and handshake, is in both.
    requests: (u32, u32),
}

static ROWS: [Row; 4] = [
    Row { name: "modern-echo-64", load: &[], floor_load: &[], tools: "2", requests: (200, 1_200) },
    Row {
        name: "modern-echo-65536",
        load: &["--text", "65536"],
        floor_load: &["--text", "65536"],
        tools: "2",
        requests: (20, 120),
    },
    Row {
        name: "modern-list",
        load: &["--list", "100"],
        floor_load: &["--list", "100"],
        tools: "100",
        requests: (100, 600),
    },
    Row { name: "legacy-echo-64", load: &["--era", "legacy"], floor_load: &[], tools: "2", requests: (200, 1_200) },
];

/// A server: its package, and the name its figures have in the budget.
#[derive(Clone, Copy)]
struct Subject {
    package: &'static str,
    name: &'static str,
}

const FLOOR: Subject = Subject { package: "bench-floor", name: "floor" };
const OURS: Subject = Subject { package: "bench-server", name: "ours" };

/// Runs `cargo xtask bench` with the arguments after `bench`.
///
/// Ends the process with code 3 if something could not be measured, having named it.
///
/// # Errors
///
/// If an argument is unknown, a build fails, a server answers wrongly, or `--check` finds a figure above its budget.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let is_of_providers = arguments == ["--auth"];
    let is_of_tasks = matches!(arguments.first().map(String::as_str), Some("--tasks"));
    if is_of_tasks {
        return of_tasks(arguments);
    }
    let is_of_telemetry = arguments == ["--telemetry"];
    if !is_of_providers && !is_of_telemetry && !arguments.iter().any(|argument| argument == "--counts") {
        return compare::run(arguments);
    }
    let options = if is_of_providers || is_of_telemetry { None } else { Some(Options::parse(arguments)?) };
    let Some(valgrind) = program("valgrind") else {
        say("NOT RUN: valgrind is missing (apt-get install valgrind)")?;
        exit(3);
    };
    if is_of_telemetry {
        return telemetry::run(valgrind);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
    let callgrind = Instrument::Callgrind(valgrind);
    let Some(options) = options else {
        let binaries = build(root, &["--features", "bench-server/providers"])?;
        let [row, ..] = &ROWS;
        return auth::run(&Bench { binaries, callgrind, strace: None }, row);
    };
    let strace = program("strace").map(Instrument::Strace);
    if strace.is_none() {
        say("NOT RUN: system calls, strace is missing (apt-get install strace)")?;
    }
    let bench = Bench { binaries: build(root, &[])?, callgrind, strace };
    let mut report = Report { budget: Budget::read(&root.join("bench/budget.toml"))?, options, refused: Vec::new() };

    let rows: Vec<&Row> = ROWS.iter().filter(|row| report.options.includes(row)).collect();
    let mut is_ours_missing = false;
    say("row                server instructions allocations x floor   bytes  system calls")?;
    for row in rows {
        let floor = bench.measure(row, FLOOR, row.floor_load)?;
        report.line(row, FLOOR, &floor, &floor)?;
        let ours = match bench.measure(row, OURS, row.load) {
            Err(problem) if NeverListened::caused(&problem) => {
                is_ours_missing = true;
                continue;
            }
            measured => measured?,
        };
        report.line(row, OURS, &ours, &floor)?;
        report.aims(row, &ours)?;
        report.functions(&ours, &floor)?;
    }
    if is_ours_missing {
        say(&format!("NOT RUN: {}, {NeverListened}", OURS.package))?;
    }
    report.finish()?;
    if is_ours_missing {
        exit(3);
    }
    Ok(())
}

/// `--tasks`, and perhaps `--write`.
fn of_tasks(arguments: &[String]) -> anyhow::Result<()> {
    let is_written = match arguments {
        [_] => false,
        [_, option] if option == "--write" => true,
        _ => bail!(USAGE),
    };
    let Some(valgrind) = program("valgrind") else {
        say("NOT RUN: valgrind is missing (apt-get install valgrind)")?;
        exit(3);
    };
    let binaries = build_tasks()?;
    let [row, ..] = &ROWS;
    tasks::run(&Bench { binaries, callgrind: Instrument::Callgrind(valgrind), strace: None }, row, is_written)
}

struct Options {
    row: Option<String>,
    top: usize,
    check: bool,
    write: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self { row: None, top: 0, check: false, write: false };
        let mut counts = false;
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--counts" => counts = true,
                "--check" => options.check = true,
                "--write" => options.write = true,
                "--top" => options.top = arguments.next().context(USAGE)?.parse().context(USAGE)?,
                "--row" => options.row = Some(arguments.next().context(USAGE)?.clone()),
                _ => bail!(USAGE),
            }
        }
        ensure!(counts, USAGE);
        if let Some(name) = &options.row {
            ensure!(ROWS.iter().any(|row| row.name == name), "no row is named {name}\n{USAGE}");
        }
        Ok(options)
    }

    fn includes(&self, row: &Row) -> bool {
        self.row.as_deref().is_none_or(|name| name == row.name)
    }
}

/// What one request costs a server.
struct Cost {
    figures: Figures,
    by_function: BTreeMap<String, f64>,
    /// The length of an answer's body: a ratio means little where the servers' lengths differ.
    body_bytes: u64,
    syscalls: Option<String>,
}

/// A server that is counted, and how it is asked.
struct Probe<'a> {
    server: &'a Path,
    /// What the instruments' files are called by.
    name: &'a str,
    load_arguments: &'a [&'a str],
    is_piped: bool,
    /// What the server finds in its environment besides what all do.
    environment: &'a [(&'static str, &'static str)],
}

/// The built servers and the instruments.
struct Bench {
    /// The folder of the release binaries.
    binaries: PathBuf,
    callgrind: Instrument,
    strace: Option<Instrument>,
}

impl Bench {
    fn measure(&self, row: &Row, subject: Subject, load_arguments: &[&str]) -> anyhow::Result<Cost> {
        let server = &self.binaries.join(subject.package);
        let probe = Probe { server, name: subject.name, load_arguments, is_piped: false, environment: &[] };
        self.measure_server(row, &probe)
    }

    /// What a request of this row costs any server.
    fn measure_server(&self, row: &Row, probe: &Probe<'_>) -> anyhow::Result<Cost> {
        let name = probe.name;
        let context = || format!("{}, {name}", row.name);
        let requests = f64::from(row.requests.1 - row.requests.0);
        let folder = self.binaries.join("bench-counts");
        fs::create_dir_all(&folder)?;
        let run = |instrument: &Instrument, requests: u32, ending: &str| {
            let run = Run {
                server: probe.server,
                tools: row.tools,
                environment: probe.environment,
                is_piped: probe.is_piped,
                load: &self.binaries.join("bench-load"),
                load_arguments: probe.load_arguments,
                requests,
            };
            instrument.run(&run, &folder.join(format!("{}-{name}-{requests}.{ending}", row.name)))
        };
        let profile = |requests| {
            let counted = run(&self.callgrind, requests, "callgrind")?;
            anyhow::Ok((Profile::parse(&counted.text)?, counted.body_bytes))
        };
        let (shorter, _) = profile(row.requests.0).with_context(context)?;
        let (longer, body_bytes) = profile(row.requests.1).with_context(context)?;
        let each = |longer: u64, shorter: u64| (longer as f64 - shorter as f64) / requests;
        let by_function = longer
            .by_function
            .iter()
            .map(|(name, cost)| (name.clone(), each(*cost, shorter.by_function.get(name).copied().unwrap_or(0))));
        let syscalls = self.strace.as_ref().map(|strace| {
            let calls = |requests| Calls::parse(&run(strace, requests, "strace")?.text);
            let shorter = calls(row.requests.0)?;
            Ok(calls(row.requests.1)?.per_request(&shorter, requests))
        });
        let syscalls = match syscalls {
            // The server has just listened without strace: tracing is not allowed here.
            Some(Err(problem)) if NeverListened::caused(&problem) => None,
            syscalls => syscalls.transpose().with_context(context)?,
        };
        Ok(Cost {
            figures: Figures {
                instructions: each(longer.instructions, shorter.instructions),
                allocations: each(longer.allocations, shorter.allocations),
            },
            by_function: by_function.collect(),
            body_bytes,
            syscalls,
        })
    }
}

/// Prints what was measured and collects what the budget refuses.
struct Report {
    budget: Budget,
    options: Options,
    refused: Vec<String>,
}

impl Report {
    fn line(&mut self, row: &Row, subject: Subject, cost: &Cost, floor: &Cost) -> anyhow::Result<()> {
        let Figures { instructions, allocations } = cost.figures;
        say(&format!(
            "{:<18} {:<6} {:>12} {allocations:>11.1} {:>7.2} {:>7}  {}",
            row.name,
            subject.name,
            thousands(instructions),
            instructions / floor.figures.instructions,
            cost.body_bytes,
            cost.syscalls.as_deref().unwrap_or("NOT RUN"),
        ))?;
        match self.budget.judge(row.name, subject.name, cost.figures)? {
            Verdict::Kept => {}
            Verdict::Beaten => say("  beats its budget by more than 5 %: lower it with --write")?,
            Verdict::Exceeded(excess) => self.refused.push(format!("{} {}: {excess}", row.name, subject.name)),
            Verdict::Unknown => self.refused.push(format!("{} {}: no figures are kept", row.name, subject.name)),
        }
        self.budget.keep(row.name, subject.name, cost.figures);
        Ok(())
    }

    /// Compares with the row's aims, if it has any.
    fn aims(&self, row: &Row, cost: &Cost) -> anyhow::Result<()> {
        for name in ["goal", "stretch"] {
            let Some(aim) = self.budget.figures(row.name, name) else { continue };
            let instructions = cost.figures.instructions - aim.instructions;
            let allocations = cost.figures.allocations - aim.allocations;
            let verdict = if instructions <= 0.0 && allocations <= 0.0 { "met" } else { "missed" };
            say(&format!("  {name} {verdict}: {instructions:+.0} instructions, {allocations:+.1} allocations"))?;
        }
        Ok(())
    }

    /// The functions that make the difference to the floor, the dearest first.
    fn functions(&self, ours: &Cost, floor: &Cost) -> anyhow::Result<()> {
        if self.options.top == 0 {
            return Ok(());
        }
        say(&format!("  {:>9} {:>9} {:>9}  function, its own instructions", "ours", "floor", "more"))?;
        for (ours, floor, name) in dearest(ours, floor).into_iter().take(self.options.top) {
            say(&format!("  {ours:>9.0} {floor:>9.0} {:>9.0}  {name}", ours - floor))?;
        }
        Ok(())
    }

    /// Keeps or refuses the figures, as the options say.
    fn finish(&self) -> anyhow::Result<()> {
        if self.options.write {
            self.budget.write()?;
        } else if self.options.check && !self.refused.is_empty() {
            bail!("over budget:\n  {}", self.refused.join("\n  "));
        }
        Ok(())
    }
}

/// Each function's own instructions in a server and in the floor, those with the greatest difference first.
fn dearest<'a>(ours: &'a Cost, floor: &Cost) -> Vec<(f64, f64, &'a str)> {
    let mut functions: Vec<(f64, f64, &str)> = Vec::new();
    for (name, cost) in &ours.by_function {
        functions.push((*cost, floor.by_function.get(name).copied().unwrap_or(0.0), name));
    }
    functions.sort_by(|left, right| (right.0 - right.1).total_cmp(&(left.0 - left.1)));
    functions
}

/// Builds what is measured, as it is released; gives the folder of the binaries.
fn build(root: &Path, features: &[&str]) -> anyhow::Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let packages = ["-p", FLOOR.package, "-p", OURS.package, "-p", "bench-load"];
    let status =
        Command::new(cargo).current_dir(root).args(["build", "--release"]).args(packages).args(features).status()?;
    ensure!(status.success(), "the servers do not build");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    Ok(target.join("release"))
}

/// Builds the same and `bench-tasks`, always all of it: fewer programs would be built with other features, and anew.
pub(crate) fn build_tasks() -> anyhow::Result<PathBuf> {
    build(&crate::root(), &["-p", "bench-tasks"])
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A line on standard output.
fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(thousands(999.4), "999");
        assert_eq!(thousands(24_300.0), "24,300");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
    }

    #[test]
    fn an_unknown_row_is_refused() {
        let arguments = ["--counts", "--row", "modern-echo-63"].map(str::to_owned);
        assert!(Options::parse(&arguments).is_err());
    }
}
