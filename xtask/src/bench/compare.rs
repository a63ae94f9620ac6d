//! Ours beside bare hyper and the servers of other libraries, in rounds on one machine.
//!
//! Why here: a figure by itself says little; in one run, turn by turn, ratios hold even where times do not.
//! Invariants: within a row each round asks every server once; what could not be measured is named as NOT RUN and makes
//! the exit code 3, what was measured and wrong makes it 1.

mod counts;
mod footprint;
mod results;
mod rows;
mod subjects;
mod tables;

use std::path::{Path, PathBuf};
use std::process::exit;
use std::{env, thread};

use anyhow::{Context as _, bail, ensure};
use results::Results;
use rows::{ROWS, Row, Sampler};
use subjects::{Built, OURS, SUBJECTS};
use tables::{Measured, Standing};

use super::server::{Instrument, program};
use super::{Bench, say};

const USAGE: &str = "\
usage: cargo xtask bench [OPTIONS]        ours beside bare hyper and other libraries
       cargo xtask bench --counts [...]   the kept count budget: --counts --help
       cargo xtask bench --auth           what each way to authenticate adds to a request
  --row NAME    only this row (repeatable); counts is all that is counted, footprint is crates and sizes,
                build-time a clean build of each, one after the other, which only this asks for
  --peer NAME   only this library besides the floor and ours (repeatable)
  --rounds N    how often each server is measured in each row (default 5)
  --quick       one round, little time, nothing counted: whether it works, no figures to keep
  --write       keeps the tables in bench/RESULTS.md";

/// Above this ratio to the floor, or behind another library, a row names the functions that cost it.
const GOOD_RATIO: f64 = 1.4;

/// Runs the comparison.
///
/// Ends the process with code 3 if something could not be measured, having named it.
///
/// # Errors
///
/// If an argument is unknown, ours or the floor does not build, or a server answers wrongly.
pub(super) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(arguments)?;
    let root = crate::root();
    let mut comparison = Comparison::prepare(&root, options)?;
    comparison.rounds()?;
    comparison.counts()?;
    comparison.footprint()?;
    comparison.build_time()?;
    comparison.finish()
}

struct Options {
    rows: Vec<String>,
    peers: Vec<String>,
    rounds: usize,
    quick: bool,
    write: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut given = crate::options(arguments);
        if given.contains("--help") {
            bail!(USAGE);
        }
        let quick = given.contains("--quick");
        let options = Self {
            rows: given.values_from_str("--row")?,
            peers: given.values_from_str("--peer")?,
            rounds: given.opt_value_from_str("--rounds")?.unwrap_or(if quick { 1 } else { 5 }),
            quick,
            write: given.contains("--write"),
        };
        crate::refuse_leftovers(given).context(USAGE)?;
        ensure!(!(options.quick && options.write), "figures of a quick run are not kept");
        let names: Vec<String> = ROWS.iter().map(|row| row.name.to_owned()).chain(counted_names()).collect();
        for row in &options.rows {
            if !names.contains(row) && ![COUNTS, FOOTPRINT, BUILD_TIME].contains(&row.as_str()) {
                bail!("no row is named {row}, but {}, {COUNTS}, {FOOTPRINT}, {BUILD_TIME}", names.join(", "));
            }
        }
        for peer in &options.peers {
            if !SUBJECTS.iter().any(|subject| subject.name == peer) {
                bail!("no server is named {peer}\n{USAGE}");
            }
        }
        Ok(options)
    }

    fn includes(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|name| name == row)
    }

    /// It takes longer than all others together.
    fn includes_build_time(&self) -> bool {
        self.rows.iter().any(|name| name == BUILD_TIME)
    }

    fn includes_server(&self, subject: &subjects::Subject) -> bool {
        let is_peer = matches!(subject.origin, subjects::Origin::Peer);
        !is_peer || self.peers.is_empty() || self.peers.iter().any(|name| name == subject.name)
    }
}

/// The rows of what is counted, all together and each by itself.
const COUNTS: &str = "counts";
const FOOTPRINT: &str = "footprint";
const BUILD_TIME: &str = "build-time";

fn counted_names() -> impl Iterator<Item = String> {
    counts::rows().map(|row| counted_name(&row))
}

fn counted_name(row: &super::Row) -> String {
    format!("{COUNTS}-{}", row.name)
}

