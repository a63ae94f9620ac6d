//! Which crate may depend on which.
//!
//! Why here: the layers of ARCHITECTURE.md hold only while no manifest points the other way.
//! Invariants: a crate without a row in the table is a violation, so a new one is placed on purpose.

use std::collections::{BTreeMap, VecDeque};

use toml_edit::DocumentMut;

use super::Finding;
use super::metadata::Package;
use super::tree::Tree;

/// A library and what it may use.
struct Row {
    name: &'static str,
    /// Ours that it may always use.
    always: &'static [&'static str],
    /// Ours that it may use behind a feature.
    optional: &'static [&'static str],
    /// Foreign crates it must not have, nor anything that it uses; `crate/feature` is a feature that it must not name.
    never: &'static [&'static str],
}

const ROWS: [Row; 6] = [
    Row {
        name: "mcp-wire",
        always: &[],
        optional: &[],
        never: &["tokio", "tokio-util", "async-std", "smol", "hyper", "http"],
    },
    Row {
        name: "mcp-core",
        always: &["mcp-wire"],
        optional: &[],
        never: &[
            "hyper",
            "hyper-util",
            "http",
            "http-body",
            "tower",
            "tower-service",
            "tokio/full",
            "tokio/fs",
            "tokio/io-std",
            "tokio/net",
            "tokio/process",
            "tokio/signal",
        ],
    },
    Row { name: "mcp-auth", always: &[], optional: &["mcp-core"], never: &[] },
    Row { name: "mcp-http", always: &["mcp-wire", "mcp-auth"], optional: &["mcp-core"], never: &[] },
    Row { name: "mcp-stdio", always: &["mcp-wire"], optional: &["mcp-core"], never: &[] },
    Row { name: "mcp-tasks", always: &["mcp-wire", "mcp-core"], optional: &[], never: &["hyper", "http"] },
];

/// Packages there may use everything, and no package may use them; but tests may use examples.
const FREE: [&str; 4] = ["bench/", "examples/", "tests/", "xtask/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let lock = tree.file("Cargo.lock").map(|file| locked(&file.text)).unwrap_or_default();
    let ours: BTreeMap<&str, &Package> = tree.packages.iter().map(|package| (package.name.as_str(), package)).collect();
    let mut findings = Vec::new();
    for package in &tree.packages {
        let mut report = |dependency: &str, message: String| findings.push(finding(tree, package, dependency, message));
        for dependency in &package.dependencies {
            let used = ours.get(dependency.name.as_str());
            if used.is_some_and(|other| is_free(other) && !is_tested_example(package, other)) {
                let message = format!("{} uses {}, which nothing may use", package.name, dependency.name);
                report(&dependency.name, message);
            }
        }
        if is_free(package) {
            continue;
        }
        let Some(row) = ROWS.iter().find(|row| row.name == package.name) else {
            let message = format!("{} has no row in xtask/src/tidy/graph.rs: say what it may use", package.name);
            report("", message);
            continue;
        };
        for dependency in package.shipped() {
            let name = dependency.name.as_str();
            if !ours.contains_key(name) || row.always.contains(&name) {
                continue;
            }
            if !row.optional.contains(&name) {
                let allowed = [row.always, row.optional].concat().join(", ");
                report(name, format!("{} uses {name}; of ours it may use {{{allowed}}}", package.name));
            } else if !dependency.optional {
                report(name, format!("{} uses {name} always; it may do so behind a feature", package.name));
            }
        }
        for forbidden in row.never {
            if let Some((name, feature)) = forbidden.split_once('/') {
                let named =
                    package.shipped().find(|found| found.name == name && found.features.iter().any(|f| f == feature));
                if named.is_some() {
                    report(name, format!("{} must not have the feature {forbidden}", package.name));
                }
            } else if let Some(way) = way_to(forbidden, package, &ours, &lock) {
                report(&way[1], format!("{} must not use {forbidden}: {}", package.name, way.join(" -> ")));
            }
        }
    }
    findings
}

fn is_free(package: &Package) -> bool {
    FREE.iter().any(|folder| package.manifest.starts_with(folder))
}

/// What an example shows is a sample of the tests as well.
fn is_tested_example(user: &Package, used: &Package) -> bool {
    user.manifest.starts_with("tests/") && used.manifest.starts_with("examples/")
}

/// Names `dependency` where the manifest does.
fn finding(tree: &Tree, package: &Package, dependency: &str, message: String) -> Finding {
    let line = tree.file(&package.manifest).and_then(|manifest| {
        manifest.text.lines().position(|line| {
            let rest = line.strip_prefix(dependency).filter(|_| !dependency.is_empty());
            rest.is_some_and(|rest| rest.starts_with([' ', '.', '=']))
        })
    });
    Finding::new(&package.manifest, line.map_or(1, |index| index + 1), message)
}

/// Foreign crates and what they use, from the lock file; versions of one crate are taken together.
fn locked(lock: &str) -> BTreeMap<String, Vec<String>> {
    let mut uses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let Ok(document) = lock.parse::<DocumentMut>() else { return uses };
    let packages = document.get("package").and_then(|item| item.as_array_of_tables());
    for package in packages.into_iter().flatten() {
        let Some(name) = package.get("name").and_then(|item| item.as_str()) else { continue };
        let dependencies = package.get("dependencies").and_then(|item| item.as_array()).into_iter().flatten();
        // A dependency is a name, and its version if there are several.
        let names = dependencies.filter_map(|value| value.as_str()?.split(' ').next().map(ToOwned::to_owned));
        uses.entry(name.to_owned()).or_default().extend(names);
    }
    uses
}

