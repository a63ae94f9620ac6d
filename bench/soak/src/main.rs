//! The soak: a server, and well-behaved, slow, vanishing and hostile clients of both eras at once.
//!
//! Why here: what grows by a little with each request, or with each client that goes away in the middle, is seen after
//! minutes and not in a test; and only all of them together show whether some delay the others.
//! Invariants: everything is on this machine's loopback; each answer to a valid request is checked for what it says, each
//! refusal for its status; the server is a child and ends with this program.

mod client;
mod drive;
mod growth;
mod hostile;
mod process;
mod serve;
mod slow;
mod tally;
mod vanishing;
mod well;

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
usage: bench-soak drive [OPTIONS]   starts a server, loads it, judges it
       bench-soak serve             the server; prints where it listens
  --seconds N      how long (default 60)
  --interval N     seconds from line to line (default 10)
  --warm-up N      seconds that are not judged (default a fifth of the time)
  --rate PERCENT   how often the clients come (default 100)
  --p99-ms N       bound on the small calls (default 250)
  --max-mib N      bound on the resident memory (default 512)";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match words.as_slice() {
        ["serve"] => serve::run().map(|()| true),
        ["drive", rest @ ..] => drive::Options::parse(rest).and_then(|options| drive::run(&options)),
        _ => Err(USAGE.into()),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            // Where even stderr is closed there is nobody left to tell.
            let _ = writeln!(io::stderr(), "bench-soak: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// A line on standard output.
fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}