struct Comparison<'a> {
    root: &'a Path,
    target: PathBuf,
    options: Options,
    servers: Vec<Built>,
    sampler: Option<Sampler>,
    load_before: String,
    not_run: Vec<String>,
    failed: Vec<String>,
}

impl<'a> Comparison<'a> {
    /// Builds all servers. A peer that does not build is missing, ours must.
    fn prepare(root: &'a Path, options: Options) -> anyhow::Result<Self> {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
        super::build(root, &[])?;
        let (mut servers, mut not_run) = (Vec::new(), Vec::new());
        for subject in SUBJECTS.iter().filter(|subject| options.includes_server(subject)) {
            match subject.build(root, &target) {
                Ok(server) => servers.push(server),
                Err(problem) if matches!(subject.origin, subjects::Origin::Peer) => {
                    not_run.push(format!("{}: {problem:#}", subject.name));
                }
                Err(problem) => return Err(problem),
            }
        }
        let sampler = match (program("taskset"), thread::available_parallelism()?.get()) {
            (Some(taskset), 2..) => {
                Some(Sampler { taskset, load: target.join("release/bench-load"), quick: options.quick })
            }
            (None, _) => {
                not_run.push("everything in rounds, taskset is missing (apt-get install util-linux)".to_owned());
                None
            }
            (_, _) => {
                not_run.push("everything in rounds, which needs two processors".to_owned());
                None
            }
        };
        let load_before = results::load_average()?;
        Ok(Self { root, target, options, servers, sampler, load_before, not_run, failed: Vec::new() })
    }

    /// What has rounds, row by row.
    fn rounds(&mut self) -> anyhow::Result<()> {
        let Some(sampler) = self.sampler.take() else { return Ok(()) };
        let rows: Vec<&Row> = ROWS.iter().filter(|row| self.options.includes(row.name)).collect();
        for row in rows {
            let measured = self.measure(&sampler, row);
            let (table, standing) = tables::table(row, &measured);
            self.tell(row.name, row.title, &table, standing)?;
        }
        Ok(())
    }

    fn measure(&mut self, sampler: &Sampler, row: &Row) -> Vec<Measured> {
        let suited: Vec<&Built> = self.servers.iter().filter(|server| row.suits(server)).collect();
        let empty = |server: &&Built| Measured { name: server.subject.name, samples: Ok(Vec::new()) };
        let mut measured: Vec<Measured> = suited.iter().map(empty).collect();
        for _ in 0..self.options.rounds {
            for (server, kept) in suited.iter().zip(&mut measured) {
                let Ok(samples) = &mut kept.samples else { continue };
                match sampler.sample(row, server) {
                    Ok(sample) => samples.push(sample),
                    Err(problem) => {
                        self.failed.push(format!("{}, {}: {problem:#}", row.name, server.subject.name));
                        kept.samples = Err("failed".to_owned());
                    }
                }
            }
        }
        measured
    }

    fn counts(&mut self) -> anyhow::Result<()> {
        let includes = |row: &super::Row| self.options.includes(COUNTS) || self.options.includes(&counted_name(row));
        let rows: Vec<super::Row> = counts::rows().filter(includes).collect();
        if rows.is_empty() || self.options.quick {
            return Ok(());
        }
        let Some(valgrind) = program("valgrind") else {
            self.not_run.push("counts, valgrind is missing (apt-get install valgrind)".to_owned());
            return Ok(());
        };
        let strace = program("strace").map(Instrument::Strace);
        if strace.is_none() {
            self.not_run.push("system calls, strace is missing (apt-get install strace)".to_owned());
        }
        let binaries = self.target.join("release");
        let bench = Bench { binaries, callgrind: Instrument::Callgrind(valgrind), strace };
        for row in &rows {
            let servers: Vec<&Built> = self.servers.iter().filter(|server| counts::suits(row, server)).collect();
            let counted = counts::count(&bench, row, &servers);
            self.failed.extend(counted.failed);
            let is_good = counted.standing.is_some_and(Standing::is_good);
            let functions = counted.functions.filter(|_| !is_good);
            let text = match functions {
                Some(functions) => format!("{}\nWhere ours spends more than the floor:\n\n{functions}", counted.text),
                None => counted.text,
            };
            self.tell(&counted_name(row), &format!("Counted: {}", row.name), &text, counted.standing)?;
        }
        Ok(())
    }

