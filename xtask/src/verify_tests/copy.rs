//! The copy of the source in which rules are broken.
//!
//! Why here: a run that is interrupted leaves the source as it was.
//! Invariants: afterwards the copy holds the files that git knows or would take, with what is in them now, and no others;
//! a file that is the same already is left alone, so that cargo builds only what changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Makes `copy` the same as the source at `root`.
pub(super) fn bring_up_to_date(root: &Path, copy: &Path) -> anyhow::Result<()> {
    let mut files = files(root)?;
    files.retain(|file| root.join(file).is_file());
    mirror(root, copy, &files)
}

fn files(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().context("cannot start git")?;
    ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr).trim());
    let names = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    Ok(names.split_terminator('\0').map(PathBuf::from).collect())
}

fn mirror(root: &Path, copy: &Path, files: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    fs::create_dir_all(copy)?;
    remove_others(copy, copy, files)?;
    for file in files {
        let wanted = fs::read(root.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
        let to = copy.join(file);
        if fs::read(&to).is_ok_and(|present| present == wanted) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, wanted).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

fn remove_others(copy: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(copy, &path, files)?;
        } else if !files.contains(path.strip_prefix(copy)?) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_what_is_listed_and_nothing_else_and_is_written_only_where_it_differs() {
        let folder = std::env::temp_dir().join(format!("verify-tests-{}", std::process::id()));
        let (root, copy) = (folder.join("root"), folder.join("copy"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/c"), "new").unwrap();
        fs::write(root.join("same"), "same").unwrap();
        fs::create_dir_all(copy.join("a/b")).unwrap();
        fs::write(copy.join("a/b/c"), "mutated").unwrap();
        fs::write(copy.join("a/gone"), "old").unwrap();
        fs::write(copy.join("same"), "same").unwrap();
        let written = fs::metadata(copy.join("same")).unwrap().modified().unwrap();
        mirror(&root, &copy, &["a/b/c".into(), "same".into()].into()).unwrap();
        assert_eq!(fs::read_to_string(copy.join("a/b/c")).unwrap(), "new");
        assert!(!copy.join("a/gone").exists());
        assert_eq!(fs::metadata(copy.join("same")).unwrap().modified().unwrap(), written);
        fs::remove_dir_all(folder).unwrap();
    }
}
