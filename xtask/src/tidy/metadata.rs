//! The packages of the workspace and what they depend on, from `cargo metadata`.
//!
//! Why here: cargo knows what a manifest means, with all that it inherits.
//! Invariants: only members of the workspace; nothing is downloaded for it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::cargo;

/// A member of the workspace.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    /// Its manifest, from the repository's root.
    pub(super) manifest: String,
    pub(super) published: bool,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    /// The name in the registry, whatever it is called here.
    pub(super) name: String,
    /// `dev` or `build`; none is an ordinary one.
    pub(super) kind: Option<String>,
    pub(super) optional: bool,
    pub(super) features: Vec<String>,
}

impl Package {
    /// What the package needs to be used, as opposed to tested.
    pub(super) fn shipped(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"))
    }
}

pub(super) fn read(root: &Path) -> anyhow::Result<Vec<Package>> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .context("cannot start cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    parse(&output.stdout, root)
}

pub(super) fn parse(json: &[u8], root: &Path) -> anyhow::Result<Vec<Package>> {
    let metadata: Metadata = serde_json::from_slice(json).context("what cargo metadata printed is not understood")?;
    let packages = metadata.packages.into_iter().map(|package| {
        let manifest = package.manifest_path.strip_prefix(root).context("a member is outside of the repository")?;
        Ok(Package {
            name: package.name,
            manifest: manifest.to_string_lossy().replace('\\', "/"),
            // No list is every registry.
            published: package.publish.is_none_or(|registries| !registries.is_empty()),
            dependencies: package.dependencies,
        })
    });
    packages.collect()
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    manifest_path: PathBuf,
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_prints_is_understood() {
        let json = br#"{"version": 1, "packages": [
            {"name": "a", "manifest_path": "/r/crates/a/Cargo.toml", "publish": [], "dependencies": [
                {"name": "b", "kind": "dev", "optional": false, "features": []},
                {"name": "c", "kind": null, "optional": true, "features": ["net"]}
            ]},
            {"name": "b", "manifest_path": "/r/b/Cargo.toml", "publish": null, "dependencies": []}
        ]}"#;
        let packages = parse(json, Path::new("/r")).unwrap();
        assert_eq!(packages[0].manifest, "crates/a/Cargo.toml");
        assert_eq!(packages[0].shipped().map(|dependency| &dependency.name).collect::<Vec<_>>(), ["c"]);
        assert!(!packages[0].published && packages[1].published);
    }
}
