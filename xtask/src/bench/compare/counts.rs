//! Instructions, allocations and system calls per request of every server, and where ours spends more than the floor.
//!
//! Why here: times say that there is a difference, counts by function say whose it is.
//! Invariants: the same runs and files as `--counts`, whose budget is not touched.

use super::super::{Bench, Cost, Probe, ROWS, Row, dearest, thousands};
use super::subjects::{Built, FLOOR, OURS};
use super::tables::{Standing, markdown};

/// How many functions are named.
const FUNCTIONS: usize = 12;

/// What is counted here and has no budget.
static MORE: [Row; 2] = [
    Row {
        name: "modern-echo-1048576",
        load: &["--text", "1048576"],
        floor_load: &["--text", "1048576"],
        tools: "2",
        requests: (4, 14),
    },
    Row {
        name: PIPED,
        load: &["--connections", "64"],
        floor_load: &["--connections", "64"],
        tools: "2",
        requests: (256, 1_536),
    },
];

/// The row that is asked on pipes.
const PIPED: &str = "stdio-pipelined";

/// All rows that are counted.
pub(super) fn rows() -> impl Iterator<Item = Row> {
    ROWS.iter().chain(&MORE).map(|row| {
        // Libraries that take a hundred times as long for a list would take minutes for the budget's number of requests.
        let requests = if row.name == "modern-list" { (10, 60) } else { row.requests };
        Row { requests, ..*row }
    })
}

/// Whether a server serves what a row asks.
pub(super) fn suits(row: &Row, server: &Built) -> bool {
    server.subject.name == FLOOR || server.subject.sessions || !row.load.contains(&"legacy")
}

/// What was counted of one row.
pub(super) struct Counted {
    pub(super) text: String,
    pub(super) standing: Option<Standing>,
    /// The functions that make the difference between ours and the floor.
    pub(super) functions: Option<String>,
    /// What could not be counted at all.
    pub(super) failed: Vec<String>,
}

/// Counts a row with every server that serves it.
pub(super) fn count(bench: &Bench, row: &Row, servers: &[&Built]) -> Counted {
    let mut failed = Vec::new();
    let mut costs: Vec<(&'static str, Cost)> = Vec::new();
    for server in servers {
        let name = server.subject.name;
        let probe = Probe {
            server: &server.program,
            // Beside the files of the budget's own runs, whose floor lists other tools.
            name: &format!("compared-{name}"),
            load_arguments: if name == FLOOR { row.floor_load } else { row.load },
            is_piped: row.name == PIPED,
            environment: &[("SCHEMAS", "ordinary")],
        };
        match bench.measure_server(row, &probe) {
            Ok(cost) => costs.push((name, cost)),
            Err(problem) => failed.push(format!("{}, {name}: {problem:#}", row.name)),
        }
    }
    let named = |name: &str| costs.iter().find(|(found, _)| *found == name).map(|(_, cost)| cost);
    let floor = named(FLOOR);
    let ratio = |cost: &Cost| floor.map(|floor| cost.figures.instructions / floor.figures.instructions);
    let cells = costs.iter().map(|(name, cost)| {
        vec![
            (*name).to_owned(),
            thousands(cost.figures.instructions),
            ratio(cost).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            format!("{:.1}", cost.figures.allocations),
            cost.body_bytes.to_string(),
            cost.syscalls.clone().unwrap_or_else(|| "NOT RUN".to_owned()),
        ]
    });
    let heads = ["server", "instructions", "x floor", "allocations", "bytes answered", "system calls"];
    let text = markdown(&heads, &cells.collect::<Vec<_>>());
    let ours = named(OURS);
    let standing = ours.map(|ours| {
        let others = costs.iter().filter(|(name, _)| *name != FLOOR).map(|(_, cost)| cost.figures.instructions);
        let better = others.clone().filter(|other| *other < ours.figures.instructions).count();
        Standing { place: 1 + better, of: others.count(), ratio: ratio(ours) }
    });
    let functions = ours.zip(floor).map(|(ours, floor)| functions(ours, floor));
    Counted { text, standing, functions, failed }
}

fn functions(ours: &Cost, floor: &Cost) -> String {
    let cells = dearest(ours, floor).into_iter().take(FUNCTIONS).map(|(ours, floor, name)| {
        vec![format!("`{}`", shortened(name)), thousands(ours - floor), thousands(ours), thousands(floor)]
    });
    markdown(&["function, its own instructions", "more", "ours", "floor"], &cells.collect::<Vec<_>>())
}

/// Names of generic functions can be longer than a page.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 100;
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    name.chars().take(LONGEST).chain("...".chars()).collect()
}
