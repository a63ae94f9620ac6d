//! What each member's manifest says alike: the lints of the workspace, and that it is not published.
//!
//! Why here: a member that forgets the lints is checked by none of them, silently.
//! Invariants: a required lint may be stricter than listed, never weaker.

use toml_edit::{DocumentMut, Item};

use super::Finding;
use super::tree::{Source, Tree};

/// Lints that the workspace must have, by tool.
const LINTS: [(&str, &[&str]); 2] = [
    (
        "rust",
        &[
            "unsafe_code",
            "missing_docs",
            "missing_debug_implementations",
            "unreachable_pub",
            "unnameable_types",
            "elided_lifetimes_in_paths",
            "unused_qualifications",
        ],
    ),
    (
        "clippy",
        &[
            "unwrap_used",
            "expect_used",
            "panic",
            "todo",
            "dbg_macro",
            "print_stdout",
            "print_stderr",
            "await_holding_lock",
            "exhaustive_enums",
            "exhaustive_structs",
            "match_wildcard_for_single_variants",
            "use_self",
            "manual_let_else",
            "needless_pass_by_value",
            "or_fun_call",
            "str_to_string",
            "incompatible_msrv",
            "disallowed_methods",
        ],
    ),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.file("Cargo.toml").map(workspace).unwrap_or_default();
    for package in &tree.packages {
        if package.published {
            let message = format!("{} could be published: write publish.workspace = true", package.name);
            findings.push(Finding::new(&package.manifest, 1, message));
        }
        let lints = tree.file(&package.manifest).and_then(|file| {
            let manifest = file.text.parse::<DocumentMut>().ok()?;
            manifest.get("lints")?.get("workspace")?.as_bool()
        });
        if lints != Some(true) {
            let message = format!("{} has none of the lints: write [lints] workspace = true", package.name);
            findings.push(Finding::new(&package.manifest, 1, message));
        }
    }
    findings
}

fn workspace(manifest: &Source) -> Vec<Finding> {
    let Ok(document) = manifest.text.parse::<DocumentMut>() else {
        return vec![manifest.finding(1, "is no TOML")];
    };
    let lints = document.get("workspace").and_then(|workspace| workspace.get("lints"));
    let mut findings = Vec::new();
    for (tool, names) in LINTS {
        let heading = format!("[workspace.lints.{tool}]");
        let line = manifest.text.lines().position(|line| line.trim() == heading).map_or(1, |index| index + 1);
        for name in names {
            // Nothing in the code may take the lint about unsafe code back.
            let enough: &[&str] = if *name == "unsafe_code" { &["forbid"] } else { &["warn", "deny", "forbid"] };
            let found = lints.and_then(|lints| level(lints.get(tool)?.get(name)?));
            if !found.is_some_and(|found| enough.contains(&found)) {
                let message = format!("{tool}'s lint {name} must be at least \"{}\"", enough[0]);
                findings.push(manifest.finding(line, message));
            }
        }
    }
    findings
}

/// A lint is its level, or a table with it.
fn level(lint: &Item) -> Option<&str> {
    lint.as_str().or_else(|| lint.get("level")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Package;
    use super::*;

    fn complete() -> String {
        let mut text = String::new();
        for (tool, names) in LINTS {
            text += &format!("[workspace.lints.{tool}]\n");
            for name in names {
                let level = if *name == "unsafe_code" { "forbid" } else { "warn" };
                text += &format!("{name} = \"{level}\"\n");
            }
        }
        text
    }

    #[test]
    fn a_lint_that_is_missing_or_too_weak_is_reported() {
        let text = complete();
        let messages = |text: &str| -> Vec<String> {
            check(&Tree::of(&[("Cargo.toml", text)], "")).into_iter().map(|finding| finding.message).collect()
        };
        assert_eq!(messages(&text), [""; 0]);
        assert_eq!(messages(&text.replace("todo = \"warn\"", "todo = { level = \"deny\" }")), [""; 0]);
        let todo = "clippy's lint todo must be at least \"warn\"";
        assert_eq!(messages(&text.replace("todo = \"warn\"\n", "")), [todo]);
        assert_eq!(messages(&text.replace("todo = \"warn\"", "todo = \"allow\"")), [todo]);
        let unsafe_code = text.replace("\"forbid\"", "\"deny\"");
        assert_eq!(messages(&unsafe_code), ["rust's lint unsafe_code must be at least \"forbid\""]);
    }

    #[test]
    fn a_member_without_the_lints_or_that_could_be_published_is_reported() {
        let package = |name: &str, published| Package {
            name: name.to_owned(),
            manifest: format!("{name}/Cargo.toml"),
            published,
            dependencies: Vec::new(),
        };
        let manifests = [
            ("good/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("bare/Cargo.toml", "[package]\n"),
            ("own/Cargo.toml", "[lints.clippy]\ntodo = \"warn\"\n"),
        ];
        let mut tree = Tree::of(&manifests, "");
        tree.packages = vec![package("good", false), package("bare", false), package("own", true)];
        let files: Vec<String> = check(&tree).into_iter().map(|finding| finding.file).collect();
        assert_eq!(files, ["bare/Cargo.toml", "own/Cargo.toml", "own/Cargo.toml"]);
    }
}
