//! Reads the tables `strace -c` writes.
//!
//! Why here: system calls are the half of a request's cost that callgrind does not see.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::ensure;

/// How often each system call was made in one run.
pub(super) struct Calls(BTreeMap<String, u64>);

impl Calls {
    /// Reads the text of `strace -c`'s table: `% time, seconds, usecs/call, calls, [errors,] syscall`.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut calls = BTreeMap::new();
        for line in text.lines() {
            let columns: Vec<&str> = line.split_whitespace().collect();
            if let [_, _, _, times, .., name] = columns[..]
                && let Ok(times) = times.parse()
                && name != "total"
            {
                calls.insert(name.to_owned(), times);
            }
        }
        ensure!(!calls.is_empty(), "strace counted no system call");
        Ok(Self(calls))
    }

    /// The calls per request and, in brackets, the three most frequent; `self` is the longer run.
    pub(super) fn per_request(&self, shorter: &Self, requests: f64) -> String {
        let mut each: Vec<(f64, &str)> = Vec::new();
        for (name, times) in &self.0 {
            let before = shorter.0.get(name).copied().unwrap_or(0);
            each.push(((*times as f64 - before as f64) / requests, name));
        }
        each.sort_by(|left, right| right.0.total_cmp(&left.0));
        let total: f64 = each.iter().map(|(times, _)| times).sum();
        let mut text = format!("{total:.2} (");
        for (index, (times, name)) in each.iter().take(3).filter(|(times, _)| *times >= 0.005).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let _infallible = write!(text, "{comma}{name} {times:.2}");
        }
        text.push(')');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &str) -> Calls {
        Calls::parse(&format!(
            "% time     seconds  usecs/call     calls    errors syscall\n\
             ------ ----------- ----------- --------- --------- ----------------\n{rows}\
             ------ ----------- ----------- --------- --------- ----------------\n\
             100.00    0.001000           1         9         2 total\n"
        ))
        .unwrap()
    }

    #[test]
    fn the_difference_of_two_runs_is_given_per_request() {
        let shorter = table(" 60.00    0.000600           1        10         1 recvfrom\n 1.0 0.1 1 7 brk\n");
        let longer = table(
            " 60.00    0.000600           1        30         1 recvfrom\n 1.0 0.1 1 7 brk\n 1.0 0.1 1 5 writev\n",
        );
        assert_eq!(longer.per_request(&shorter, 10.0), "2.50 (recvfrom 2.00, writev 0.50)");
    }

    #[test]
    fn a_text_without_a_table_is_refused() {
        assert!(Calls::parse("strace: ptrace: Operation not permitted\n").is_err());
    }
}
