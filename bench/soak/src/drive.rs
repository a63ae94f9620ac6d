//! Starts the server, lets the clients loose, looks, and judges.
//!
//! Why here: who comes how often, and what counts as growth, is the whole of the run's definition.
//! Invariants: clients run on one thread, so that the server has the other processor; the run goes on to its end whatever it
//! finds, and all that it found is told.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::client::World;
use crate::growth::{Bound, Series};
use crate::process::{Server, Size};
use crate::serve::{HEADER_TIMEOUT, SESSION_IDLE};
use crate::well::pause;
use crate::{Outcome, USAGE, hostile, say, slow, vanishing, well};

/// Longest that anything one client does may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is looked at between two lines, so that each shows the least of its interval and not a peak.
const LOOKS: u32 = 10;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Options {
    seconds: u64,
    interval: u64,
    warm_up: u64,
    rate: u64,
    p99: Duration,
    most_kib: f64,
}

impl Options {
    pub(crate) fn parse(mut words: &[&str]) -> Outcome<Self> {
        let (mut seconds, mut interval, mut warm_up, mut rate, mut p99, mut mib) = (60, 10, None, 100, 250, 512);
        while let [name, value, rest @ ..] = words {
            let value: u64 = value.parse().map_err(|_| USAGE)?;
            match *name {
                "--seconds" => seconds = value,
                "--interval" => interval = value,
                "--warm-up" => warm_up = Some(value),
                "--rate" => rate = value,
                "--p99-ms" => p99 = value,
                "--max-mib" => mib = value,
                _ => return Err(USAGE.into()),
            }
            words = rest;
        }
        let warm_up = warm_up.unwrap_or(seconds / 5);
        if !words.is_empty() || rate == 0 || interval == 0 || warm_up + 2 * interval > seconds {
            return Err(USAGE.into());
        }
        let p99 = Duration::from_millis(p99);
        Ok(Self { seconds, interval, warm_up, rate, p99, most_kib: mib as f64 * 1_024.0 })
    }
}

/// A client that comes again and again.
struct Scenario {
    name: &'static str,
    /// How many of them there are.
    clients: u64,
    /// Milliseconds from one time to the next.
    pause: u64,
    run: fn(&World) -> Running<'_>,
}

type Running<'a> = Pin<Box<dyn Future<Output = Outcome<()>> + 'a>>;

macro_rules! scenarios {
    ($($name:literal $clients:literal $pause:literal $path:path;)*) => {
        [$(Scenario { name: $name, clients: $clients, pause: $pause, run: |world| Box::pin($path(world)) }),*]
    };
}

static SCENARIOS: [Scenario; 30] = scenarios! {
    "modern calls" 4 200 well::modern;
    "multiplexed calls" 2 300 well::multiplexed;
    "sessions" 4 300 well::session;
    "subscriptions" 2 500 well::subscription;
    "calls with progress" 2 500 well::progress;
    "streams taken up again" 2 500 well::resumed;
    "calls taken back" 2 500 well::cancelled;
    "large messages" 1 2_000 well::large;
    "blocking calls" 2 300 well::blocking;
    "pairs" 2 500 well::pair;
    "slow senders" 2 500 slow::sender;
    "stuck senders" 2 500 slow::stuck_sender;
    "stuck heads" 4 500 slow::stuck_head;
    "slow readers" 1 2_000 slow::reader;
    "stuck readers" 2 2_000 slow::stuck_reader;
    "readers without window" 1 2_000 slow::no_window;
    "gone within a request" 2 200 vanishing::mid_request;
    "gone within a call" 2 200 vanishing::mid_call;
    "gone from a session" 2 1_000 vanishing::session;
    "gone after the handshake" 1 2_000 vanishing::handshake;
    "gone from a stream" 8 1_000 vanishing::stream;
    "gone from subscriptions" 1 1_000 vanishing::subscriptions;
    "gone from a pair" 2 1_000 vanishing::pair;
    "malformed" 2 500 hostile::malformed;
    "foreign sessions" 1 1_000 hostile::sessions;
    "oversized" 1 2_000 hostile::oversized;
    "lying" 1 1_000 hostile::lying;
    "noise" 2 500 hostile::noise;
    "resets" 1 2_000 hostile::resets;
    "floods" 1 15_000 hostile::flood;
};

/// Runs to the end; whether all was well.
pub(crate) fn run(options: &Options) -> Outcome<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, soak(options))
}

async fn soak(options: &Options) -> Outcome<bool> {
    let mut server = Server::start().await?;
    let at_rest = server.size()?;
    let world = Rc::new(World::new(server.address));
    let mut clients = JoinSet::new();
    for scenario in &SCENARIOS {
        for _ in 0..scenario.clients {
            let (world, pause) = (Rc::clone(&world), (scenario.pause * 100 / options.rate).max(1));
            clients.spawn_local(repeat(world, scenario, pause));
        }
    }
    say("  second  answered    wrong   refused       MiB  descriptors  small calls    p50 ms    p99 ms  longest")?;
    let watched = watch(options, &server, &world).await?;
    clients.shutdown().await;
    let mut findings = watched.judge(options, &world);
    // Now everything that was left behind has to go.
    let after = settle(&server, at_rest).await?;
    if after.descriptors > at_rest.descriptors + 2 {
        findings.push(format!("{} descriptors stay open, {} before", after.descriptors, at_rest.descriptors));
    }
    if let Err(problem) = server.end().await {
        findings.push(problem.to_string());
    }
    report(options, &world, &watched, at_rest, after, &findings)?;
    Ok(findings.is_empty())
}