    fn footprint(&mut self) -> anyhow::Result<()> {
        if !self.options.includes(FOOTPRINT) {
            return Ok(());
        }
        let servers: Vec<&Built> = self.servers.iter().collect();
        let footprint = footprint::footprint(self.root, &self.target, &servers)?;
        self.not_run.extend(footprint.missing);
        self.tell(FOOTPRINT, "What they are made of", &footprint.text, None)
    }

    fn build_time(&self) -> anyhow::Result<()> {
        if !self.options.includes_build_time() {
            return Ok(());
        }
        let servers: Vec<&Built> = self.servers.iter().collect();
        self.tell(BUILD_TIME, "A clean build", &footprint::build_times(self.root, &self.target, &servers)?, None)
    }

    /// Prints a table and keeps it.
    fn tell(&self, section: &str, title: &str, table: &str, standing: Option<Standing>) -> anyhow::Result<()> {
        let standing = standing.map(|standing| format!("\n{standing}\n")).unwrap_or_default();
        say(&format!("\n{section}: {title}\n\n{table}{standing}"))?;
        self.keep(section, &format!("{table}{standing}"))
    }

    /// Writes at once, so that a run that is interrupted has not been in vain, and reads first, so that what was written
    /// by hand meanwhile stays.
    fn keep(&self, section: &str, content: &str) -> anyhow::Result<()> {
        if !self.options.write {
            return Ok(());
        }
        let mut results = Results::read(self.root)?;
        results.keep(section, content)?;
        results.write()
    }

    fn finish(self) -> anyhow::Result<()> {
        let machine = results::machine()?;
        let versions: Vec<String> =
            self.servers.iter().map(|server| format!("{} {}", server.subject.name, server.version)).collect();
        let load = format!("{} before, {} after", self.load_before, results::load_average()?);
        let machine =
            format!("{machine}\n- Load average: {load}\n- {}\n- {} rounds", versions.join(", "), self.options.rounds);
        say(&format!("\n{machine}"))?;
        // A row by itself leaves the others as they were, on whatever machine that was.
        if self.options.rows.is_empty() {
            self.keep("machine", &machine)?;
            say("left out: build times, which --row build-time takes")?;
        }
        for missing in &self.not_run {
            say(&format!("NOT RUN: {missing}"))?;
        }
        if !self.failed.is_empty() {
            bail!("failed:\n  {}", self.failed.join("\n  "));
        }
        if !self.not_run.is_empty() {
            exit(3);
        }
        Ok(())
    }
}

impl Standing {
    fn is_good(self) -> bool {
        self.place == 1 && self.ratio.is_none_or(|ratio| ratio <= GOOD_RATIO)
    }
}

impl std::fmt::Display for Standing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{OURS}: place {} of {}", self.place, self.of)?;
        if let Some(ratio) = self.ratio {
            write!(formatter, ", {ratio:.2} times the floor")?;
        }
        formatter.write_str(if self.is_good() { "." } else { ": to be explained." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> anyhow::Result<Options> {
        Options::parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn rows_and_peers_are_known_by_name() {
        let options = parse(&["--row", "modern-list", "--row", "counts-modern-list", "--peer", "rmcp"]).unwrap();
        assert!(options.includes("modern-list") && !options.includes("legacy-echo-64"));
        let included = SUBJECTS.iter().filter(|subject| options.includes_server(subject)).map(|subject| subject.name);
        assert_eq!(included.collect::<Vec<_>>(), ["floor", "ours", "rmcp"]);
        assert!(parse(&["--row", "modern-list-2"]).is_err());
        assert!(parse(&["--peer", "another"]).is_err());
        assert!(parse(&["--rapid"]).is_err());
        assert!(parse(&["--quick", "--write"]).is_err());
    }

    #[test]
    fn every_row_has_its_place_in_the_results() {
        let mut results = Results::read(&crate::root()).unwrap();
        let rows = ROWS.iter().map(|row| row.name.to_owned());
        for section in rows.chain(counted_names()).chain([FOOTPRINT, BUILD_TIME, "machine"].map(str::to_owned)) {
            results.keep(&section, "x").unwrap();
        }
    }

    #[test]
    fn what_is_behind_others_or_far_above_the_floor_is_to_be_explained() {
        let standing = |place, ratio| Standing { place, of: 5, ratio };
        assert!(standing(1, Some(1.3)).is_good() && standing(1, None).is_good());
        assert!(!standing(2, Some(1.0)).is_good() && !standing(1, Some(1.5)).is_good());
        assert_eq!(standing(2, Some(1.5)).to_string(), "ours: place 2 of 5, 1.50 times the floor: to be explained.");
    }
}
