//! Each dependency of a library has its reason beside it.
//!
//! Why here: a dependency costs every user; whoever adds one says what it is for.
//! Invariants: our own crates and those that only tests use need no reason.

use super::Finding;
use super::tree::{Source, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| file.is_in("crates") && file.name() == "Cargo.toml");
    manifests.flat_map(|manifest| in_manifest(tree, manifest)).collect()
}

fn in_manifest(tree: &Tree, manifest: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut listing, mut explained) = (false, false);
    for (index, line) in manifest.text.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let kind = section.rsplit('.').next().unwrap_or_default();
            listing = matches!(kind, "dependencies" | "build-dependencies");
        } else if listing && line.contains('=') && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            let ours = tree.packages.iter().any(|package| package.name == name);
            if !ours && !explained && !line.contains(" # ") {
                let message = format!("{name} has no reason: say in a comment above it what it is for");
                findings.push(manifest.finding(index + 1, message));
            }
        }
        explained = line.starts_with('#');
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_without_a_comment_above_or_beside_it_is_reported() {
        let manifest = "\
[package]
name = \"a\"

[dependencies]
# Why.
bytes.workspace = true
serde = { version = \"1\" }
http = \"1\" # Types.
# Why once,

tokio = \"1\"

[dev-dependencies]
proptest = \"1\"

[target.'cfg(unix)'.dependencies]
rustix = \"1\"
";
        let tree = Tree::of(&[("crates/a/Cargo.toml", manifest), ("bench/b/Cargo.toml", manifest)], "");
        let lines: Vec<usize> = check(&tree).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [7, 11, 17]);
    }
}
