//! What the operating system says of the measured process, and the time.
//!
//! Why here: the server cannot say it itself without being changed by it.
//! Invariants: reads `/proc`, so it measures on Linux alone.

use std::fs;
use std::time::{Duration, Instant};

use crate::Outcome;

/// The clock ticks of `/proc/PID/stat`: Linux has 100 a second there on every machine it runs on.
const TICK: Duration = Duration::from_millis(10);

/// A process that is looked at from outside.
#[derive(Clone, Copy)]
pub(crate) struct Server(pub(crate) u32);

/// The time a process has spent on processors, all threads.
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

/// The memory of a process in KiB.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    /// As `resident`, with shared pages counted by their share.
    pub(crate) proportional: u64,
}

impl Server {
    pub(crate) fn cpu(self) -> Outcome<Cpu> {
        parse_cpu(&fs::read_to_string(format!("/proc/{}/stat", self.0))?)
    }

    /// The most resident memory in KiB since [`Self::forget_peak`].
    pub(crate) fn peak(self) -> Outcome<u64> {
        parse_size("VmHWM:", &fs::read_to_string(format!("/proc/{}/status", self.0))?)
    }

    /// From now on the peak is that of what comes.
    pub(crate) fn forget_peak(self) -> Outcome<()> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.0), "5")?)
    }

    pub(crate) fn memory(self) -> Outcome<Memory> {
        parse_memory(&fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0))?)
    }
}

/// Now.
#[expect(clippy::disallowed_methods, reason = "the client has no runtime, and what it measures runs in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

fn parse_cpu(stat: &str) -> Outcome<Cpu> {
    // The name, in brackets, may hold anything; user and system time are the 12th and 13th field behind it.
    let (_, fields) = stat.rsplit_once(')').ok_or("no process was described")?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u32>);
    let mut next = || Outcome::Ok(TICK * ticks.next().ok_or("the process has no times")??);
    Ok(Cpu { user: next()?, system: next()? })
}

fn parse_memory(rollup: &str) -> Outcome<Memory> {
    Ok(Memory { resident: parse_size("Rss:", rollup)?, proportional: parse_size("Pss:", rollup)? })
}

fn parse_size(name: &str, lines: &str) -> Outcome<u64> {
    let value = lines.lines().find_map(|line| line.strip_prefix(name)).ok_or("a size is missing")?;
    Ok(value.trim().trim_end_matches("kB").trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let cpu = parse_cpu("7 (a) b (c)) S 1 7 7 0 -1 4194560 900 0 0 0 150 25 0 0 20 0 1 0 5").unwrap();
        assert_eq!((cpu.user, cpu.system), (Duration::from_millis(1_500), Duration::from_millis(250)));
        assert!(parse_cpu("7 (a) S 1 2").is_err());
    }

    #[test]
    fn sizes_are_read_by_their_names() {
        let memory =
            parse_memory("00400000-7fff ---p [rollup]\nRss:      1234 kB\nPss:       999 kB\nPss_Dirty: 7 kB\n");
        let memory = memory.unwrap();
        assert_eq!((memory.resident, memory.proportional), (1_234, 999));
        assert!(parse_memory("Rss: 1 kB\n").is_err());
    }
}
