//! Mutations: what `xtask/mutations.toml` says, and its application to a text.
//!
//! Why here: a mutation that no longer fits its file must be heard of when the file changes, not when it is run.
//! Invariants: the text to be replaced occurs exactly once; names are unique; no key is missing or unknown.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use toml_edit::{Document, Item, Table};

const FILE: &str = "xtask/mutations.toml";

const KEYS: [&str; 6] = ["name", "rule", "file", "find", "replace", "libraries"];

/// One rule, broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutation {
    pub(super) name: String,
    /// What does not hold any more.
    pub(super) rule: String,
    /// From the repository's root.
    pub(super) file: String,
    find: String,
    replace: String,
    /// Packages whose unit tests may notice it, beside the behaviour tests.
    pub(super) libraries: Vec<String>,
}

/// The mutations of the repository at `root`.
///
/// # Errors
///
/// When the file says something else, or a mutation does not fit the file that it is for.
pub(super) fn read(root: &Path) -> anyhow::Result<Vec<Mutation>> {
    let mutations = parse(&fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?)?;
    for mutation in &mutations {
        let source = fs::read_to_string(root.join(&mutation.file));
        let source = source.with_context(|| format!("{FILE}: {}: cannot read {}", mutation.name, mutation.file))?;
        mutation.apply(&source)?;
    }
    Ok(mutations)
}

fn parse(text: &str) -> anyhow::Result<Vec<Mutation>> {
    let document = Document::parse(text).with_context(|| format!("{FILE} is no TOML"))?;
    for (key, _) in document.iter() {
        ensure!(key == "mutation", "{FILE}: `{key}` is unknown; write [[mutation]]");
    }
    let tables = document.get("mutation").and_then(Item::as_array_of_tables);
    let tables = tables.with_context(|| format!("{FILE}: write [[mutation]]"))?;
    let mut names = BTreeSet::new();
    let mut mutations = Vec::new();
    for table in tables {
        let line = table.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let mutation = Mutation::of(table).with_context(|| format!("{FILE}:{line}"))?;
        ensure!(names.insert(mutation.name.clone()), "{FILE}:{line}: a second `{}`", mutation.name);
        mutations.push(mutation);
    }
    Ok(mutations)
}

impl Mutation {
    fn of(table: &Table) -> anyhow::Result<Self> {
        for (key, _) in table {
            ensure!(KEYS.contains(&key), "`{key}` is unknown; known are {}", KEYS.join(", "));
        }
        let any = |key: &str| {
            let text = table.get(key).and_then(Item::as_str);
            text.map(ToOwned::to_owned).with_context(|| format!("needs `{key}` with a text"))
        };
        let some = |key: &str| {
            let text = any(key)?;
            ensure!(!text.trim().is_empty(), "needs `{key}` with a text");
            Ok(text)
        };
        let libraries = match table.get("libraries") {
            None => Vec::new(),
            Some(item) => {
                let names = item.as_array().context("`libraries` is a list of packages")?;
                let names = names.iter().map(|name| name.as_str().map(ToOwned::to_owned));
                names.collect::<Option<_>>().context("`libraries` is a list of packages")?
            }
        };
        let (find, replace) = (some("find")?, any("replace")?);
        ensure!(find != replace, "it changes nothing");
        Ok(Self { name: some("name")?, rule: some("rule")?, file: some("file")?, find, replace, libraries })
    }

    /// The source with the rule broken.
    ///
    /// # Errors
    ///
    /// When the text to be replaced does not occur exactly once.
    pub(super) fn apply(&self, source: &str) -> anyhow::Result<String> {
        let count = source.matches(&self.find).count();
        let (name, file, find) = (&self.name, &self.file, &self.find);
        ensure!(count == 1, "{FILE}: {name}: this occurs {count} times in {file} and has to occur once:\n{find}");
        Ok(source.replacen(&self.find, &self.replace, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    const GOOD: &str =
        "[[mutation]]\nname = \"a\"\nrule = \"r\"\nfile = \"f\"\nfind = \"x == y\"\nreplace = \"true\"\n";

    #[test]
    fn every_mutation_fits_the_source() {
        assert!(read(&root()).unwrap().len() >= 12);
    }

    #[test]
    fn a_mutation_applies_where_its_text_occurs_once() {
        let mutation = parse(&format!("{GOOD}libraries = [\"p\"]")).unwrap().remove(0);
        assert_eq!(mutation.libraries, ["p"]);
        assert_eq!(mutation.apply("if x == y {}").unwrap(), "if true {}");
        assert!(mutation.apply("if x != y {}").is_err());
        assert!(mutation.apply("if x == y || x == y {}").is_err());
    }

    #[test]
    fn what_is_missing_unknown_or_repeated_is_refused() {
        assert!(parse(GOOD).is_ok());
        for key in ["name", "rule", "file", "find", "replace"] {
            let without: Vec<&str> = GOOD.lines().filter(|line| !line.starts_with(key)).collect();
            assert!(parse(&without.join("\n")).is_err(), "{key}");
        }
        let cases = [
            format!("{GOOD}{GOOD}"),
            format!("{GOOD}why = \"x\""),
            format!("{GOOD}libraries = \"p\""),
            format!("{GOOD}libraries = [7]"),
            GOOD.replace("true", "x == y"),
            GOOD.replace("[[mutation]]", "[mutation]"),
            GOOD.replace("[[mutation]]", "[[mutations]]"),
        ];
        for text in cases {
            assert!(parse(&text).is_err(), "{text}");
        }
    }
}
