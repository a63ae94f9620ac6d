//! Skills as values: what one consists of, and what makes it one.
//!
//! Why here: whatever a skill was loaded from, the same rules make it fit to be served.
//! Invariants: a skill that exists is valid, and what is said of its files is true of the bytes that are served.
//! Spec: skills extension, "Skill Format", "Skill Entries" and "Limits"

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use mcp_core::ServerBuilder;
use mcp_wire::RawJson;
use mcp_wire::types::CacheHints;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::files::Tree;
use crate::header::{self, HeaderError};
use crate::{address, extension, folder};

/// The most files that a skill may have.
pub const MAX_SKILL_FILES: usize = 512;
/// The most bytes that the files of a skill may have together.
pub const MAX_SKILL_BYTES: u64 = 16 * 1024 * 1024;

/// The file that makes a folder a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// Why a skill cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// A file or folder could not be read.
    #[error("{} could not be read: {cause}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A link, a pipe, a device, or a name that is no Unicode: only plain files and folders are served.
    #[error("{} is neither a plain file nor a plain folder", .0.display())]
    NotPlain(PathBuf),
    /// Folders lie in folders more deeply than anybody means.
    #[error("{} lies too deep", .0.display())]
    TooDeep(PathBuf),
    /// The path of a skill does not fit.
    #[error("\"{0}\" is no path of a skill: lower-case letters, digits and inner hyphens, and no other skill above it")]
    Path(String),
    /// There is another skill at the same path.
    #[error("there is a skill \"{0}\" already")]
    Taken(String),
    /// A file has a path that leaves the skill, occurs twice, or is a folder's as well.
    #[error("the skill \"{skill}\" cannot have a file \"{file}\"")]
    File {
        /// The path of the skill.
        skill: String,
        /// The path of the file in it.
        file: String,
    },
    /// The skill has no `SKILL.md`.
    #[error("the skill \"{0}\" has no file \"{SKILL_FILE}\"")]
    NoSkillFile(String),
    /// The header of `SKILL.md` does not fit.
    #[error("the skill \"{skill}\" has no usable header: {cause}")]
    Header {
        /// The path of the skill.
        skill: String,
        /// What is wrong.
        cause: HeaderError,
    },
    /// The header names another skill than the path.
    #[error("the skill \"{skill}\" is called \"{name}\" in its header; it must be the last part of its path")]
    Name {
        /// The path of the skill.
        skill: String,
        /// The name in the header.
        name: String,
    },
    /// The skill has more than [`MAX_SKILL_FILES`] files or [`MAX_SKILL_BYTES`] bytes.
    #[error("the skill \"{0}\" has more than {MAX_SKILL_FILES} files or {MAX_SKILL_BYTES} bytes")]
    TooLarge(String),
}

/// One skill with its files.
#[derive(Clone, PartialEq)]
pub struct Skill {
    path: String,
    header: Map<String, Value>,
    files: BTreeMap<String, Bytes>,
}

impl Skill {
    /// A skill from files in memory.
    ///
    /// `path` says where the skill lies among others: its name, and before it the names of folders, if any, as in
    /// `billing/refunds`. Each file comes with its own path below that; one of them is `SKILL.md`.
    ///
    /// # Errors
    /// See [`SkillError`].
    pub fn new<P, B>(path: &str, files: impl IntoIterator<Item = (P, B)>) -> Result<Self, SkillError>
    where
        P: Into<String>,
        B: Into<Bytes>,
    {
        let skill = || path.to_owned();
        let name = path.rsplit('/').next().unwrap_or_default();
        let above = path.strip_suffix(name).unwrap_or_default().trim_end_matches('/');
        let fits = (above.is_empty() || above.split('/').all(address::is_prefix)) && !path.starts_with('/');
        if !address::is_name(name) || !fits || path.contains("//") {
            return Err(SkillError::Path(skill()));
        }
        let mut kept: BTreeMap<String, Bytes> = BTreeMap::new();
        let mut room = MAX_SKILL_BYTES;
        for (file, bytes) in files {
            let (file, bytes) = (file.into(), bytes.into());
            let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            room = room.checked_sub(size).ok_or_else(|| SkillError::TooLarge(skill()))?;
            if kept.len() == MAX_SKILL_FILES {
                return Err(SkillError::TooLarge(skill()));
            }
            if !address::is_file_path(&file) || kept.contains_key(&file) {
                return Err(SkillError::File { skill: skill(), file });
            }
            kept.insert(file, bytes);
        }
        if let Some(file) = kept.keys().find(|file| folders_above(file).any(|folder| kept.contains_key(folder))) {
            return Err(SkillError::File { skill: skill(), file: file.clone() });
        }
        let text = kept.get(SKILL_FILE).ok_or_else(|| SkillError::NoSkillFile(skill()))?;
        let header = header::read(text).map_err(|cause| SkillError::Header { skill: skill(), cause })?;
        match header.get("name").and_then(Value::as_str) {
            Some(written) if written == name => {}
            other => return Err(SkillError::Name { skill: skill(), name: other.unwrap_or_default().to_owned() }),
        }
        Ok(Self { path: skill(), header, files: kept })
    }

