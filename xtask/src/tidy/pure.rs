//! The pure folders wait for nothing, start nothing and read no clock.
//!
//! Why here: what is decided there can be tested as a table only while that is true.
//! Invariants: no exceptions.

use super::Finding;
use super::tree::{Tree, View};

const FOLDERS: [&str; 2] = ["crates/mcp-core/src/protocol", "crates/mcp-http/src/codec"];

const FORBIDDEN: [&str; 7] = ["async ", ".await", "tokio::", "tokio_util::", "spawn", "Instant::now", "SystemTime"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let Some(folder) = FOLDERS.iter().find(|folder| file.is_in(folder)) else { continue };
        for (line, code) in file.shipped(View::Code) {
            if let Some(found) = FORBIDDEN.iter().find(|word| code.contains(*word)) {
                let message = format!("`{}` in {folder}, which is pure: take it as a parameter", found.trim_end());
                findings.push(file.finding(line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_starting_and_clocks_are_reported_in_the_pure_folders_alone() {
        let text = "\
// No async code, no spawn.
async fn a() {}
fn b() { c.await }
use tokio::sync;
fn d() { spawn(e) }
fn f() { Instant::now() }
fn g() -> std::time::SystemTime { now }
fn h(now: Duration) {}
#[cfg(test)]
mod tests {
    async fn i() {}
}
";
        for folder in FOLDERS {
            let tree = Tree::of(&[(&format!("{folder}/deep/a.rs"), text)], "");
            let lines: Vec<usize> = check(&tree).iter().map(|finding| finding.line).collect();
            assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
        }
        assert!(check(&Tree::of(&[("crates/mcp-core/src/engine/a.rs", text)], "")).is_empty());
    }
}
