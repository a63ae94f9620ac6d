//! Who starts tasks, threads and processes.
//!
//! Why here: what runs by itself needs an owner who ends it, and that is easier to review as a list.
//! Invariants: a file is listed with what it starts and who ends that; tests are free.

use super::Finding;
use super::scan::begins_in;
use super::tree::{Tree, View};

const STARTS: [&str; 5] = ["spawn(", "spawn_blocking", "spawn_local", "thread::Builder", "Command::new"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (line, code) in file.shipped(View::Code) {
            let started = STARTS.iter().find(|word| begins_in(code, word));
            if let Some(word) = started.filter(|_| !tree.exceptions.cover("spawn", &file.path, "")) {
                let message = format!("`{word}`, but no [[spawn]] says what {} starts and who ends it", file.path);
                findings.push(file.finding(line, message));
            }
        }
    }
    findings.extend(tree.exceptions.needless("spawn"));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/mcp-core/src/engine/worker.rs";
    const ENTRY: &str = "[[spawn]]\nfile = \"crates/mcp-core/src/engine/worker.rs\"\nwhat = \"x\"\nends = \"y\"\n";

    #[test]
    fn a_file_that_starts_something_needs_an_entry() {
        let starting = [
            "tokio::spawn(work)",
            "self.running.spawn(work)",
            "std::thread::spawn(work)",
            "task::spawn_blocking(work)",
            "thread::Builder::new()",
            "std::process::Command::new(program)",
        ];
        for code in starting {
            let text = format!("fn a() {{\n    {code}\n}}\n");
            let found = check(&Tree::of(&[(FILE, &text)], ""));
            assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2], "{code}");
            assert!(check(&Tree::of(&[(FILE, &text)], ENTRY)).is_empty(), "{code}");
        }
    }

    #[test]
    fn comments_and_tests_may_start_what_they_like_and_a_needless_entry_is_reported() {
        let text = "// spawn(x)\nfn respawn(a: u8) {}\n#[cfg(test)]\nmod tests {\n    fn b() { spawn(c) }\n}\n";
        assert!(check(&Tree::of(&[(FILE, text)], "")).is_empty());
        assert_eq!(check(&Tree::of(&[(FILE, text)], ENTRY)).len(), 1);
    }
}
