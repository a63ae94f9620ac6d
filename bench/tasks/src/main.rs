//! Tasks under load, for `cargo xtask kill-tasks`, `race-tasks` and `bench --tasks`.
//!
//! Why here: what is killed, raced or filled must be a program of its own, and none of it belongs into the library.
//! Invariants: what does not hold ends the program with status 1 and a line that says what.

mod memory;
mod race;
mod rates;
mod serve;

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "\
usage: bench-tasks serve FILE EFFECTS   a server over HTTP whose tasks are kept in FILE; answered calls leave a line in EFFECTS
       bench-tasks race CALLS           calls that end at their window's edge while clients leave, on one and on two threads
       bench-tasks rates FOLDER         tasks per second, in memory and in a file
       bench-tasks memory NUMBER        resident memory of tasks that wait for input";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match *words {
        ["serve", file, effects] => serve::run(file.as_ref(), effects.as_ref()),
        ["race", calls] => number(calls).and_then(race::run),
        ["rates", folder] => rates::run(folder.as_ref()),
        ["memory", tasks] => number(tasks).and_then(memory::run),
        _ => Err(USAGE.into()),
    };
    let Err(problem) = done else { return ExitCode::SUCCESS };
    // Where even stderr is closed there is nobody left to tell.
    let _unheard = writeln!(io::stderr(), "bench-tasks: {problem}");
    ExitCode::FAILURE
}

fn number(text: &str) -> Outcome<usize> {
    text.parse().map_err(|_| USAGE.into())
}

/// A line on standard output.
fn say(line: &str) -> io::Result<()> {
    let mut output = io::stdout();
    writeln!(output, "{line}")?;
    output.flush()
}

/// What clients of these programs declare: that they can be given tasks, and be asked.
fn capabilities() -> serde_json::Value {
    serde_json::json!({ "elicitation": { "form": {} }, "extensions": { mcp_tasks::ID: {} } })
}

/// Bounds that are not what is measured.
fn options(tasks: usize) -> mcp_tasks::TaskOptions {
    let mut options = mcp_tasks::TaskOptions::default();
    (options.per_owner, options.total, options.bytes) = (tasks, tasks, 1 << 30);
    options
}
