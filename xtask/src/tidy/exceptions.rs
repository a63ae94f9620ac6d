//! Reads `xtask/tidy.toml` and knows which of its entries were needed.
//!
//! Why here: an exception is worth a reason and a review, and is gone when the code is.
//! Invariants: each entry has every key of its section, with a text, and no other.

use std::cell::Cell;

use anyhow::{Context as _, ensure};
use toml_edit::{Document, Item, Table};

use super::Finding;

pub(super) const FILE: &str = "xtask/tidy.toml";

/// Sections and the keys of their entries: first the file, then what it is about, if the file alone does not say it.
const SECTIONS: [Section; 6] = [
    Section { name: "era", subject: None, explains: &["reason"] },
    Section { name: "revision-text", subject: None, explains: &["reason"] },
    Section { name: "era-answer", subject: Some("function"), explains: &["reason"] },
    Section { name: "no-spec", subject: None, explains: &["reason"] },
    Section { name: "spawn", subject: None, explains: &["what", "ends"] },
    Section { name: "static", subject: Some("name"), explains: &["reason"] },
];

struct Section {
    name: &'static str,
    subject: Option<&'static str>,
    explains: &'static [&'static str],
}

#[derive(Debug)]
pub(super) struct Exceptions(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    section: &'static str,
    file: String,
    subject: String,
    line: usize,
    needed: Cell<bool>,
}

impl Exceptions {
    /// # Errors
    ///
    /// If the text is no TOML, or an entry lacks a key or has one too many.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let document = Document::parse(text).with_context(|| format!("{FILE} is no TOML"))?;
        let mut entries = Vec::new();
        for (name, item) in document.iter() {
            let known = || SECTIONS.iter().map(|section| section.name).collect::<Vec<_>>().join(", ");
            let section = SECTIONS.iter().find(|section| section.name == name);
            let section = section.with_context(|| format!("{FILE}: [[{name}]] is unknown; known are {}", known()))?;
            let tables = item.as_array_of_tables().with_context(|| format!("{FILE}: write [[{name}]]"))?;
            for table in tables {
                let line = table.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
                entries.push(section.entry(table, line).with_context(|| format!("{FILE}:{line}: [[{name}]]"))?);
            }
        }
        Ok(Self(entries))
    }

    /// Whether an entry of `section` is about `file` and `subject` (empty where the section has none). It counts as needed.
    pub(super) fn cover(&self, section: &str, file: &str, subject: &str) -> bool {
        let about = |entry: &&Entry| entry.section == section && entry.file == file && entry.subject == subject;
        let entry = self.0.iter().find(about);
        entry.inspect(|entry| entry.needed.set(true)).is_some()
    }

    /// Entries of `section` that covered nothing.
    pub(super) fn needless(&self, section: &str) -> impl Iterator<Item = Finding> {
        self.0.iter().filter(move |entry| entry.section == section && !entry.needed.get()).map(|entry| {
            let what = format!("{} {}", entry.file, entry.subject);
            Finding::new(
                FILE,
                entry.line,
                format!("[[{}]] {} excuses nothing: remove it", entry.section, what.trim_end()),
            )
        })
    }
}

impl Section {
    fn entry(&self, table: &Table, line: usize) -> anyhow::Result<Entry> {
        let text = |key: &str| {
            let text = table.get(key).and_then(Item::as_str).unwrap_or_default();
            ensure!(!text.trim().is_empty(), "needs `{key}` with a text");
            Ok(text.to_owned())
        };
        let keys: Vec<&str> = ["file"].into_iter().chain(self.subject).chain(self.explains.iter().copied()).collect();
        for key in &keys {
            text(key)?;
        }
        for (key, _) in table {
            ensure!(keys.contains(&key), "`{key}` is unknown; known are {}", keys.join(", "));
        }
        let subject = self.subject.map(text).transpose()?.unwrap_or_default();
        Ok(Entry { section: self.name, file: text("file")?, subject, line, needed: Cell::new(false) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_covers_its_file_alone_and_one_that_covers_nothing_is_reported() {
        let text = "\n[[era]]\nfile = \"a.rs\"\nreason = \"x\"\n\n[[era]]\nfile = \"b.rs\"\nreason = \"x\"\n";
        let exceptions = Exceptions::parse(text).unwrap();
        assert!(exceptions.cover("era", "a.rs", ""));
        assert!(!exceptions.cover("era", "c.rs", "") && !exceptions.cover("spawn", "a.rs", ""));
        let needless: Vec<Finding> = exceptions.needless("era").collect();
        assert_eq!(needless, [Finding::new(FILE, 6, "[[era]] b.rs excuses nothing: remove it")]);
    }

    #[test]
    fn an_entry_without_its_reason_or_with_an_unknown_key_is_refused() {
        let cases = [
            "[[era]]\nfile = \"a.rs\"",
            "[[era]]\nfile = \"a.rs\"\nreason = \" \"",
            "[[era]]\nfile = \"a.rs\"\nreason = \"x\"\nwhat = \"y\"",
            "[[static]]\nfile = \"a.rs\"\nreason = \"x\"",
            "[[unknown]]\nfile = \"a.rs\"\nreason = \"x\"",
            "[era]\nfile = \"a.rs\"\nreason = \"x\"",
            "[[era",
        ];
        for text in cases {
            assert!(Exceptions::parse(text).is_err(), "{text}");
        }
    }
}
