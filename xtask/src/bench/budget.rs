//! Reads, judges by and keeps `bench/budget.toml`.
//!
//! Why here: the figures that must hold are a reviewed file, so that a rise is a line in a diff.
//! Invariants: writing keeps the file's comments and order.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml_edit::{DocumentMut, InlineTable, Item, Value, table};

/// Below this part of the kept figure the budget has room that a later commit could waste unseen.
const WORTH_LOWERING: f64 = 0.95;

/// The counts of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) instructions: f64,
    pub(super) allocations: f64,
}

/// What the budget says of measured figures.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Kept,
    /// Well below what is kept.
    Beaten,
    /// Why the figures are refused.
    Exceeded(String),
    /// Nothing is kept under this name.
    Unknown,
}

/// The file.
pub(super) struct Budget {
    path: PathBuf,
    document: DocumentMut,
}

impl Budget {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let document = text.parse().with_context(|| format!("{} is no TOML", path.display()))?;
        Ok(Self { path: path.to_owned(), document })
    }

    /// The figures under `row`, such as the server's `ours` and `floor`, or the aims `goal` and `stretch`.
    pub(super) fn figures(&self, row: &str, name: &str) -> Option<Figures> {
        let kept = self.document.get(row)?.get(name)?;
        Some(Figures {
            instructions: number(kept.get("instructions")?)?,
            allocations: number(kept.get("allocations")?)?,
        })
    }

    /// # Errors
    ///
    /// If the file names no tolerances.
    pub(super) fn judge(&self, row: &str, name: &str, measured: Figures) -> anyhow::Result<Verdict> {
        let tolerance =
            |key| self.document.get(key).and_then(number).with_context(|| format!("the budget has no {key}"));
        let highest_factor = 1.0 + tolerance("tolerance_percent")? / 100.0;
        let more_allocations = tolerance("tolerance_allocations")?;
        let Some(kept) = self.figures(row, name) else { return Ok(Verdict::Unknown) };
        let mut excess = Vec::new();
        if measured.instructions > kept.instructions * highest_factor {
            excess.push(format!("{:.0} instructions, {:.0} are kept", measured.instructions, kept.instructions));
        }
        if measured.allocations > kept.allocations + more_allocations {
            excess.push(format!("{:.1} allocations, {:.1} are kept", measured.allocations, kept.allocations));
        }
        Ok(if !excess.is_empty() {
            Verdict::Exceeded(excess.join("; "))
        } else if measured.instructions < kept.instructions * WORTH_LOWERING
            || measured.allocations < kept.allocations * WORTH_LOWERING
        {
            Verdict::Beaten
        } else {
            Verdict::Kept
        })
    }

    /// Puts figures in the place of those that were kept.
    pub(super) fn keep(&mut self, row: &str, name: &str, measured: Figures) {
        let mut figures = InlineTable::new();
        figures.insert("instructions", Value::from(measured.instructions.round() as i64));
        figures.insert("allocations", Value::from((measured.allocations * 10.0).round() / 10.0));
        let rows = self.document.entry(row).or_insert_with(table);
        match rows.get_mut(name).and_then(Item::as_value_mut) {
            Some(kept) => {
                let decor = kept.decor().clone();
                *kept = figures.into();
                *kept.decor_mut() = decor;
            }
            None => rows[name] = Item::Value(figures.into()),
        }
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        fs::write(&self.path, self.document.to_string()).with_context(|| format!("{} not written", self.path.display()))
    }
}

fn number(item: &Item) -> Option<f64> {
    item.as_float().or_else(|| item.as_integer().map(|integer| integer as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Budget {
        let text = "# Why.\ntolerance_percent = 2\ntolerance_allocations = 0.5\n\n\
            [echo] # the row\nours = { instructions = 10000, allocations = 20.0 } # kept\n";
        Budget { path: PathBuf::new(), document: text.parse().unwrap() }
    }

    fn judge(instructions: f64, allocations: f64) -> Verdict {
        budget().judge("echo", "ours", Figures { instructions, allocations }).unwrap()
    }

    #[test]
    fn figures_within_the_tolerances_are_kept() {
        assert_eq!(judge(10_200.0, 20.5), Verdict::Kept);
        assert_eq!(judge(9_500.0, 19.0), Verdict::Kept);
    }

    #[test]
    fn figures_above_a_tolerance_are_exceeded() {
        assert_eq!(judge(10_201.0, 20.0), Verdict::Exceeded("10201 instructions, 10000 are kept".to_owned()));
        assert_eq!(judge(9_000.0, 20.6), Verdict::Exceeded("20.6 allocations, 20.0 are kept".to_owned()));
    }

    #[test]
    fn figures_more_than_five_percent_below_ask_for_a_lower_budget() {
        assert_eq!(judge(9_499.0, 20.0), Verdict::Beaten);
        assert_eq!(judge(10_000.0, 18.9), Verdict::Beaten);
    }

    #[test]
    fn a_row_without_kept_figures_is_unknown() {
        let figures = Figures { instructions: 1.0, allocations: 1.0 };
        assert_eq!(budget().judge("echo", "floor", figures).unwrap(), Verdict::Unknown);
        assert_eq!(budget().judge("list", "ours", figures).unwrap(), Verdict::Unknown);
    }

    #[test]
    fn keeping_figures_leaves_comments_and_order() {
        let mut budget = budget();
        budget.keep("echo", "ours", Figures { instructions: 9_000.4, allocations: 19.04 });
        budget.keep("echo", "floor", Figures { instructions: 8_000.0, allocations: 14.0 });
        assert_eq!(
            budget.document.to_string(),
            "# Why.\ntolerance_percent = 2\ntolerance_allocations = 0.5\n\n\
             [echo] # the row\nours = { instructions = 9000, allocations = 19.0 } # kept\n\
             floor = { instructions = 8000, allocations = 14.0 }\n"
        );
    }
}
