//! `cargo xtask features`: every combination of each library's features compiles, without a warning.
//!
//! Why here: users depend on the layers that they need, and nothing else builds most of the combinations.
//! Invariants: the combinations come from the manifests, so that a new feature is covered by being there; two sets of
//! which one implies the other's features are one combination.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::{cargo, refuse_leftovers};

/// Where the libraries are; programs have no features to combine.
const LIBRARIES: &str = "crates/";

/// The features of one combination.
type Combination = BTreeSet<String>;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = crate::options(arguments);
    let list = options.contains("--list");
    refuse_leftovers(options)?;
    let mut count = 0;
    for package in packages()? {
        for combination in combinations(&package.features) {
            let features = combination.into_iter().collect::<Vec<_>>().join(",");
            println!("{} [{features}]", package.name);
            count += 1;
            if list {
                continue;
            }
            let status = cargo()
                .args(["clippy", "--quiet", "--package", &package.name, "--no-default-features"])
                .args(["--features", &features, "--", "--deny", "warnings"])
                .status()
                .context("cannot start cargo clippy")?;
            ensure!(status.success(), "{} does not compile with the features [{features}]", package.name);
        }
    }
    println!("features: {count} combinations");
    Ok(())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    /// Each feature with what it turns on.
    features: BTreeMap<String, Vec<String>>,
}

/// The libraries of the workspace.
fn packages() -> anyhow::Result<Vec<Package>> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("cannot start cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata is not understood")?;
    let folder = crate::root().join(LIBRARIES);
    let mut packages = metadata.packages;
    packages.retain(|package| std::path::Path::new(&package.manifest_path).starts_with(&folder));
    ensure!(!packages.is_empty(), "there are no libraries in {LIBRARIES}");
    Ok(packages)
}

/// All sets of features that differ in what they turn on, the empty one first.
fn combinations(features: &BTreeMap<String, Vec<String>>) -> BTreeSet<Combination> {
    let mut found = BTreeSet::from([Combination::new()]);
    for name in features.keys().filter(|name| *name != "default") {
        let more: Vec<Combination> = found
            .iter()
            .map(|combination| {
                let mut more = combination.clone();
                turn_on(name, features, &mut more);
                more
            })
            .collect();
        found.extend(more);
    }
    found
}

/// Adds a feature and those of the same package that it turns on.
fn turn_on(name: &str, features: &BTreeMap<String, Vec<String>>, combination: &mut Combination) {
    let Some(implied) = features.get(name) else { return };
    if combination.insert(name.to_owned()) {
        for other in implied {
            // What concerns a dependency has `dep:` before it or a slash in it, and is no key here.
            turn_on(other, features, combination);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combined(features: &[(&str, &[&str])]) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let features = features.iter().map(|(name, implied)| ((*name).to_owned(), owned(implied))).collect();
        let shown = |combination: Combination| combination.into_iter().collect::<Vec<_>>().join("+");
        combinations(&features).into_iter().map(shown).collect()
    }

    #[test]
    fn every_subset_is_a_combination_and_the_default_is_none_of_its_own() {
        assert_eq!(combined(&[("a", &[]), ("b", &["dep:x"]), ("default", &["a"])]), ["", "a", "a+b", "b"]);
    }

    #[test]
    fn what_a_feature_implies_is_never_without_it() {
        let features: [(&str, &[&str]); 3] = [("a", &["b", "dep:a"]), ("b", &["c/d"]), ("c", &[])];
        assert_eq!(combined(&features), ["", "a+b", "a+b+c", "b", "b+c", "c"]);
    }

    #[test]
    fn features_that_imply_each_other_end() {
        assert_eq!(combined(&[("a", &["b"]), ("b", &["a"])]), ["", "a+b"]);
    }

    #[test]
    fn the_libraries_of_this_workspace_are_found() {
        let names: Vec<String> = packages().unwrap().into_iter().map(|package| package.name).collect();
        assert!(names.iter().any(|name| name == "mcp-core") && !names.iter().any(|name| name == "xtask"), "{names:?}");
    }
}
