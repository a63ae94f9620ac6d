//! `bench/TASKS.md`: what was measured of tasks, a section for each command.
//!
//! Why here: figures are worth something beside their command, their commit and their day.
//! Invariants: writing one section leaves the others as they are.

use std::fs;

use anyhow::Context as _;

use crate::night::{commit, today};
use crate::root;

const REPORT: &str = "bench/TASKS.md";
const HEAD: &str = "# Tasks, measured\n";

/// Replaces the section with this title.
pub(crate) fn write(title: &str, command: &str, text: &str) -> anyhow::Result<()> {
    let path = root().join(REPORT);
    let before = fs::read_to_string(&path).unwrap_or_default();
    let (day, commit) = (today()?, commit()?);
    let section =
        format!("## {title}\n\n`cargo xtask {command} --write`, {day}, at commit {commit}:\n\n```text\n{text}\n```\n");
    fs::write(&path, with_section(&before, title, &section)).with_context(|| format!("cannot write {REPORT}"))
}

fn with_section(before: &str, title: &str, section: &str) -> String {
    let mut sections: Vec<String> =
        before.split("\n## ").skip(1).map(|rest| format!("## {}\n", rest.trim_end())).collect();
    match sections.iter_mut().find(|old| old.starts_with(&format!("## {title}\n"))) {
        Some(old) => section.clone_into(old),
        None => sections.push(section.to_owned()),
    }
    let all: Vec<&str> = sections.iter().map(String::as_str).collect();
    format!("{HEAD}\n{}", all.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_section_is_replaced_and_others_stay() {
        let one = with_section("", "One", "## One\n\n1\n");
        assert_eq!(one, "# Tasks, measured\n\n## One\n\n1\n");
        let both = with_section(&one, "Two", "## Two\n\n2\n");
        assert_eq!(both, "# Tasks, measured\n\n## One\n\n1\n\n## Two\n\n2\n");
        let changed = with_section(&both, "One", "## One\n\n3\n");
        assert_eq!(changed, "# Tasks, measured\n\n## One\n\n3\n\n## Two\n\n2\n");
    }
}
