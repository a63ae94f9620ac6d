//! `cargo xtask bench --telemetry`: what spans, events and audit records cost a request while nobody listens.
//!
//! Why here: everybody pays for what can be traced, so it has to be next to nothing, shown by itself.
//! Invariants: the same request to the same server, once as it is and once with everything of `tracing` compiled out.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use super::{Bench, Cost, Instrument, OURS, Probe, ROWS, Row, build, dearest, say, thousands};

/// By how much a request may be dearer.
const GOAL: f64 = 1.01;

/// Allocations that fall into one of the runs and not the other, such as those of buffers that grow.
const NOISE: f64 = 0.1;

/// What is measured: a modern call and one in a session.
const MEASURED: [&str; 2] = ["modern-echo-64", "legacy-echo-64"];

/// The server that can tell nothing, beside the other one.
const SILENT: &str = "bench-server-silent";

/// Builds both servers, and prints two lines for each row and the functions that make the difference.
///
/// # Errors
/// If a build fails, an answer is wrong, an instrument fails, or a ratio is above the goal.
pub(super) fn run(valgrind: PathBuf) -> anyhow::Result<()> {
    let root = crate::root();
    let binaries = build(&root, &["--features", "bench-server/silent"])?;
    // The next build puts another program in its place.
    fs::copy(binaries.join(OURS.package), binaries.join(SILENT)).context("the silent server was not kept")?;
    let bench = Bench { binaries: build(&root, &[])?, callgrind: Instrument::Callgrind(valgrind), strace: None };
    let mut missed = Vec::new();
    say("row            tracing      instructions allocations x silent")?;
    for row in ROWS.iter().filter(|row| MEASURED.contains(&row.name)) {
        let silent = measure(&bench, row, SILENT)?;
        let ours = measure(&bench, row, OURS.package)?;
        for (name, cost) in [("compiled out", &silent), ("unheard", &ours)] {
            let (instructions, ratio) =
                (cost.figures.instructions, cost.figures.instructions / silent.figures.instructions);
            let (instructions, allocations) = (thousands(instructions), cost.figures.allocations);
            say(&format!("{:<14} {name:<12} {instructions:>12} {allocations:>11.1} {ratio:>8.3}", row.name))?;
        }
        if ours.figures.instructions > silent.figures.instructions * GOAL
            || ours.figures.allocations > silent.figures.allocations + NOISE
        {
            missed.push(row.name);
        }
        for (ours, silent, name) in dearest(&ours, &silent).into_iter().take(8) {
            say(&format!("  {:>+6.0}  {}", ours - silent, name.chars().take(100).collect::<String>()))?;
        }
    }
    ensure!(missed.is_empty(), "above {GOAL} times the instructions, or with more allocations: {}", missed.join(", "));
    Ok(())
}

fn measure(bench: &Bench, row: &Row, server: &'static str) -> anyhow::Result<Cost> {
    let path = &bench.binaries.join(server);
    let name = if server == SILENT { "silent" } else { "unheard" };
    let probe = Probe { server: path, name, load_arguments: row.load, is_piped: false, environment: &[] };
    bench.measure_server(row, &probe)
}
