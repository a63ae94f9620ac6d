//! The repository as the checks see it: its texts, its packages and its exceptions.
//!
//! Why here: checks are functions of this value, so that their tests can make one up.
//! Invariants: paths are relative to the root and written with `/`; nothing that is built, fetched or ignored is in it.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::Finding;
use super::exceptions::{self, Exceptions};
use super::metadata::{self, Package};
use super::scan::{self, Views};

/// Folders that hold nothing of ours, as in `.gitignore`.
const SKIPPED: [&str; 9] = [
    ".git",
    ".venv",
    "__pycache__",
    "artifacts",
    "corpus",
    "node_modules",
    "proptest-regressions",
    "results",
    "target",
];

pub(super) struct Tree {
    pub(super) files: Vec<Source>,
    pub(super) packages: Vec<Package>,
    pub(super) exceptions: Exceptions,
}

/// A text file.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    /// Empty unless the file is Rust.
    views: Views,
    /// For each line, whether it is part of what tests alone see.
    tests: Vec<bool>,
}

/// What of a Rust file is looked at; anything else is blank there.
#[derive(Clone, Copy)]
pub(super) enum View {
    Text,
    Code,
    /// Code with its literals.
    Literals,
    Comments,
}

impl Tree {
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        collect(root, root, &mut files)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let exceptions = fs::read_to_string(root.join(exceptions::FILE)).context("xtask/tidy.toml cannot be read")?;
        Ok(Self { files, packages: metadata::read(root)?, exceptions: Exceptions::parse(&exceptions)? })
    }

    /// A made-up repository of files and the text of its exceptions.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)], exceptions: &str) -> Self {
        let files = files.iter().map(|(path, text)| Source::new((*path).to_owned(), (*text).to_owned())).collect();
        Self { files, packages: Vec::new(), exceptions: Exceptions::parse(exceptions).unwrap() }
    }

    pub(super) fn file(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.is_rust())
    }
}

impl Source {
    fn new(path: String, text: String) -> Self {
        let mut source = Self { views: Views::default(), tests: Vec::new(), path, text };
        if source.is_rust() {
            source.views = scan::views(&source.text);
            source.tests = scan::test_lines(&source.views.code);
            if source.is_test() {
                source.tests.fill(true);
            }
        }
        source
    }

    pub(super) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    pub(super) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Whether the file is in the folder, at any depth. A `*` in it stands for the name of one folder.
    pub(super) fn is_in(&self, folder: &str) -> bool {
        let mut path = self.path.split('/');
        folder.split('/').all(|part| path.next().is_some_and(|found| part == "*" || part == found))
            && path.next().is_some()
    }

    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Each line with its number, from 1.
    pub(super) fn lines(&self, view: View) -> impl Iterator<Item = (usize, &str)> {
        let text = match view {
            View::Text => &self.text,
            View::Code => &self.views.code,
            View::Literals => &self.views.literals,
            View::Comments => &self.views.comments,
        };
        text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// As [`Self::lines`], without those that tests alone see.
    pub(super) fn shipped(&self, view: View) -> impl Iterator<Item = (usize, &str)> {
        self.lines(view).filter(|(line, _)| !self.tests.get(line - 1).copied().unwrap_or_default())
    }

    pub(super) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding::new(&self.path, line, message)
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("fuzz/") || self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<Source>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        // By its name only: in a second work tree `.git` is a file.
        if SKIPPED.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
            continue;
        }
        let bytes = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        // What is no text, such as a picture, has no rules.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let relative = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        files.push(Source::new(relative, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_star_matches_any_name_there() {
        let source = Source::new("crates/mcp-core/src/engine/peer.rs".to_owned(), String::new());
        for inside in ["crates", "crates/*/src", "crates/mcp-core/src/engine"] {
            assert!(source.is_in(inside), "{inside}");
        }
        for outside in ["crate", "crates/*/tests", "src", "crates/mcp-core/src/engine/peer.rs"] {
            assert!(!source.is_in(outside), "{outside}");
        }
    }

    #[test]
    fn tests_are_not_shipped_wherever_they_stand() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let shipped = |path: &str| Source::new(path.to_owned(), text.to_owned()).shipped(View::Code).count();
        assert_eq!(shipped("crates/mcp-core/src/a.rs"), 1);
        for path in ["crates/mcp-core/tests/a.rs", "tests/src/a.rs", "crates/mcp-core/src/a/tests.rs"] {
            assert_eq!(shipped(path), 0, "{path}");
        }
    }
}