    /// Where it lies among others; the last part is its name.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The address of its `SKILL.md`.
    #[must_use]
    pub fn uri(&self) -> String {
        self.address_of(SKILL_FILE)
    }

    /// The fields of its header.
    #[must_use]
    pub fn header(&self) -> &Map<String, Value> {
        &self.header
    }

    pub(crate) fn text_field(&self, field: &str) -> &str {
        self.header.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes))
    }

    pub(crate) fn address_of(&self, file: &str) -> String {
        address::of(&format!("{}/{file}", self.path))
    }

    /// What lists say of it: the header, and every file with its digest and size.
    pub(crate) fn entry(&self) -> Value {
        let resources: Vec<Value> = self
            .files()
            .map(|(file, bytes)| json!({ "uri": self.address_of(file), "digest": digest(bytes), "size": bytes.len() }))
            .collect();
        json!({ "uri": self.uri(), "frontmatter": self.header, "resources": resources })
    }
}

impl fmt::Debug for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skill").field("path", &self.path).field("files", &self.files.len()).finish_non_exhaustive()
    }
}

/// Skills that a server serves. Cheap to clone.
///
/// They are held in memory as they were loaded, so that a digest that a client was told stays true.
#[derive(Clone)]
pub struct Skills {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) hints: CacheHints,
    pub(crate) page: usize,
}

/// What is served of all skills.
pub(crate) struct Shelf {
    pub(crate) skills: Vec<Skill>,
    /// The entries of the skills by address, in the order of the addresses.
    pub(crate) entries: BTreeMap<String, RawJson>,
    pub(crate) tree: Tree,
}

impl Skills {
    /// These skills.
    ///
    /// # Errors
    /// When two have the same path, or one lies in another.
    pub fn new(skills: impl IntoIterator<Item = Skill>) -> Result<Self, SkillError> {
        let mut by_path: BTreeMap<String, Skill> = BTreeMap::new();
        for skill in skills {
            if by_path.contains_key(&skill.path) {
                return Err(SkillError::Taken(skill.path));
            }
            by_path.insert(skill.path.clone(), skill);
        }
        if let Some(inner) = by_path.keys().find(|path| folders_above(path).any(|above| by_path.contains_key(above))) {
            return Err(SkillError::Path(inner.clone()));
        }
        let skills: Vec<Skill> = by_path.into_values().collect();
        let entries = skills.iter().map(|skill| (skill.uri(), RawJson::from(skill.entry()))).collect();
        let tree = Tree::of(&skills);
        Ok(Self { shelf: Arc::new(Shelf { skills, entries, tree }), hints: CacheHints::default(), page: 20 })
    }

    /// The skills below a folder: each folder with a `SKILL.md` is one, and folders around it become parts of its path. A
    /// skill in a skill is a part of that.
    ///
    /// Names that begin with a dot are left out, and so is what lies in no skill. Links are refused, so that nothing outside
    /// the folder is served; so are folders that lie more than 16 deep.
    ///
    /// # Errors
    /// See [`SkillError`]. The first skill that does not fit is named.
    pub fn from_dir(path: impl AsRef<Path>) -> Result<Self, SkillError> {
        Self::new(folder::load(path.as_ref())?)
    }

    /// How long clients may keep what they are told and what they read. Default: not at all, and for themselves only.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.hints = hints;
        self
    }

    /// Entries on a page of a list. Default 20; at least 1. An entry has about 150 bytes for each file.
    #[must_use]
    pub fn page(mut self, entries: usize) -> Self {
        self.page = entries.max(1);
        self
    }

    /// The skills in the order of their paths.
    #[must_use]
    pub fn skills(&self) -> &[Skill] {
        &self.shelf.skills
    }

    /// Adds to a server: the extension, each `SKILL.md` as a resource that is listed, and every other file as a member of
    /// the template `skill://{+path}`.
    pub fn install(self, builder: ServerBuilder) -> ServerBuilder {
        extension::install(self, builder)
    }
}

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skills").field("skills", &self.shelf.skills).finish_non_exhaustive()
    }
}

