//! Nothing in the repository speaks of the machine that it was written on.
//!
//! Why here: a path or a mirror of one machine works on no other, and says more than a reader should know.
//! Invariants: tests may name folders of their own making; texts beside the code may not.

use super::Finding;
use super::scan::begins_in;
use super::tree::{Tree, View};

/// Folders of a machine, written apart so that this line is not one of them.
const FOLDERS: [&str; 4] = [concat!("/wo", "rk/"), concat!("/tm", "p/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

/// Parts of a host's name that say that it hands out packages.
const REGISTRIES: [&str; 8] = ["artifactory", "index", "mirror", "mirrors", "nexus", "proxy", "registries", "registry"];

/// The index that the lock file names, wherever its packages came from.
const INDEX: &str = "https://github.com/rust-lang/crates.io-index";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (line, text) in file.shipped(View::Text) {
            if let Some(folder) = FOLDERS.iter().find(|folder| begins_in(text, folder)) {
                findings
                    .push(file.finding(line, format!("`{folder}` is a folder of one machine: name it from the root")));
            }
            if let Some(host) = registry(text) {
                findings
                    .push(file.finding(line, format!("{host} is a registry: leave that to each machine's settings")));
            }
        }
    }
    findings
}

/// The registry that a line names, if it is another than the public index.
fn registry(line: &str) -> Option<&str> {
    line.match_indices("://").find_map(|(at, separator)| {
        let host =
            line[at + separator.len()..].split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '-')).next()?;
        let before = &line[..at];
        let address = before.rfind('+').map_or("", |plus| &line[plus + 1..]);
        let as_source =
            ["registry+https", "sparse+https", "registry+http", "sparse+http"].iter().any(|end| before.ends_with(end));
        let named = host.split(['.', '-']).any(|part| REGISTRIES.contains(&part));
        (named || as_source && !address.starts_with(INDEX)).then_some(host)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)], "")).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn folders_of_a_machine_are_reported_outside_of_tests() {
        for folder in FOLDERS {
            let text = format!("see {folder}main\n({folder}x)\nframe{folder}a\n{}b\n", &folder[1..]);
            assert_eq!(lines("README.md", &text), [1, 2]);
            assert_eq!(lines("tests/baseline/a.txt", &text), [1, 2]);
            let rust = format!(
                "const A: &str = \"{folder}a\";\n// {folder}\n#[cfg(test)]\nmod tests {{\n    // {folder}\n}}\n"
            );
            assert_eq!(lines("xtask/src/a.rs", &rust), [1, 2]);
            assert_eq!(lines("tests/tests/behaviour/a.rs", &rust), [0; 0]);
        }
    }

    #[test]
    fn registries_other_than_the_public_index_are_reported() {
        let text = "\
source = \"registry+https://github.com/rust-lang/crates.io-index\"
source = \"registry+https://example.com/index\"
\"resolved\": \"https://registry.example.com/a\"
index-url = http://pip-mirror.example.com/simple
https://example.com/registry
";
        assert_eq!(lines("a.lock", text), [2, 3, 4]);
    }
}
