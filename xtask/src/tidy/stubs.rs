//! Nothing is unfinished: no empty files, no code that is still to come, no test that does not run.
//!
//! Why here: what is planned stands in ARCHITECTURE.md; what is in the code works.
//! Invariants: no exceptions.

use super::Finding;
use super::scan::stands_in;
use super::tree::{Source, Tree, View};

/// Lines of code below which a file is not worth being one.
const FEWEST: usize = 5;

const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "#[ignore"];

const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let code = file.lines(View::Code).filter(|(_, code)| !code.trim().is_empty());
        let lines = code.count();
        if lines < FEWEST && !only_declares(file) {
            let message = format!("{lines} lines of code are too few for a file: write it, or merge it");
            findings.push(file.finding(1, message));
        }
        for (line, code) in file.lines(View::Code) {
            if let Some(word) = UNFINISHED.iter().find(|word| code.contains(*word)) {
                findings.push(file.finding(line, format!("`{word}` is unfinished: finish it, or leave it out")));
            }
        }
    }
    for file in &tree.files {
        let view = if file.is_rust() { View::Comments } else { View::Text };
        let written = ["rs", "md", "toml", "txt"].iter().any(|extension| file.has_extension(extension));
        for (line, text) in file.lines(view).filter(|_| written) {
            if let Some(mark) = MARKS.iter().find(|mark| stands_in(text, mark)) {
                findings.push(file.finding(line, format!("{mark}: do it, or say it under \"Rooms kept free\"")));
            }
        }
    }
    findings
}

/// Whether the file is there for the modules it names.
fn only_declares(file: &Source) -> bool {
    let declares =
        |line: &str| ["mod ", "pub mod ", "pub(crate) mod ", "pub use ", "#"].iter().any(|word| line.starts_with(word));
    matches!(file.name(), "lib.rs" | "main.rs" | "mod.rs")
        && file.text.contains("mod ")
        && file.lines(View::Code).map(|(_, line)| line.trim()).all(|line| line.is_empty() || declares(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)], "")).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_file_with_hardly_any_code_is_reported_unless_it_declares_modules() {
        let short = "//! A job.\n\n// Why.\n/* And\n more. */\nfn a() {}\n";
        assert_eq!(lines("crates/a/src/b.rs", short), [1]);
        assert_eq!(lines("crates/a/src/lib.rs", short), [1]);
        assert_eq!(lines("crates/a/src/lib.rs", "//! A job.\n\nmod b;\npub use b::B;\n"), [0; 0]);
        assert_eq!(lines("crates/a/src/b.rs", "//! A job.\nmod b;\n"), [1]);
        assert_eq!(lines("crates/a/src/mod.rs", "//! A job.\n"), [1]);
    }

    #[test]
    fn unfinished_code_and_marks_are_reported_in_tests_as_well() {
        let text = "\
fn a() { todo!() }
fn b() { unimplemented!(\"x\") }
#[ignore = \"slow\"]
fn c() { d(\"todo!\", \"TODO\") }
// TODO: more
/// FIXME
fn e() {} // XXXX
";
        for path in ["crates/a/src/b.rs", "tests/tests/behaviour/b.rs"] {
            assert_eq!(lines(path, text), [1, 2, 3, 5, 6], "{path}");
        }
        assert_eq!(lines("README.md", "text\nTODO\n"), [2]);
    }
}
