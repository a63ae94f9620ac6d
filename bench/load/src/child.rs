//! A server that is a child of the load: started, spoken to, ended.
//!
//! Why here: on pipes there is no other way, and a cold start is measured from the start itself.
//! Invariants: the child never outlives its `Child`.

use std::io::{BufRead as _, BufReader};
use std::process::{self, ChildStdin, ChildStdout, Command, Stdio};

use crate::Outcome;
use crate::lane::Lane;
use crate::options::{Options, Target};
use crate::question::{FIRST_ID, Question};
use crate::server::{Server, now};

pub(crate) struct Child {
    process: process::Child,
}

impl Child {
    /// Starts a program with pipes for its input and output, which come back beside it.
    pub(crate) fn start(program: &[String]) -> Outcome<(Self, ChildStdin, ChildStdout)> {
        let (name, arguments) = program.split_first().ok_or("no program is named")?;
        let mut process = Command::new(name).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let child = Self { process };
        Ok((child, input.ok_or("the child has no input")?, output.ok_or("the child has no output")?))
    }

    pub(crate) fn server(&self) -> Server {
        Server(self.process.id())
    }

    /// Waits for a child that ends because its input did.
    pub(crate) fn wait(mut self) -> Outcome<()> {
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only for a child that has already ended.
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

/// Gives the nanoseconds from the start of the program to its first answer that is right.
pub(crate) fn start(options: &Options, program: &[String]) -> Outcome<String> {
    let question = Question::of(options);
    let started = now();
    let (_child, _input, output) = Child::start(program)?;
    let mut output = BufReader::new(output);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let url = line.trim().strip_prefix("listening on ").ok_or_else(|| format!("the server said: {line}"))?;
    let mut lane = Lane::open(options, &Target::parse(url)?, &question)?;
    lane.ask(FIRST_ID)?;
    lane.settle(&question)?;
    Ok(format!("elapsed_ns {}", started.elapsed().as_nanos()))
}
