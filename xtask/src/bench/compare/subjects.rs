//! The servers of a comparison: the floor, ours, and those of other libraries.
//!
//! Why here: what a library serves, and how its server is built, is known in one place.
//! Invariants: all are built with the same profile; those of other libraries from their own lock files alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, ensure};
use toml_edit::DocumentMut;

/// A server and what it can do.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) origin: Origin,
    /// Whether it serves the handshake and sessions of 2025-11-25 over HTTP.
    pub(super) sessions: bool,
    /// How many `subscriptions/listen` it holds at least, up to what is measured.
    pub(super) listens: Option<u32>,
}

/// Where a server comes from.
pub(super) enum Origin {
    /// A package of this workspace.
    Workspace(&'static str),
    /// A workspace of its own in `bench/peers`, for the library of the same name.
    Peer,
}

pub(super) const FLOOR: &str = "floor";
pub(super) const OURS: &str = "ours";

pub(super) static SUBJECTS: [Subject; 6] = [
    Subject { name: FLOOR, origin: Origin::Workspace("bench-floor"), sessions: false, listens: None },
    Subject { name: OURS, origin: Origin::Workspace("bench-server"), sessions: true, listens: Some(1_000) },
    // Its listen is the handler's own business, and the macros' handlers have none.
    Subject { name: "rmcp", origin: Origin::Peer, sessions: true, listens: None },
    Subject { name: "turbomcp", origin: Origin::Peer, sessions: true, listens: Some(1_000) },
    // It refuses the 65th listen.
    Subject { name: "pmcp", origin: Origin::Peer, sessions: true, listens: Some(64) },
    // Its release 2 has no sessions. With JSON answers on it ends a listen with its first notification.
    Subject { name: "rust-mcp-sdk", origin: Origin::Peer, sessions: false, listens: None },
];

/// A server that can be started.
pub(super) struct Built {
    pub(super) subject: &'static Subject,
    pub(super) program: PathBuf,
    pub(super) version: String,
}

impl Subject {
    /// Builds the server; `target` is the folder for the workspace's builds.
    pub(super) fn build(&'static self, root: &Path, target: &Path) -> anyhow::Result<Built> {
        let folder = match self.origin {
            Origin::Workspace(_) => target.to_owned(),
            Origin::Peer => target.join("peers"),
        };
        self.build_in(root, &folder)?;
        let program = folder.join("release").join(self.package());
        Ok(Built { subject: self, program, version: self.version(root)? })
    }

    /// Builds the server in any folder.
    pub(super) fn build_in(&self, root: &Path, target: &Path) -> anyhow::Result<()> {
        let mut cargo = self.cargo(root, "build");
        cargo.arg("--release").env("CARGO_TARGET_DIR", target);
        ensure!(cargo.status()?.success(), "{} does not build", self.name);
        Ok(())
    }

    /// How many crates are built for it, itself not counted.
    pub(super) fn crates(&self, root: &Path) -> anyhow::Result<usize> {
        let mut cargo = self.cargo(root, "tree");
        let output = cargo.args(["--edges", "normal,build", "--prefix", "none"]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(distinct_crates(&String::from_utf8_lossy(&output.stdout)).saturating_sub(1))
    }

    fn cargo(&self, root: &Path, command: &str) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root).arg(command).args(["-p", &self.package()]);
        if let Origin::Peer = self.origin {
            cargo.arg("--locked").arg("--manifest-path").arg(self.folder(root).join("Cargo.toml"));
        }
        cargo
    }

    fn package(&self) -> String {
        match self.origin {
            Origin::Workspace(package) => package.to_owned(),
            Origin::Peer => format!("peer-{}", self.name),
        }
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join("bench/peers").join(self.name)
    }

    /// The measured library's version, as it is locked.
    fn version(&self, root: &Path) -> anyhow::Result<String> {
        let (lock, library) = match self.origin {
            Origin::Workspace("bench-floor") => (root.join("Cargo.lock"), "hyper"),
            Origin::Workspace(_) => (root.join("Cargo.lock"), "mcp-core"),
            Origin::Peer => (self.folder(root).join("Cargo.lock"), self.name),
        };
        let text = fs::read_to_string(&lock).with_context(|| format!("{} cannot be read", lock.display()))?;
        locked_version(&text, library).with_context(|| format!("{} does not lock {library}", lock.display()))
    }
}

fn locked_version(lock: &str, library: &str) -> Option<String> {
    let document: DocumentMut = lock.parse().ok()?;
    let packages = document.get("package")?.as_array_of_tables()?;
    let package =
        packages.iter().find(|package| package.get("name").and_then(|name| name.as_str()) == Some(library))?;
    Some(package.get("version")?.as_str()?.to_owned())
}

/// How many crates the lines of `cargo tree` name; a line may repeat with a mark behind it.
fn distinct_crates(tree: &str) -> usize {
    let mut crates: Vec<(&str, &str)> = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            crates.push((name, version));
        }
    }
    crates.sort_unstable();
    crates.dedup();
    crates.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_counts_once_in_each_of_its_versions() {
        let tree = "peer v0.1.0 (path)\nitoa v1.0.0\nserde v1.0.0 (proc-macro)\nserde v1.0.0 (*)\nserde v2.0.0\n\n";
        assert_eq!(distinct_crates(tree), 4);
    }

    #[test]
    fn the_locked_version_is_that_of_the_library() {
        let lock = "version = 4\n\n[[package]]\nname = \"rmcp-macros\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"rmcp\"\nversion = \"3.11.0\"\n";
        assert_eq!(locked_version(lock, "rmcp").as_deref(), Some("3.11.0"));
        assert_eq!(locked_version(lock, "pmcp"), None);
    }

    #[test]
    fn each_peer_has_a_folder_with_its_name() {
        for subject in SUBJECTS.iter().filter(|subject| matches!(subject.origin, Origin::Peer)) {
            let manifest = fs::read_to_string(subject.folder(&crate::root()).join("Cargo.toml")).unwrap();
            assert!(manifest.contains(&format!("name = \"{}\"", subject.package())), "{}", subject.name);
        }
    }
}
