//! Skills: an extension of the protocol, from the crate that shows how one is written.
//!
//! Why here: what a server says beyond the protocol goes through the same doors as the rest.
//! Spec: skills extension, SEP-2640

use skills_extension::{Skill, SkillError, Skills};

macro_rules! skill {
    ($path:literal: $($file:literal),+) => {
        Skill::new($path, [$(($file, &include_bytes!(concat!("../assets/skills/", $path, "/", $file))[..])),+])
    };
}

/// Two skills with a folder each, one of them in a folder itself.
pub(crate) fn all() -> Result<Skills, SkillError> {
    Skills::new([
        skill!("plant-care": "SKILL.md", "references/pests.md", "references/plants.csv")?,
        skill!("kitchen/tea-brewing": "SKILL.md", "references/leaves.md")?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_among_the_assets_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/skills");
        let there = Skills::from_dir(folder).unwrap();
        assert_eq!(there.skills(), all().unwrap().skills());
    }
}
