//! Asks a server on its pipes, one request at a time or many.
//!
//! Why here: on pipes what costs is the hand-over between processes, which HTTP hides behind its own work.
//! Invariants: never more requests in flight than asked for; answers may come in any order, each id once.
//! Spec: 2026-07-28 basic/transports, "stdio"; 2025-11-25 basic/transports, "stdio".

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

use serde_json::Value;

use crate::Outcome;
use crate::child::Child;
use crate::options::Options;
use crate::question::{FIRST_ID, Question, check_handshake, id_of, initialize, initialized};
use crate::server::now;
use crate::timed::summary;

/// What is read at once: as much as a pipe holds.
const CHUNK: usize = 64 * 1_024;

/// Gives what a timed run gives, and the median of the round trips' nanoseconds where one request is in flight.
pub(crate) fn run(options: &Options, program: &[String]) -> Outcome<String> {
    let (child, input, output) = Child::start(program)?;
    let mut pipe = Pipe::open(options, Question::of(options), input, output)?;
    pipe.send_for(options.time / 5)?;
    pipe.round_trips.clear();
    let before = child.server().cpu()?;
    let (answers, elapsed) = pipe.send_for(options.time)?;
    let after = child.server().cpu()?;
    let median = pipe.median();
    Ok(format!("{} median_ns {}", summary(answers, elapsed, before, after), median.as_nanos()))
}

/// Sends a number of requests and waits for the child's own end, for instruments that count.
pub(crate) fn count(options: &Options, program: &[String]) -> Outcome<String> {
    let (child, input, output) = Child::start(program)?;
    let mut pipe = Pipe::open(options, Question::of(options), input, output)?;
    pipe.send(options.requests)?;
    let body_bytes = pipe.length;
    drop(pipe);
    child.wait()?;
    Ok(format!("answers {} body_bytes {body_bytes}", options.requests))
}

pub(crate) struct Pipe {
    input: ChildStdin,
    output: ChildStdout,
    question: Question,
    most_in_flight: usize,
    in_flight: HashSet<u64>,
    asked: usize,
    answers: usize,
    /// The length of the last answer.
    length: usize,
    /// What was read and is no whole line yet.
    read: Vec<u8>,
    round_trips: Vec<Duration>,
}

impl Pipe {
    /// Shakes hands in the legacy era; in the modern one there is nothing to agree on.
    pub(crate) fn open(options: &Options, question: Question, input: ChildStdin, output: ChildStdout) -> Outcome<Self> {
        let mut pipe = Self {
            input,
            output,
            question,
            most_in_flight: options.connections,
            in_flight: HashSet::new(),
            asked: 0,
            answers: 0,
            length: 0,
            read: Vec::new(),
            round_trips: Vec::new(),
        };
        if options.era.shakes_hands() {
            writeln!(pipe.input, "{}", initialize())?;
            let lines = pipe.lines()?;
            check_handshake(&serde_json::from_slice(lines.first().ok_or("nothing was answered")?)?)?;
            writeln!(pipe.input, "{}", initialized())?;
        }
        Ok(pipe)
    }

    /// Asks another question from now on.
    pub(crate) fn ask(&mut self, question: Question) {
        self.question = question;
    }

    /// Goes on until so many requests were answered, of all that were ever sent.
    pub(crate) fn send(&mut self, number: usize) -> Outcome<()> {
        while self.answers < number {
            self.turn(number)?;
        }
        Ok(())
    }

    pub(crate) fn last_length(&self) -> usize {
        self.length
    }

    fn send_for(&mut self, time: Duration) -> Outcome<(u64, Duration)> {
        let (started, before) = (now(), self.answers);
        loop {
            self.turn(usize::MAX)?;
            let elapsed = started.elapsed();
            if elapsed >= time {
                return Ok((u64::try_from(self.answers - before)?, elapsed));
            }
        }
    }

    /// Asks as often as may be, `limit` times in all, and takes what answers come.
    fn turn(&mut self, limit: usize) -> Outcome<()> {
        let mut requests = String::new();
        while self.in_flight.len() < self.most_in_flight && self.asked < limit {
            let id = FIRST_ID + u64::try_from(self.asked)?;
            requests.push_str(&self.question.body(id));
            requests.push('\n');
            self.in_flight.insert(id);
            self.asked += 1;
        }
        let sent = now();
        self.input.write_all(requests.as_bytes())?;
        let lines = self.lines()?;
        if self.most_in_flight == 1 {
            self.round_trips.push(sent.elapsed());
        }
        for line in lines {
            // Notifications have no id.
            let Some(id) = id_of(&line) else { continue };
            if !self.in_flight.remove(&id) {
                return Err(format!("request {id} was answered twice or never sent").into());
            }
            // The first of each place in flight is checked whole, the others by a glance.
            if self.answers < self.most_in_flight {
                self.question.check(id, &serde_json::from_slice::<Value>(&line)?)?;
            } else {
                self.question.glance(id, &line, self.length)?;
            }
            self.length = line.len();
            self.answers += 1;
        }
        Ok(())
    }

    /// Waits for a whole line, and gives it with those that came with it.
    fn lines(&mut self) -> Outcome<Vec<Vec<u8>>> {
        loop {
            let known = self.read.len();
            self.read.resize(known + CHUNK, 0);
            let length = self.output.read(self.read.get_mut(known..).unwrap_or_default())?;
            self.read.truncate(known + length);
            if length == 0 {
                return Err("the server closed its output".into());
            }
            if let Some(end) = memchr::memrchr(b'\n', &self.read) {
                let rest = self.read.split_off(end + 1);
                let whole = std::mem::replace(&mut self.read, rest);
                return Ok(whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(Vec::from).collect());
            }
        }
    }

    fn median(&mut self) -> Duration {
        self.round_trips.sort_unstable();
        self.round_trips.get(self.round_trips.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::options;

    /// Answers each line by a script of a shell, as many times as asked.
    fn answered(script: &str) -> Outcome<String> {
        let words = ["stdio-count", "--text", "3", "--requests", "4", "--connections", "2", "--", "sh", "-c", script];
        let options = options(&words).unwrap();
        let crate::options::Command::StdioCount(program) = &options.command else { panic!("another command") };
        count(&options, program)
    }

    /// Turns a request into its answer.
    const ECHO: &str = r#"sed -u 's/.*"id":\([0-9]*\).*/{"id":\1,"result":{"content":[{"text":"abc"}]}}/'"#;

    #[test]
    fn every_request_is_answered_once() {
        assert!(answered(ECHO).unwrap().starts_with("answers 4 "));
        let twice = answered(&format!("{ECHO} | sed -u p")).unwrap_err();
        assert!(twice.to_string().contains("twice"), "{twice}");
    }

    #[test]
    fn a_wrong_answer_ends_the_run() {
        assert!(answered(&ECHO.replace("abc", "abd")).is_err());
        assert!(answered("exit 0").is_err());
    }
}