/// The shortest way by which `package` comes to use `wanted`, itself first.
fn way_to(
    wanted: &str,
    package: &Package,
    ours: &BTreeMap<&str, &Package>,
    lock: &BTreeMap<String, Vec<String>>,
) -> Option<Vec<String>> {
    // Even its tests must not name it directly.
    if package.dependencies.iter().any(|dependency| dependency.name == wanted) {
        return Some(vec![package.name.clone(), wanted.to_owned()]);
    }
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([package.name.as_str()]);
    while let Some(name) = queue.pop_front() {
        if name == wanted {
            let back = std::iter::successors(Some(name), |name| from.get(name).copied());
            let mut way: Vec<String> = back.map(ToOwned::to_owned).collect();
            way.reverse();
            return Some(way);
        }
        let uses: Vec<&str> = match ours.get(name) {
            Some(package) => package.shipped().map(|dependency| dependency.name.as_str()).collect(),
            None => lock.get(name).into_iter().flatten().map(String::as_str).collect(),
        };
        for next in uses {
            if next != package.name && !from.contains_key(next) {
                from.insert(next, name);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Dependency;
    use super::*;

    fn package(name: &str, folder: &str, dependencies: &[&str]) -> Package {
        let dependency = |text: &&str| {
            let (kind, name) = text.split_once(':').map_or((None, *text), |(kind, name)| (Some(kind), name));
            let (name, feature) = name.split_once('/').map_or((name, None), |(name, feature)| (name, Some(feature)));
            Dependency {
                name: name.to_owned(),
                kind: kind.filter(|kind| *kind != "optional").map(ToOwned::to_owned),
                optional: kind == Some("optional"),
                features: feature.map(ToOwned::to_owned).into_iter().collect(),
            }
        };
        let manifest = format!("{folder}/{name}/Cargo.toml");
        let dependencies = dependencies.iter().map(dependency).collect();
        Package { name: name.to_owned(), manifest, published: false, dependencies }
    }

    fn messages(packages: Vec<Package>, lock: &str) -> Vec<String> {
        let mut tree = Tree::of(&[("Cargo.lock", lock)], "");
        tree.packages = packages;
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn the_layers_as_they_are_meant_break_no_rule() {
        let packages = vec![
            package("mcp-wire", "crates", &["serde", "dev:proptest"]),
            package("mcp-core", "crates", &["mcp-wire", "tokio/sync", "dev:tokio/macros"]),
            package("mcp-auth", "crates", &["optional:mcp-core", "http"]),
            package("mcp-http", "crates", &["mcp-wire", "mcp-auth", "optional:mcp-core", "hyper", "dev:mcp-core"]),
            package("mcp-stdio", "crates", &["mcp-wire", "optional:mcp-core"]),
            package("mcp-tasks", "crates", &["mcp-wire", "mcp-core"]),
            package("mcp-tests", "tests", &["mcp-core", "mcp-http"]),
        ];
        assert_eq!(messages(packages, ""), [""; 0]);
    }

    #[test]
    fn only_tests_may_use_what_an_example_shows() {
        let example = || package("shown", "examples", &["mcp-core"]);
        let core = || package("mcp-core", "crates", &[]);
        assert_eq!(messages(vec![core(), example(), package("sample", "tests", &["shown"])], ""), [""; 0]);
        for folder in ["examples", "bench"] {
            let found = messages(vec![core(), example(), package("other", folder, &["shown"])], "");
            assert_eq!(found, ["other uses shown, which nothing may use"]);
        }
    }

    #[test]
    fn a_dependency_against_the_layers_is_reported() {
        let cases: [(Package, &str); 5] = [
            (package("mcp-wire", "crates", &["mcp-core"]), "mcp-wire uses mcp-core; of ours it may use {}"),
            (
                package("mcp-auth", "crates", &["mcp-core"]),
                "mcp-auth uses mcp-core always; it may do so behind a feature",
            ),
            (package("mcp-stdio", "crates", &["dev:xtask"]), "mcp-stdio uses xtask, which nothing may use"),
            (package("mcp-new", "crates", &[]), "mcp-new has no row in xtask/src/tidy/graph.rs: say what it may use"),
            (package("mcp-core", "crates", &["tokio/net"]), "mcp-core must not have the feature tokio/net"),
        ];
        for (wrong, message) in cases {
            let name = wrong.name.clone();
            let mut packages = vec![package("xtask", "xtask", &[]), wrong];
            if name != "mcp-core" {
                packages.push(package("mcp-core", "crates", &[]));
            }
            assert_eq!(messages(packages, ""), [message]);
        }
    }

    #[test]
    fn a_forbidden_crate_is_found_behind_others_and_the_way_is_told() {
        let lock = "\
[[package]]
name = \"client\"
dependencies = [\"hyper 1.0.0\", \"serde\"]

[[package]]
name = \"jsonschema\"
dependencies = [\"client\"]
";
        let packages = || vec![package("mcp-core", "crates", &["serde", "jsonschema"])];
        let told = "mcp-core must not use hyper: mcp-core -> jsonschema -> client -> hyper";
        assert_eq!(messages(packages(), lock), [told]);
        assert_eq!(messages(packages(), ""), [""; 0]);
        let tested = vec![package("mcp-wire", "crates", &["dev:tokio"])];
        assert_eq!(messages(tested, ""), ["mcp-wire must not use tokio: mcp-wire -> tokio"]);
    }

    #[test]
    fn a_violation_names_the_line_of_the_manifest() {
        let manifest = "[package]\n\n[dependencies]\nmcp-core-not = \"1\"\nmcp-core.workspace = true\n";
        let mut tree = Tree::of(&[("crates/mcp-wire/Cargo.toml", manifest)], "");
        tree.packages = vec![package("mcp-wire", "crates", &["mcp-core"]), package("mcp-core", "crates", &[])];
        assert_eq!(check(&tree)[0].line, 5);
    }
}
