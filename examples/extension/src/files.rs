//! Files by address, and folders with what lies directly in them.
//!
//! Why here: reading a file and reading a folder are look-ups in the same tree.
//! Invariants: every folder on the way to a file is there; what is not there has no address.
//! Spec: skills extension, "Reading Directories"

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use mcp_wire::types::Resource;

use crate::address;
use crate::skill::{SKILL_FILE, Skill, folders_above};

/// The media type of a folder.
const FOLDER: &str = "inode/directory";

/// All files and folders of some skills.
#[derive(Default)]
pub(crate) struct Tree {
    files: HashMap<String, File>,
    /// What lies in a folder, by name.
    folders: HashMap<String, BTreeMap<String, Resource>>,
}

/// A file as it is served.
pub(crate) struct File {
    pub(crate) bytes: Bytes,
    pub(crate) mime_type: &'static str,
}

impl Tree {
    pub(crate) fn of(skills: &[Skill]) -> Self {
        let mut tree = Self::default();
        for skill in skills {
            for (path, bytes) in skill.files() {
                tree.add(skill, path, bytes);
            }
        }
        tree
    }

    fn add(&mut self, skill: &Skill, path: &str, bytes: &Bytes) {
        let uri = skill.address_of(path);
        let mime_type = mime_type(path, bytes);
        let name = last(path);
        let mut resource = Resource::new(&*uri, name).with_mime_type(mime_type);
        resource.size = u64::try_from(bytes.len()).ok();
        if path == SKILL_FILE {
            resource.name = skill.text_field("name").to_owned();
            resource.description = Some(skill.text_field("description").to_owned());
        }
        let whole = format!("{}/{path}", skill.path());
        let mut child = (name.to_owned(), resource);
        for folder in folders_above(&whole) {
            let folder_uri = address::of(folder);
            let next = (last(folder).to_owned(), Resource::new(&*folder_uri, last(folder)).with_mime_type(FOLDER));
            let (name, resource) = std::mem::replace(&mut child, next);
            self.folders.entry(folder_uri).or_default().insert(name, resource);
        }
        self.files.insert(uri, File { bytes: bytes.clone(), mime_type });
    }

    pub(crate) fn file(&self, uri: &str) -> Option<&File> {
        self.files.get(uri)
    }

    /// What lies directly in a folder, in the order of the names.
    pub(crate) fn folder(&self, uri: &str) -> Option<&BTreeMap<String, Resource>> {
        self.folders.get(uri)
    }
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What skills usually hold; the rest is a text if it can be read as one.
fn mime_type(path: &str, bytes: &[u8]) -> &'static str {
    let ending = last(path).rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("md" | "markdown") => "text/markdown",
        Some("html" | "htm") => "text/html",
        Some("css") => "text/css",
        Some("csv") => "text/csv",
        Some("js" | "mjs") => "text/javascript",
        Some("py") => "text/x-python",
        Some("sh") => "application/x-sh",
        Some("json") => "application/json",
        Some("yaml" | "yml") => "application/yaml",
        Some("toml") => "application/toml",
        Some("xml") => "application/xml",
        Some("pdf") => "application/pdf",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        _ if std::str::from_utf8(bytes).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_shows_what_lies_directly_in_it() {
        let header = |name: &str| format!("---\nname: {name}\ndescription: about {name}\n---\n");
        let skills = [
            Skill::new("acme/b", [("SKILL.md", header("b")), ("x/y/z.txt", String::new()), ("x/a.png", String::new())]),
            Skill::new("acme/c", [("SKILL.md", header("c"))]),
        ];
        let tree = Tree::of(&skills.map(Result::unwrap));
        let shown = |uri: &str| {
            let folder = tree.folder(uri).unwrap();
            folder
                .values()
                .map(|each| format!("{} {}", each.uri, each.mime_type.as_deref().unwrap()))
                .collect::<Vec<_>>()
        };
        let folder = |path: &str| format!("skill://{path} inode/directory");
        assert_eq!(shown("skill://acme"), [folder("acme/b"), folder("acme/c")]);
        assert_eq!(shown("skill://acme/b"), ["skill://acme/b/SKILL.md text/markdown".to_owned(), folder("acme/b/x")]);
        assert_eq!(shown("skill://acme/b/x"), ["skill://acme/b/x/a.png image/png".to_owned(), folder("acme/b/x/y")]);
        assert_eq!(shown("skill://acme/b/x/y"), ["skill://acme/b/x/y/z.txt text/plain"]);
        let manual = &tree.folder("skill://acme/b").unwrap()["SKILL.md"];
        assert_eq!((manual.name.as_str(), manual.description.as_deref()), ("b", Some("about b")));
        for none in ["skill://", "skill://acme/", "skill://acme/b/SKILL.md", "skill://other"] {
            assert!(tree.folder(none).is_none(), "{none}");
        }
        assert!(tree.file("skill://acme/b/x/y/z.txt").is_some() && tree.file("skill://acme/b/x").is_none());
    }

    #[test]
    fn a_file_without_a_known_ending_is_what_its_bytes_are() {
        assert_eq!(mime_type("a/LICENSE", b"text"), "text/plain");
        assert_eq!(mime_type("a.b/LICENSE", b"\xff"), "application/octet-stream");
        assert_eq!(mime_type("A.MD", b"\xff"), "text/markdown");
    }
}
