//! Each module says first what its one job is, and code of the protocol which page it follows.
//!
//! Why here: a reader decides by the first line whether this is the file.
//! Invariants: tests of a module in a file of their own cite no page; the module does.

use super::Finding;
use super::tree::{Tree, View};

/// Folders whose files begin with a header.
const WITH_HEADER: [&str; 6] =
    ["crates/*/src", "xtask/src", "tests/src", "tests/everything-server/src", "bench/*/src", "examples/*/src"];

/// Folders whose files follow the specification.
const WITH_SPEC: [&str; 3] =
    ["crates/mcp-core/src/protocol", "crates/mcp-core/src/methods", "crates/mcp-wire/src/types"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let within = |folders: &[&str]| folders.iter().any(|folder| file.is_in(folder));
        if within(&WITH_HEADER) && !file.text.starts_with("//! ") {
            findings.push(file.finding(1, "the first line must be `//! <the one job>.`"));
        }
        if within(&WITH_SPEC) && file.name() != "tests.rs" {
            let cites = file
                .lines(View::Text)
                .any(|(_, line)| line.strip_prefix("//! Spec: ").is_some_and(|citation| !citation.trim().is_empty()));
            if !cites && !tree.exceptions.cover("no-spec", &file.path, "") {
                let message =
                    "the header must have `//! Spec: <revision> <page>, \"<section>\"`, or [[no-spec]] a reason";
                findings.push(file.finding(1, message));
            }
        }
    }
    findings.extend(tree.exceptions.needless("no-spec"));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str, exceptions: &str) -> usize {
        check(&Tree::of(&[(path, text)], exceptions)).len()
    }

    #[test]
    fn a_file_without_its_job_in_the_first_line_is_reported() {
        for path in ["crates/mcp-core/src/a.rs", "xtask/src/b/c.rs", "tests/src/d.rs", "bench/load/src/main.rs"] {
            assert_eq!(count(path, "//! A job.\n", ""), 0, "{path}");
            for text in ["fn a() {}\n", "\n//! A job.\n", "//!\n"] {
                assert_eq!(count(path, text, ""), 1, "{path} {text}");
            }
        }
        assert_eq!(count("crates/mcp-core/tests/a.rs", "fn a() {}\n", ""), 0);
    }

    #[test]
    fn code_of_the_protocol_cites_its_page_or_has_an_entry() {
        let file = "crates/mcp-core/src/protocol/page.rs";
        let entry = format!("[[no-spec]]\nfile = \"{file}\"\nreason = \"x\"\n");
        assert_eq!(count(file, "//! A job.\n", ""), 1);
        assert_eq!(count(file, "//! A job.\n//! Spec: \n", ""), 1);
        assert_eq!(count(file, "//! A job.\n", &entry), 0);
        assert_eq!(count(file, "//! A job.\n//! Spec: 2026-07-28 pagination\n", ""), 0);
        assert_eq!(count(file, "//! A job.\n//! Spec: 2026-07-28 pagination\n", &entry), 1);
        assert_eq!(count("crates/mcp-core/src/protocol/page/tests.rs", "//! A job.\n", ""), 0);
    }
}