/// The paths of the folders that a path lies in, the innermost first.
pub(crate) fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at))
}

fn digest(bytes: &[u8]) -> String {
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(bytes) {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "---\nname: refunds\ndescription: d\n---\n";

    fn skill(path: &str, more: &[(&'static str, &'static str)]) -> Result<Skill, SkillError> {
        Skill::new(path, [&[(SKILL_FILE, TEXT)], more].concat())
    }

    #[test]
    fn an_entry_says_what_the_header_says_and_names_every_file() {
        let skill = skill("acme/refunds", &[("a b/é.md", "abc"), ("empty", "")]).unwrap();
        let digest_of = |text: &str| digest(text.as_bytes());
        assert_eq!(digest_of("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let file = |uri: &str, text: &str| json!({ "uri": uri, "digest": digest_of(text), "size": text.len() });
        assert_eq!(
            skill.entry(),
            json!({
                "uri": "skill://acme/refunds/SKILL.md",
                "frontmatter": { "name": "refunds", "description": "d" },
                "resources": [
                    file("skill://acme/refunds/SKILL.md", TEXT),
                    file("skill://acme/refunds/a%20b/%C3%A9.md", "abc"),
                    file("skill://acme/refunds/empty", ""),
                ],
            })
        );
    }

    #[test]
    fn the_last_part_of_the_path_is_the_name() {
        for path in ["refunds", "a/refunds", "a.b/c_d/refunds"] {
            assert_eq!(skill(path, &[]).unwrap().path(), path);
        }
        for path in ["", "/refunds", "refunds/", "a//refunds", "../refunds", "a/../refunds", "A/refunds", "re--funds"] {
            assert!(matches!(skill(path, &[]), Err(SkillError::Path(_))), "{path}");
        }
        assert!(matches!(skill("other", &[]), Err(SkillError::Name { name, .. }) if name == "refunds"));
    }

    #[test]
    fn files_that_cannot_be_together_are_refused() {
        for file in ["../x", "/x", "a/../x", SKILL_FILE, "SKILL.md/x"] {
            assert!(matches!(skill("refunds", &[(file, "")]), Err(SkillError::File { .. })), "{file}");
        }
        assert!(matches!(skill("refunds", &[("a/b", ""), ("a", "")]), Err(SkillError::File { .. })));
        assert!(matches!(Skill::new("refunds", [("skill.md", TEXT)]), Err(SkillError::NoSkillFile(_))));
    }

    #[test]
    fn a_skill_may_be_as_large_as_the_limits_and_no_larger() {
        let many = |count: usize| {
            let more = (1..count).map(|number| (format!("{number}"), Bytes::new()));
            Skill::new("refunds", more.chain([(SKILL_FILE.to_owned(), Bytes::from(TEXT))]))
        };
        assert!(many(MAX_SKILL_FILES).is_ok());
        assert!(matches!(many(MAX_SKILL_FILES + 1), Err(SkillError::TooLarge(_))));
        let most = usize::try_from(MAX_SKILL_BYTES).unwrap() - TEXT.len();
        let big =
            |size: usize| Skill::new("refunds", [(SKILL_FILE, Bytes::from(TEXT)), ("big", Bytes::from(vec![0; size]))]);
        assert!(big(most).is_ok());
        assert!(matches!(big(most + 1), Err(SkillError::TooLarge(_))));
    }

    #[test]
    fn skills_lie_beside_each_other() {
        let [a, b, inner] = ["a/refunds", "b/refunds", "a/refunds/x/refunds"].map(|path| skill(path, &[]).unwrap());
        let skills = Skills::new([b.clone(), a.clone()]).unwrap();
        let paths: Vec<&str> = skills.skills().iter().map(Skill::path).collect();
        assert_eq!(paths, ["a/refunds", "b/refunds"]);
        assert!(matches!(Skills::new([a.clone(), b, a.clone()]), Err(SkillError::Taken(_))));
        assert!(matches!(Skills::new([a, inner]), Err(SkillError::Path(path)) if path == "a/refunds/x/refunds"));
    }
}
