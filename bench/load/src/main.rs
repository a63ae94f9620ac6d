//! The load of the benchmarks: one client that sends like requests and checks every answer.
//!
//! Why here: a figure per request is worth something only when each answer was seen and right.
//! Invariants: shares no code with what it measures; a wrong answer ends the run and nothing is printed as a figure.

mod child;
mod count;
mod hold;
mod http;
mod lane;
mod options;
mod peak;
mod question;
mod server;
mod stdio;
mod timed;

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;

use options::{Command, Options};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let finished = Options::parse(&arguments).and_then(|options| run(&options));
    let told = match &finished {
        Ok(summary) => writeln!(io::stdout(), "{summary}"),
        Err(problem) => writeln!(io::stderr(), "bench-load: {problem}"),
    };
    if finished.is_ok() && told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The figures, as names and numbers in turn.
fn run(options: &Options) -> Outcome<String> {
    match &options.command {
        Command::Count(target) => count::run(options, target),
        Command::Timed(target) => timed::run(options, target),
        Command::Hold(kind, target) => hold::run(options, *kind, target),
        Command::Peak(target) => peak::run(options, target),
        Command::StdioPeak(program) => peak::stdio(options, program),
        Command::Stdio(program) => stdio::run(options, program),
        Command::StdioCount(program) => stdio::count(options, program),
        Command::Start(program) => child::start(options, program),
    }
}
