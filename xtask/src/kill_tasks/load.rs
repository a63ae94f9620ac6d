//! The load under which the server dies: clients of every owner that create, look, answer and cancel.
//!
//! Why here: what is in flight when a server dies should be everything that can be.
//! Invariants: a client ends with its connection; whatever it was told before is in the ledger.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;

use super::http::{Connection, OWNERS};
use super::ledger::{Known, Ledger};

/// Clients of each owner.
const CLIENTS: usize = 2;

/// Knuth's generator, whose upper bits will do.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Loads the server for as long, then kills it with everything in flight.
///
/// # Errors
/// What a client was told that cannot be, or that the server died by itself.
pub(super) fn until(
    moment: Duration,
    address: &str,
    ledger: &Ledger,
    random: &mut Random,
    kill: impl FnOnce() -> io::Result<()>,
) -> anyhow::Result<()> {
    let is_dying = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..OWNERS.len() * CLIENTS)
            .map(|number| {
                let (mut random, is_dying) = (Random::new(random.below(u64::from(u32::MAX))), &is_dying);
                scope.spawn(move || client(number % OWNERS.len(), address, ledger, &mut random, is_dying))
            })
            .collect();
        // The moment of the death is what the round is about.
        std::thread::sleep(moment);
        is_dying.store(true, Ordering::SeqCst);
        kill()?;
        for client in clients {
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(())
    })
}

fn client(
    owner: usize,
    address: &str,
    ledger: &Ledger,
    random: &mut Random,
    is_dying: &AtomicBool,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(address)?;
    loop {
        let done = step(owner, &mut connection, ledger, random)?;
        if let Err(error) = done {
            ensure!(is_dying.load(Ordering::SeqCst), "the server died by itself: {error:#}");
            ledger.unacknowledged();
            return Ok(());
        }
    }
}

/// One request. The inner error is that of the connection, the outer one a fault.
fn step(
    owner: usize,
    connection: &mut Connection,
    ledger: &Ledger,
    random: &mut Random,
) -> anyhow::Result<anyhow::Result<()>> {
    let name = OWNERS[owner];
    let choice = random.below(100);
    let tool = match choice {
        0..30 => Some("finish"),
        30..42 => Some("go_on"),
        42..60 => Some("ask"),
        _ => None,
    };
    if let Some(tool) = tool {
        let marker = format!("{name}-{:08x}{:08x}", random.below(1 << 31), random.below(1 << 31));
        return Ok(connection
            .create(name, tool, &marker)
            .map(|id| ledger.created(Known::new(id, owner, tool, marker))));
    }
    let pick = |limit| random.below(limit);
    if (60..75).contains(&choice) {
        let Some((index, id)) = ledger.one(owner, |known| known.tool == "ask" && known.parked, pick) else {
            return Ok(Ok(()));
        };
        let answer = format!("{:08x}", random.below(1 << 31));
        let responses = json!({ "answer": { "action": "accept", "content": { "answer": answer } } });
        ledger.tries_answer(index, &answer);
        return match connection.about(name, "tasks/update", &id, json!({ "inputResponses": responses })) {
            Ok(told) => {
                ensure!(told["result"].is_object(), "an answer was answered {told}");
                ledger.answered(index);
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        };
    }
    if (75..82).contains(&choice) {
        let Some((index, id)) = ledger.one(owner, |known| known.tool == "go_on", pick) else { return Ok(Ok(())) };
        ledger.tries_cancel(index);
        return match connection.about(name, "tasks/cancel", &id, json!({})) {
            Ok(told) => {
                ensure!(told["result"].is_object(), "a cancellation was answered {told}");
                look(index, &id, name, connection, ledger)
            }
            Err(error) => Ok(Err(error)),
        };
    }
    match ledger.one(owner, |_| true, pick) {
        Some((index, id)) => look(index, &id, name, connection, ledger),
        None => Ok(Ok(())),
    }
}

fn look(
    index: usize,
    id: &str,
    name: &str,
    connection: &mut Connection,
    ledger: &Ledger,
) -> anyhow::Result<anyhow::Result<()>> {
    match connection.about(name, "tasks/get", id, json!({})) {
        Ok(told) => ledger.seen(index, &told).map(Ok),
        Err(error) => Ok(Err(error)),
    }
}