async fn repeat(world: Rc<World>, scenario: &'static Scenario, milliseconds: u64) {
    // Not all at once.
    pause(&world, milliseconds).await;
    loop {
        match timeout(PATIENCE, (scenario.run)(&world)).await {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => world.tally.wrong(format!("{}: {problem}", scenario.name)),
            Err(_) => world.tally.wrong(format!("{}: nothing happened for {PATIENCE:?}", scenario.name)),
        }
        pause(&world, milliseconds).await;
    }
}

/// What was seen over time.
#[derive(Default)]
struct Watched {
    resident: Series,
    descriptors: Series,
}

async fn watch(options: &Options, server: &Server, world: &World) -> Outcome<Watched> {
    let begun = Instant::now();
    let mut watched = Watched::default();
    let mut is_warm = false;
    let every = Duration::from_secs(options.interval);
    for interval in 1..=options.seconds / options.interval {
        let mut least = Size { resident_kib: u64::MAX, descriptors: usize::MAX };
        for look in 1..=LOOKS {
            let elapsed = every * u32::try_from(interval - 1)? + every * look / LOOKS;
            sleep_until(begun + elapsed).await;
            let size = server.size()?;
            least.resident_kib = least.resident_kib.min(size.resident_kib);
            least.descriptors = least.descriptors.min(size.descriptors);
        }
        let second = interval * options.interval;
        let (times, refused) = (world.tally.interval(), world.tally.others().values().sum::<u64>());
        say(&format!(
            "{second:>8} {:>9} {:>8} {refused:>9} {:>9.1} {:>12} {:>12} {:>9.1} {:>9.1} {:>8.1}",
            world.tally.answered(),
            world.tally.wrongs(),
            least.resident_kib as f64 / 1_024.0,
            least.descriptors,
            times.calls,
            millis(times.p50),
            millis(times.p99),
            millis(times.longest),
        ))?;
        if second <= options.warm_up {
            continue;
        }
        if !is_warm {
            // The times of this interval are the first that count.
            is_warm = true;
            world.tally.begin();
        }
        watched.resident.add(second as f64, least.resident_kib as f64);
        watched.descriptors.add(second as f64, least.descriptors as f64);
    }
    Ok(watched)
}

impl Watched {
    fn judge(&self, options: &Options, world: &World) -> Vec<String> {
        let memory = Bound { growth: 4.0 * 1_024.0, part: 0.05, most: options.most_kib };
        let descriptors = Bound { growth: 20.0, part: 0.1, most: 1_000.0 };
        let grown = [
            self.resident.judge("the resident memory in KiB", memory),
            self.descriptors.judge("the number of descriptors", descriptors),
        ];
        let mut findings: Vec<String> = grown.into_iter().flatten().collect();
        let times = world.tally.whole();
        if times.p99 > options.p99 {
            findings.push(format!("the p99 of small calls was {:.1} ms", millis(times.p99)));
        }
        if times.calls == 0 {
            findings.push("no small call was answered".to_owned());
        }
        if world.tally.wrongs() > 0 {
            findings.push(format!("{} answers were wrong, of which the first:", world.tally.wrongs()));
            findings.extend(world.tally.texts());
        }
        findings
    }
}

/// Waits until the server is as it was, for as long as that may take it.
async fn settle(server: &Server, at_rest: Size) -> Outcome<Size> {
    let end = Instant::now() + SESSION_IDLE + 4 * HEADER_TIMEOUT;
    loop {
        let size = server.size()?;
        if size.descriptors <= at_rest.descriptors || Instant::now() > end {
            return Ok(size);
        }
        sleep(Duration::from_secs(1)).await;
    }
}

fn report(
    options: &Options,
    world: &World,
    watched: &Watched,
    before: Size,
    after: Size,
    findings: &[String],
) -> Outcome<()> {
    let mib = |kib: f64| kib / 1_024.0;
    let (rise, mean) = watched.resident.rise();
    let (more, descriptors) = watched.descriptors.rise();
    let times = world.tally.whole();
    say("== report")?;
    say(&format!(
        "- {} s, of which {} to warm up; clients at {} % of their rate: {} of them, in {} kinds",
        options.seconds,
        options.warm_up,
        options.rate,
        SCENARIOS.iter().map(|scenario| scenario.clients).sum::<u64>(),
        SCENARIOS.len()
    ))?;
    say(&format!("- {} valid requests answered rightly, {} wrongly", world.tally.answered(), world.tally.wrongs()))?;
    say(&format!(
        "- small calls: {} judged, p50 {:.1} ms, p99 {:.1} ms (bound {} ms), longest {:.1} ms",
        times.calls,
        millis(times.p50),
        millis(times.p99),
        options.p99.as_millis(),
        millis(times.longest)
    ))?;
    say(&format!(
        "- resident memory: {:.1} MiB at the start, {:.1} in the second half, which rose by {:.2}; at most {:.1}, {:.1} after",
        mib(before.resident_kib as f64),
        mib(mean),
        mib(rise),
        mib(watched.resident.most()),
        mib(after.resident_kib as f64)
    ))?;
    say(&format!(
        "- descriptors: {} at the start, {descriptors:.0} in the second half, which rose by {more:.1}; {} after",
        before.descriptors, after.descriptors
    ))?;
    let others: Vec<String> = world.tally.others().iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    say(&format!("- besides: {}", others.join(", ")))?;
    for finding in findings {
        say(&format!("- FAILED: {finding}"))?;
    }
    if findings.is_empty() {
        say("- passed")?;
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_needs_time_to_be_judged() {
        assert_eq!(Options::parse(&["--seconds", "100"]).unwrap().warm_up, 20);
        for bad in [&["--seconds"][..], &["--seconds", "20"], &["--rate", "0"], &["--warm-up", "50"], &["--fast", "1"]]
        {
            assert!(Options::parse(bad).is_err(), "{bad:?}");
        }
    }
}
