//! Sends for a time, and reads what processor time the server took meanwhile.
//!
//! Why here: what a request costs in time includes the kernel's half, which no count shows.
//! Invariants: the first answers are checked whole before the clock starts, every other one by a glance; requests are in
//! flight on every connection when the times are read, so the server is as busy at the start as at the end.

use std::time::Duration;

use crate::Outcome;
use crate::lane::Lane;
use crate::options::{Options, Target};
use crate::question::{FIRST_ID, Question};
use crate::server::{Cpu, Server, now};

/// Gives answers, the nanoseconds they took, and those of the server's processor time.
pub(crate) fn run(options: &Options, target: &Target) -> Outcome<String> {
    let server = Server(options.server.ok_or("the server's process is not named")?);
    let question = Question::of(options);
    let mut lanes = Vec::new();
    let mut length = 0;
    for _ in 0..options.connections {
        let mut lane = Lane::open(options, target, &question)?;
        lane.ask(FIRST_ID)?;
        length = lane.settle(&question)?.unwrap_or(length);
        lanes.push(lane);
    }
    let mut load = Load { lanes, question, length, id: FIRST_ID };
    load.send_for(options.time / 5)?;
    let before = server.cpu()?;
    let (answers, elapsed) = load.send_for(options.time)?;
    let after = server.cpu()?;
    load.settle_all()?;
    Ok(summary(answers, elapsed, before, after))
}

/// The figures of a timed run.
pub(crate) fn summary(answers: u64, elapsed: Duration, before: Cpu, after: Cpu) -> String {
    format!(
        "answers {answers} elapsed_ns {} user_ns {} system_ns {}",
        elapsed.as_nanos(),
        (after.user - before.user).as_nanos(),
        (after.system - before.system).as_nanos()
    )
}

struct Load {
    lanes: Vec<Lane>,
    question: Question,
    /// The length of an answer that was checked whole.
    length: usize,
    id: u64,
}

impl Load {
    /// Goes round the connections, always to the oldest request, until the time is over.
    fn send_for(&mut self, time: Duration) -> Outcome<(u64, Duration)> {
        let started = now();
        let mut answers = 0;
        loop {
            for lane in &mut self.lanes {
                self.id += 1;
                lane.settle_quickly(&self.question, self.length)?;
                lane.ask(self.id)?;
                answers += 1;
            }
            let elapsed = started.elapsed();
            if elapsed >= time {
                return Ok((answers, elapsed));
            }
        }
    }

    /// The last answers, checked whole as the first were.
    fn settle_all(&mut self) -> Outcome<()> {
        for lane in &mut self.lanes {
            lane.settle(&self.question)?;
        }
        Ok(())
    }
}
