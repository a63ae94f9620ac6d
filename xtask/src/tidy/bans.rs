//! What the code never has: lints switched off without a reason, and state of the process.
//!
//! Why here: clippy can be told to look away, so something else looks at what it was told.
//! Invariants: a `static` of a library stands in `tidy.toml` and holds nothing that changes.

use super::Finding;
use super::scan::{begins_in, is_word, stands_in};
use super::tree::{Source, Tree, View};

const STATE: [&str; 3] = ["thread_local!", "task_local!", "lazy_static!"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        attributes(file, &mut findings);
        if file.is_in("crates/*/src") {
            statics(tree, file, &mut findings);
        }
    }
    findings.extend(tree.exceptions.needless("static"));
    findings
}

fn attributes(file: &Source, findings: &mut Vec<Finding>) {
    let lines: Vec<(usize, &str)> = file.lines(View::Code).collect();
    for (index, (line, code)) in lines.iter().enumerate() {
        if !begins_in(code, "#[") && !begins_in(code, "#![") && !code.trim_start().starts_with("allow(") {
            continue;
        }
        if begins_in(code, "allow(") {
            findings.push(file.finding(*line, "`allow` hides a lint for good: use #[expect(.., reason = \"..\")]"));
        }
        if begins_in(code, "expect(") {
            // An attribute may have several lines.
            let mut attribute = lines[index..].iter().map(|(_, code)| *code);
            let closed = attribute.clone().position(|code| code.contains(")]")).unwrap_or_default();
            if !attribute.by_ref().take(closed + 1).any(|code| stands_in(code, "reason")) {
                findings.push(file.finding(*line, "`expect` needs its reason: #[expect(.., reason = \"..\")]"));
            }
        }
    }
}

fn statics(tree: &Tree, file: &Source, findings: &mut Vec<Finding>) {
    for (line, code) in file.shipped(View::Code) {
        if let Some(word) = STATE.iter().find(|word| begins_in(code, word)) {
            findings.push(file.finding(line, format!("`{word}` is state of the process: keep it in a value")));
        }
        if let Some(name) = static_name(code).filter(|name| !tree.exceptions.cover("static", &file.path, name)) {
            let message = format!("static {name}: state belongs in a value; a constant needs its [[static]]");
            findings.push(file.finding(line, message));
        }
    }
}

/// The name of the item, if the line begins one: `static` also stands in bounds and lifetimes.
fn static_name(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("static ")?;
    let before = before.trim();
    if !(before.is_empty() || before.starts_with("pub")) {
        return None;
    }
    let after = after.strip_prefix("mut ").or_else(|| after.strip_prefix("ref ")).unwrap_or(after);
    let name = after.split(|c| !is_word(c)).next()?;
    after[name.len()..].trim_start().starts_with(':').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/mcp-core/src/a.rs";

    fn lines(text: &str, exceptions: &str) -> Vec<usize> {
        check(&Tree::of(&[(FILE, text)], exceptions)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_lint_is_expected_with_a_reason_and_never_allowed() {
        let text = "\
#[allow(dead_code)]
#![allow(clippy::panic, reason = \"x\")]
#[cfg_attr(test, allow(dead_code))]
#[expect(dead_code)]
#[expect(dead_code, reason = \"x\")]
#[expect(
    dead_code,
    reason = \"x\"
)]
#[expect(
    dead_code
)]
fn allow(a: u8) { b.expect(\"#[allow(c)]\"); }
#[cfg(test)]
#[allow(dead_code)]
mod tests {}
";
        assert_eq!(lines(text, ""), [1, 2, 3, 4, 10, 15]);
    }

    #[test]
    fn a_static_of_a_library_needs_an_entry() {
        let text = "\
static A: AtomicU64 = AtomicU64::new(0);
pub(crate) static B: LazyLock<u8> = LazyLock::new(c);
    static mut D: u8 = 0;
thread_local! { }
fn e(f: &'static str) -> &'static [u8] { g }
const H: &'static str = i;
";
        assert_eq!(lines(text, ""), [1, 2, 3, 4]);
        let entry = |name: &str| format!("[[static]]\nfile = \"{FILE}\"\nname = \"{name}\"\nreason = \"x\"\n");
        assert_eq!(lines(text, &entry("A")), [2, 3, 4]);
        assert_eq!(lines("fn a() {}\n", &entry("A")), [1]);
        assert!(check(&Tree::of(&[("xtask/src/a.rs", "static A: u8 = 0;\n")], "")).is_empty());
    }
}
