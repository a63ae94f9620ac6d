//! `cargo xtask tidy`: the rules of ARCHITECTURE.md that a machine can check.
//!
//! Why here: a rule that nothing checks is a wish. `cargo test` runs the same checks, so they are heard early.
//! Invariants: all violations are listed, each with its place and what is right; an exception stands in `xtask/tidy.toml`
//! with its reason, and one that excuses nothing is a violation as well.

mod bans;
mod era;
mod exceptions;
mod graph;
mod headers;
mod long;
mod machine;
mod members;
mod metadata;
mod pure;
mod reasons;
mod scan;
mod spawns;
mod stubs;
mod tree;

use std::fmt;

use tree::Tree;

use crate::{Reported, options, refuse_leftovers, root};

/// A place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    file: String,
    /// From 1.
    line: usize,
    /// What is wrong and what is right.
    message: String,
}

impl Finding {
    fn new(file: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// One rule, or a few that are about the same thing.
struct Check {
    name: &'static str,
    run: fn(&Tree) -> Vec<Finding>,
}

const CHECKS: [Check; 10] = [
    Check { name: "graph", run: graph::check },
    Check { name: "reasons", run: reasons::check },
    Check { name: "members", run: members::check },
    Check { name: "era", run: era::check },
    Check { name: "headers", run: headers::check },
    Check { name: "pure", run: pure::check },
    Check { name: "spawns", run: spawns::check },
    Check { name: "stubs", run: stubs::check },
    Check { name: "bans", run: bans::check },
    Check { name: "machine", run: machine::check },
];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    refuse_leftovers(options(arguments))?;
    let tree = Tree::read(&root())?;
    for note in long::notes(&tree) {
        println!("note: {note}");
    }
    let broken = violations(&tree);
    broken.iter().for_each(|line| println!("{line}"));
    println!("tidy: {} checks, {} files, {} violations", CHECKS.len(), tree.files.len(), broken.len());
    if broken.is_empty() { Ok(()) } else { Err(Reported.into()) }
}

/// What all checks say, as lines in the order of the checks and then of the files.
fn violations(tree: &Tree) -> Vec<String> {
    let lines = CHECKS.iter().flat_map(|check| {
        let mut findings = (check.run)(tree);
        findings.sort();
        findings.into_iter().map(|finding| format!("{finding} [{}]", check.name))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let broken = violations(&Tree::read(&root()).unwrap());
        assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
    }

    #[test]
    fn a_violation_names_its_place_and_its_check() {
        let file = "crates/mcp-core/src/protocol/page.rs";
        let tree =
            Tree::of(&[(file, "//! Pages.\n//! Spec: x\nasync fn a() {}\nfn b() {}\nfn c() {}\nfn d() {}\n")], "");
        let broken = violations(&tree);
        assert!(
            broken.iter().any(|line| line.starts_with(&format!("{file}:3: ")) && line.ends_with(" [pure]")),
            "{broken:?}"
        );
    }
}
