//! `cargo xtask auth-timing`: whether the time of a refusal tells unknown credentials from wrong ones.
//!
//! Why here: what a measurement shows is judged by a rule, not by looking at it; mcp-auth's `benches/timing.rs` measures.
//! Invariants: fails only if two runs in a row say that the times differ: of honest runs one in a hundred does.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::{Reported, cargo, options, refuse_leftovers};

/// Below this, samples of one distribution would differ as much in one of a hundred runs.
const LEAST: f64 = 0.01;
/// Pairs of samples that a run has to have, so that silence does not pass.
const PAIRS: usize = 2000;

/// What unknown and what wrong credentials took, by provider.
type Samples = BTreeMap<String, [Vec<u64>; 2]>;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    refuse_leftovers(options(arguments))?;
    let first = measured()?;
    let suspects = judged(&first)?;
    if suspects.is_empty() {
        return Ok(());
    }
    println!("once more, for what differed: {}", suspects.join(", "));
    let again = judged(&measured()?)?;
    if suspects.iter().any(|name| again.contains(name)) { Err(Reported.into()) } else { Ok(()) }
}

fn measured() -> anyhow::Result<Samples> {
    let mut command: Command = cargo();
    command.args(["bench", "--quiet", "--package", "mcp-auth", "--bench", "timing"]).stderr(Stdio::inherit());
    let output = command.output().context("cargo could not be started")?;
    ensure!(output.status.success(), "the measurement failed: {}", output.status);
    read(&String::from_utf8(output.stdout).context("samples are text")?)
}

/// Lines of a name and two numbers, with tabs between.
fn read(text: &str) -> anyhow::Result<Samples> {
    let mut samples = Samples::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, unknown, wrong] = *fields else { anyhow::bail!("no sample: {line}") };
        let both = samples.entry(name.to_owned()).or_default();
        for (kind, nanoseconds) in both.iter_mut().zip([unknown, wrong]) {
            kind.push(nanoseconds.parse().with_context(|| format!("no sample: {line}"))?);
        }
    }
    Ok(samples)
}

/// Prints what the samples say; the names of those whose kinds differ.
fn judged(samples: &Samples) -> anyhow::Result<Vec<String>> {
    ensure!(!samples.is_empty(), "nothing was measured");
    println!("{:16} {:>6} {:>14} {:>14} {:>8} {:>8}", "provider", "pairs", "unknown (ns)", "wrong (ns)", "D", "p");
    let mut suspects = Vec::new();
    for (name, [unknown, wrong]) in samples {
        ensure!(unknown.len() >= PAIRS, "{name}: {} pairs instead of {PAIRS}", unknown.len());
        let (unknown, wrong) = (sorted(unknown), sorted(wrong));
        let (distance, p) = kolmogorov_smirnov(&unknown, &wrong);
        let verdict = if p > LEAST { "" } else { "  DIFFERS" };
        let medians = [&unknown, &wrong].map(|sorted| sorted[sorted.len() / 2]);
        println!(
            "{name:16} {:>6} {:>14} {:>14} {distance:>8.4} {p:>8.4}{verdict}",
            unknown.len(),
            medians[0],
            medians[1]
        );
        if p <= LEAST {
            suspects.push(name.clone());
        }
    }
    println!("auth-timing: {} of {} providers refuse alike", samples.len() - suspects.len(), samples.len());
    Ok(suspects)
}

fn sorted(samples: &[u64]) -> Vec<u64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted
}

/// The greatest distance between the two distributions, and how likely one as great is if they are the same (the
/// asymptotic formula of the two-sample test, with Stephens' correction).
fn kolmogorov_smirnov(first: &[u64], second: &[u64]) -> (f64, f64) {
    let share = |sorted: &[u64], value: u64| count(sorted.partition_point(|each| *each <= value)) / count(sorted.len());
    let values = first.iter().chain(second);
    let distance = values.map(|value| (share(first, *value) - share(second, *value)).abs()).fold(0.0, f64::max);
    let size = (count(first.len()) * count(second.len()) / count(first.len() + second.len())).sqrt();
    let lambda = (size + 0.12 + 0.11 / size) * distance;
    // The series does not converge near zero, where the answer is one.
    if lambda < 0.2 {
        return (distance, 1.0);
    }
    let term = |index: u32| {
        let index = f64::from(index);
        (-2.0 * index * index * lambda * lambda).exp()
    };
    let sum: f64 = (1..=100).map(|index| if index % 2 == 1 { term(index) } else { -term(index) }).sum();
    (distance, (2.0 * sum).clamp(0.0, 1.0))
}

fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without an order, from `seed`.
    fn noise(seed: u64, length: usize) -> Vec<u64> {
        let mut state = seed;
        let next = || {
            // Knuth's generator: its upper bits will do.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 44
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    #[test]
    fn samples_of_one_distribution_do_not_differ() {
        let (first, second) = (sorted(&noise(1, 2000)), sorted(&noise(2, 2000)));
        assert!(kolmogorov_smirnov(&first, &second).1 > LEAST);
        assert_eq!(kolmogorov_smirnov(&first, &first), (0.0, 1.0));
    }

    #[test]
    fn a_shift_of_a_tenth_of_the_spread_is_seen() {
        let (first, second) = (noise(1, 2000), noise(2, 2000));
        let shifted: Vec<u64> = second.iter().map(|value| value + (1 << 20) / 10).collect();
        let (distance, p) = kolmogorov_smirnov(&sorted(&first), &sorted(&shifted));
        assert!((0.08..0.15).contains(&distance) && p < 1e-6, "{distance} {p}");
    }

    #[test]
    fn the_probability_is_that_of_the_tables() {
        // The critical distances of two samples of 2000 at 5 % and 1 % are 1.358 and 1.628 over the root of 1000.
        for (critical, wanted) in [(1.358_f64, 0.05), (1.628, 0.01)] {
            let far = critical / 1000_f64.sqrt() * 2000.0;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count below 2000")]
            let far = far.round() as u64;
            let first: Vec<u64> = (0..2000).collect();
            let second: Vec<u64> = (far..2000 + far).collect();
            let (_, p) = kolmogorov_smirnov(&first, &second);
            assert!((p - wanted).abs() < wanted / 10.0, "{p} instead of {wanted}");
        }
    }

    #[test]
    fn what_is_no_sample_or_too_little_does_not_pass() {
        assert_eq!(read("a\t1\t2\na\t3\t4\n").unwrap()["a"], [vec![1, 3], vec![2, 4]]);
        for text in ["a\t1\n", "a\t1\tx\n", "running 0 tests\n"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(judged(&read("a\t1\t2\n").unwrap()).is_err());
        assert!(judged(&Samples::new()).is_err());
    }
}
