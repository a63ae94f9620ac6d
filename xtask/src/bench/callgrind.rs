//! Reads the files callgrind writes: instructions by function, and how often the allocator was called.
//!
//! Why here: one run gives both counts, and the difference of two files leaves what the requests cost.
//! Invariants: expects files written with `--compress-strings=no --compress-pos=no`.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};

/// The functions of the system allocator that hand out memory.
const ALLOCATORS: [&str; 6] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"];

/// The counts of one run.
pub(super) struct Profile {
    /// User-space instructions, all threads.
    pub(super) instructions: u64,
    /// Calls of the system allocator that ask for memory.
    pub(super) allocations: u64,
    /// Each function's own instructions, without those of the functions it calls.
    pub(super) by_function: BTreeMap<String, u64>,
}

impl Profile {
    /// Reads the text of a callgrind file.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut profile = Self { instructions: 0, allocations: 0, by_function: BTreeMap::new() };
        let (mut function, mut called, mut is_call_cost) = (String::new(), "", false);
        let mut total = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = plain_name(name).to_owned();
            } else if let Some(name) = line.strip_prefix("cfn=") {
                called = plain_name(name);
            } else if let Some(call) = line.strip_prefix("calls=") {
                let times: u64 = first_number(call).with_context(|| format!("a call without a count: {line}"))?;
                if ALLOCATORS.contains(&called) {
                    profile.allocations += times;
                }
                // The line after it has what the called functions cost, which they count themselves.
                is_call_cost = true;
            } else if let Some(sum) = line.strip_prefix("totals:") {
                total = first_number(sum);
            } else if line.starts_with(|first: char| first.is_ascii_digit()) && !std::mem::take(&mut is_call_cost) {
                let cost = line.split_once(' ').and_then(|(_, cost)| first_number(cost)).unwrap_or(0);
                profile.instructions += cost;
                *profile.by_function.entry(function.clone()).or_default() += cost;
            }
        }
        let total = total.context("callgrind's file ends without its totals")?;
        ensure!(
            total == profile.instructions,
            "read {} instructions of callgrind's file, which counts {total}",
            profile.instructions
        );
        Ok(profile)
    }
}

/// Without the mark callgrind gives to a function that calls itself.
fn plain_name(name: &str) -> &str {
    match name.rsplit_once('\'') {
        Some((plain, depth)) if !depth.is_empty() && depth.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    }
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "version: 1\ncreator: callgrind\npositions: line\nevents: Ir\nsummary: 46\n\n\
        ob=/bin/server\nfl=main.rs\nfn=main\n10 5\n11 1\ncob=libc.so\ncfi=malloc.c\ncfn=malloc\ncalls=3 100\n11 30\n\
        fi=vec.rs\n20 4\ncfn=main'2\ncalls=1 10\n12 6\n\nfn=main'2\n10 6\n\n\
        ob=libc.so\nfl=malloc.c\nfn=malloc\n100 30\n\ntotals: 46\n";

    #[test]
    fn self_costs_exclude_those_of_called_functions() {
        let profile = Profile::parse(FILE).unwrap();
        assert_eq!(profile.instructions, 46);
        assert_eq!(profile.by_function["main"], 16);
        assert_eq!(profile.by_function["malloc"], 30);
    }

    #[test]
    fn calls_of_the_allocator_are_counted() {
        assert_eq!(Profile::parse(FILE).unwrap().allocations, 3);
    }

    #[test]
    fn a_file_that_does_not_add_up_is_refused() {
        assert!(Profile::parse(&FILE.replace("totals: 46", "totals: 47")).is_err());
        assert!(Profile::parse(&FILE.replace("totals: 46", "")).is_err());
    }
}
