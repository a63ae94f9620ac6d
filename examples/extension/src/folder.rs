//! Skills from a folder of the file system.
//!
//! Why here: the only code that touches files, once, before anything is served.
//! Invariants: no link is followed below the folder; no more is read than a skill may have.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use bytes::Bytes;

use crate::skill::{MAX_SKILL_BYTES, MAX_SKILL_FILES, SKILL_FILE, Skill, SkillError};

/// How deep folders may lie in folders.
const MAX_DEPTH: usize = 16;

/// Every skill below `root`.
pub(crate) fn load(root: &Path) -> Result<Vec<Skill>, SkillError> {
    let mut skills = Vec::new();
    let mut waiting = vec![(root.to_path_buf(), String::new(), 0)];
    while let Some((folder, path, depth)) = waiting.pop() {
        let children = children(&folder, depth)?;
        if !path.is_empty() && children.iter().any(|(name, is_folder)| name == SKILL_FILE && !is_folder) {
            skills.push(Skill::new(&path, files(&folder, &path, depth)?)?);
            continue;
        }
        for (name, _) in children.into_iter().filter(|(_, is_folder)| *is_folder) {
            waiting.push((folder.join(&name), joined(&path, &name), depth + 1));
        }
    }
    Ok(skills)
}

/// Every file below the folder of a skill, with its path in the skill.
fn files(root: &Path, skill: &str, depth: usize) -> Result<Vec<(String, Bytes)>, SkillError> {
    let mut files = Vec::new();
    let mut room = MAX_SKILL_BYTES;
    let mut waiting = vec![(root.to_path_buf(), String::new(), depth)];
    while let Some((folder, path, depth)) = waiting.pop() {
        for (name, is_folder) in children(&folder, depth)? {
            let (place, path) = (folder.join(&name), joined(&path, &name));
            if is_folder {
                waiting.push((place, path, depth + 1));
                continue;
            }
            let bytes = read(&place, room)?.filter(|_| files.len() < MAX_SKILL_FILES);
            let bytes = bytes.ok_or_else(|| SkillError::TooLarge(skill.to_owned()))?;
            room -= u64::try_from(bytes.len()).unwrap_or(room);
            files.push((path, bytes.into()));
        }
    }
    Ok(files)
}

/// What lies in a folder: names, and whether each is a folder.
fn children(folder: &Path, depth: usize) -> Result<Vec<(String, bool)>, SkillError> {
    if depth > MAX_DEPTH {
        return Err(SkillError::TooDeep(folder.to_path_buf()));
    }
    let mut children = Vec::new();
    for child in fs::read_dir(folder).map_err(unreadable(folder))? {
        let child = child.map_err(unreadable(folder))?;
        let Ok(name) = child.file_name().into_string() else { return Err(SkillError::NotPlain(child.path())) };
        if name.starts_with('.') {
            continue;
        }
        // Of the entry itself: a link is a link whatever it leads to.
        let kind = child.file_type().map_err(unreadable(&child.path()))?;
        if !kind.is_dir() && !kind.is_file() {
            return Err(SkillError::NotPlain(child.path()));
        }
        children.push((name, kind.is_dir()));
    }
    Ok(children)
}

/// A file of at most `room` bytes; `None` if it has more.
fn read(path: &Path, room: u64) -> Result<Option<Vec<u8>>, SkillError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable(path))?;
    file.take(room.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable(path))?;
    Ok(Some(bytes).filter(|bytes| u64::try_from(bytes.len()).is_ok_and(|size| size <= room)))
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> SkillError {
    let path = path.to_path_buf();
    move |cause| SkillError::Read { path, cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Skills;

    fn write(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn manual(name: &str) -> String {
        format!("---\nname: {name}\ndescription: d\n---\n")
    }

    #[test]
    fn folders_around_a_skill_are_parts_of_its_path_and_folders_in_it_are_its_own() {
        let root = tempfile::tempdir().unwrap();
        for path in ["b/SKILL.md", "acme/x/c/SKILL.md"] {
            let name = path.rsplit('/').nth(1).unwrap();
            write(root.path(), path, manual(name));
        }
        write(root.path(), "b/inner/SKILL.md", manual("inner"));
        write(root.path(), "b/data/one.bin", b"\xff");
        write(root.path(), "b/.env", "secret");
        write(root.path(), "acme/README.md", "of no skill");
        // A file there makes the folder itself no skill: it has no path.
        write(root.path(), "SKILL.md", "of no skill");
        let skills = Skills::from_dir(root.path()).unwrap();
        let shown: Vec<String> = skills
            .skills()
            .iter()
            .map(|skill| {
                format!("{}: {}", skill.path(), skill.files().map(|(path, _)| path).collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(shown, ["acme/x/c: SKILL.md", "b: SKILL.md data/one.bin inner/SKILL.md"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_what_is_no_file_are_refused() {
        let outside = tempfile::tempdir().unwrap();
        write(outside.path(), "secret.txt", "secret");
        for (link, target) in [("b/link.txt", "secret.txt"), ("b/folder", ""), ("c", "")] {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), "b/SKILL.md", manual("b"));
            std::os::unix::fs::symlink(outside.path().join(target), root.path().join(link)).unwrap();
            assert!(matches!(Skills::from_dir(root.path()), Err(SkillError::NotPlain(_))), "{link}");
        }
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "b/SKILL.md", manual("b"));
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("b/socket")).unwrap();
        assert!(matches!(Skills::from_dir(root.path()), Err(SkillError::NotPlain(_))));
    }

    #[test]
    fn what_is_too_large_or_too_deep_or_not_there_is_refused() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "b/SKILL.md", manual("b"));
        let big = File::create(root.path().join("b/big")).unwrap();
        big.set_len(MAX_SKILL_BYTES).unwrap();
        assert!(matches!(Skills::from_dir(root.path()), Err(SkillError::TooLarge(path)) if path == "b"));
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &format!("{}/x", "d/".repeat(MAX_DEPTH + 1)), "");
        assert!(matches!(Skills::from_dir(root.path()), Err(SkillError::TooDeep(_))));
        assert!(matches!(Skills::from_dir(root.path().join("none")), Err(SkillError::Read { .. })));
        // Depth counts from the folder that was named.
        assert!(Skills::from_dir(root.path().join("d")).unwrap().skills().is_empty());
    }
}
