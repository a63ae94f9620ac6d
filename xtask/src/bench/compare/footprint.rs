//! What each server is made of: versions, crates, the time of a clean build, the size of the program.
//!
//! Why here: these are no rounds; each is taken once.
//! Invariants: a build that is timed has a folder of its own, which is empty before and removed after.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::super::server::program;
use super::subjects::Built;
use super::tables::{markdown, number};

/// The table, and what was missing.
pub(super) struct Footprint {
    pub(super) text: String,
    pub(super) missing: Vec<String>,
}

pub(super) fn footprint(root: &Path, target: &Path, servers: &[&Built]) -> anyhow::Result<Footprint> {
    let strip = program("strip");
    let mut missing = Vec::new();
    if strip.is_none() {
        missing.push("sizes of programs, strip is missing (apt-get install binutils)".to_owned());
    }
    let mut rows = Vec::new();
    for server in servers {
        let size = strip.as_deref().map(|strip| stripped_bytes(strip, server, target)).transpose()?;
        rows.push(vec![
            server.subject.name.to_owned(),
            server.version.clone(),
            server.subject.crates(root)?.to_string(),
            size.map_or_else(not_run, |bytes| number(bytes as f64 / (1_024.0 * 1_024.0))),
        ]);
    }
    let heads = ["server", "version", "crates", "stripped MiB"];
    Ok(Footprint { text: markdown(&heads, &rows), missing })
}

/// Builds every server again, which takes minutes for each.
pub(super) fn build_times(root: &Path, target: &Path, servers: &[&Built]) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for server in servers {
        let spent = clean_build(root, target, server)?;
        rows.push(vec![server.subject.name.to_owned(), format!("{:.0}", spent.as_secs_f64())]);
    }
    Ok(markdown(&["server", "clean build, CPU s"], &rows))
}

fn not_run() -> String {
    "NOT RUN".to_owned()
}

fn stripped_bytes(strip: &Path, server: &Built, target: &Path) -> anyhow::Result<u64> {
    let stripped = target.join("release").join(format!("stripped-{}", server.subject.name));
    let status = Command::new(strip).arg("-o").arg(&stripped).arg(&server.program).status()?;
    ensure!(status.success(), "{} cannot be stripped", server.program.display());
    let bytes = fs::metadata(&stripped)?.len();
    fs::remove_file(&stripped)?;
    Ok(bytes)
}

/// Processor time, which other work on the machine changes less than the clock's.
fn clean_build(root: &Path, target: &Path, server: &Built) -> anyhow::Result<Duration> {
    let folder = target.join("clean-build");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let before = cpu_of_children()?;
    server.subject.build_in(root, &folder)?;
    let spent = cpu_of_children()? - before;
    fs::remove_dir_all(&folder)?;
    Ok(spent)
}

/// The processor time of all children of this process that have ended, and of theirs.
fn cpu_of_children() -> anyhow::Result<Duration> {
    parse_children(&fs::read_to_string("/proc/self/stat")?).context("/proc/self/stat is not understood")
}

fn parse_children(stat: &str) -> Option<Duration> {
    /// Linux counts in hundredths of a second there.
    const TICK: Duration = Duration::from_millis(10);
    // Behind the name in brackets, the 14th and 15th field.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(13).map(str::parse::<u32>);
    let user = ticks.next()?.ok()?;
    Some(TICK * user.checked_add(ticks.next()?.ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_children_are_added_up() {
        let stat = "7 (x) y) S 1 7 7 0 -1 4194560 900 0 0 0 1 2 150 25 20 0 1 0 5";
        assert_eq!(parse_children(stat), Some(Duration::from_millis(1_750)));
        assert_eq!(parse_children("7 (x) S 1"), None);
    }
}
