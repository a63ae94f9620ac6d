//! Sends one large message, whose answer is as large, and reads how much memory the server took at most for both.
//!
//! Why here: whoever sizes a machine needs what a message costs while it is under way, which no idle figure shows.
//! Invariants: small requests come first, so that what is allocated once is not counted; the peak is that of the large
//! message alone.

use crate::Outcome;
use crate::child::Child;
use crate::lane::Lane;
use crate::options::{Options, Target};
use crate::question::{FIRST_ID, Question};
use crate::server::Server;
use crate::stdio::Pipe;

/// Requests sent first.
const WARM_UP: usize = 200;
/// The length of their texts.
const SMALL: usize = 64;

/// Gives the bytes that the server took at most, above what it had, and the length of request and answer together.
pub(crate) fn run(options: &Options, target: &Target) -> Outcome<String> {
    let server = Server(options.server.ok_or("the server's process is not named")?);
    let small = Question::sized(options, SMALL);
    let mut lane = Lane::open(options, target, &small)?;
    for index in 0..WARM_UP {
        lane.ask(FIRST_ID + u64::try_from(index)?)?;
        lane.settle(&small)?;
    }
    let large = Question::of(options);
    let mut lane = Lane::open(options, target, &large)?;
    measure(server, &large, || {
        lane.ask(FIRST_ID)?;
        lane.settle(&large)?.ok_or_else(|| "nothing was answered".into())
    })
}

/// The same on the pipes of a child.
pub(crate) fn stdio(options: &Options, program: &[String]) -> Outcome<String> {
    let (child, input, output) = Child::start(program)?;
    let large = Question::of(options);
    let mut pipe = Pipe::open(options, Question::sized(options, SMALL), input, output)?;
    pipe.send(WARM_UP)?;
    pipe.ask(Question::of(options));
    measure(child.server(), &large, || {
        pipe.send(WARM_UP + 1)?;
        Ok(pipe.last_length())
    })
}

fn measure(server: Server, question: &Question, ask: impl FnOnce() -> Outcome<usize>) -> Outcome<String> {
    server.forget_peak()?;
    let before = server.peak()?;
    let length = question.body(FIRST_ID).len() + ask()?;
    let after = server.peak()?;
    Ok(format!("peak_bytes {} message_bytes {length}", after.saturating_sub(before) * 1_024))
}
