//! Sends a number of like requests, for instruments that count what the server does meanwhile.
//!
//! Why here: a count is the difference of two runs, so a run is its number of requests and nothing else.
//! Invariants: one request in flight per connection; each answer is read as JSON and checked whole.

use crate::Outcome;
use crate::lane::Lane;
use crate::options::{Options, Target};
use crate::question::{FIRST_ID, Question};

/// Gives the number of answers and the length of the last one's body.
pub(crate) fn run(options: &Options, target: &Target) -> Outcome<String> {
    let question = Question::of(options);
    let mut lanes = Vec::new();
    for _ in 0..options.connections.min(options.requests) {
        lanes.push(Lane::open(options, target, &question)?);
    }
    let mut body_bytes = 0;
    // In turn: the answer awaited is always the oldest, so with several connections the server never idles.
    for index in 0..options.requests {
        let lane_index = index % lanes.len();
        let Some(lane) = lanes.get_mut(lane_index) else { break };
        if let Some(length) = lane.settle(&question)? {
            body_bytes = length;
        }
        lane.ask(FIRST_ID + u64::try_from(index)?)?;
    }
    for lane in &mut lanes {
        if let Some(length) = lane.settle(&question)? {
            body_bytes = length;
        }
    }
    Ok(format!("answers {} body_bytes {body_bytes}", options.requests))
}
