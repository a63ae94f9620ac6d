//! Keeps tables in `bench/RESULTS.md`, and says on what machine they were taken.
//!
//! Why here: the prose around the tables is written by hand and stays.
//! Invariants: a section is what stands between its two marks; one that was not measured is not touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

pub(super) struct Results {
    path: PathBuf,
    text: String,
}

impl Results {
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let path = root.join("bench/RESULTS.md");
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(Self { path, text })
    }

    /// Replaces what stands in a section.
    pub(super) fn keep(&mut self, section: &str, content: &str) -> anyhow::Result<()> {
        self.text = replaced(&self.text, section, content).with_context(|| {
            format!("bench/RESULTS.md has no place for {section}: <!-- {section} --> and <!-- end -->")
        })?;
        Ok(())
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        fs::write(&self.path, &self.text).with_context(|| format!("{} not written", self.path.display()))
    }
}

fn replaced(text: &str, section: &str, content: &str) -> Option<String> {
    let mark = format!("<!-- {section} -->\n");
    let start = text.find(&mark)? + mark.len();
    let end = start + text.get(start..)?.find("<!-- end -->")?;
    // Empty lines keep the marks out of the table.
    Some(format!("{}\n{}\n\n{}", text.get(..start)?, content.trim_end(), text.get(end..)?))
}

/// The machine and what else it did, as a list.
pub(super) fn machine() -> anyhow::Result<String> {
    let first = |program: &str, arguments: &[&str]| -> anyhow::Result<String> {
        let output =
            Command::new(program).args(arguments).output().with_context(|| format!("{program} did not run"))?;
        ensure!(output.status.success(), "{program} failed");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("{path} cannot be read"));
    let processors = read("/proc/cpuinfo")?;
    let models: Vec<&str> = processors.lines().filter_map(|line| line.strip_prefix("model name")).collect();
    let model = models.first().map_or("unknown", |model| model.trim_start_matches([' ', '\t', ':']));
    Ok(format!(
        "- {}\n- {model}, {} processors seen, Linux {}\n- {}",
        first("date", &["-u", "+%Y-%m-%d %H:%M UTC"])?,
        models.len(),
        read("/proc/sys/kernel/osrelease")?.trim(),
        first("rustc", &["--version"])?,
    ))
}

/// How many threads wanted a processor, on average over 1, 5 and 15 minutes.
pub(super) fn load_average() -> anyhow::Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("/proc/loadavg cannot be read")?;
    Ok(text.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_the_prose_stays() {
        let text = "Why.\n<!-- one -->\nold\n<!-- end -->\nMore.\n<!-- two -->\n<!-- end -->\n";
        let once = replaced(text, "one", "| a |\n| b |\n").unwrap();
        assert_eq!(once, "Why.\n<!-- one -->\n\n| a |\n| b |\n\n<!-- end -->\nMore.\n<!-- two -->\n<!-- end -->\n");
        assert_eq!(replaced(&once, "one", "| a |\n| b |\n").unwrap(), once);
        let both = replaced(&once, "two", "c").unwrap();
        assert!(both.ends_with("<!-- two -->\n\nc\n\n<!-- end -->\n"), "{both}");
    }

    #[test]
    fn a_section_without_its_marks_is_not_made_up() {
        assert!(replaced("<!-- one -->\n", "one", "x").is_none());
        assert!(replaced("text", "one", "x").is_none());
    }
}
