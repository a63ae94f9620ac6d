//! `cargo xtask kill-tasks`: a server with tasks in a file is killed under load, again and again; what it acknowledged holds.
//!
//! Why here: what was acknowledged is remembered by a process that is not the one that dies.
//! Invariants: the same seed is the same load up to timing; every acknowledged task is looked at after every death, by its
//! owner and by somebody else; what was in flight at the death may have happened or not, whole.

mod http;
mod ledger;
mod load;
mod trace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use self::http::Connection;
use self::ledger::Ledger;
use self::load::Random;
use crate::process::Guarded;
use crate::{options, refuse_leftovers, task_report};

/// How long a server may take to read its file and to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rounds without `--rounds`.
const ROUNDS: u64 = 50;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let rounds: u64 = options.opt_value_from_str("--rounds")?.unwrap_or(ROUNDS);
    let seed: u64 = options.opt_value_from_str("--seed")?.unwrap_or(1);
    let is_written = options.contains("--write");
    refuse_leftovers(options)?;
    let strace = crate::bench::program("strace");
    let server = Subject::build()?;
    let counts = killed(&server, rounds, seed)?;
    println!("{counts}");
    let Some(strace) = strace else {
        return Err(crate::NotRun("whether a flush precedes each acknowledgement: strace is missing".to_owned()).into());
    };
    let flushed = trace::run(&server, &strace)?;
    println!("{flushed}");
    if is_written {
        let text = format!("{counts}\n{flushed}");
        task_report::write("Killed", &format!("kill-tasks --rounds {rounds} --seed {seed}"), &text)?;
    }
    Ok(())
}

/// The server that is killed, and where its files are.
pub(crate) struct Subject {
    program: PathBuf,
    folder: PathBuf,
}

impl Subject {
    fn build() -> anyhow::Result<Self> {
        let binaries = crate::bench::build_tasks()?;
        let folder = binaries.join("kill-tasks");
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { program: binaries.join("bench-tasks"), folder })
    }

    /// A file of tasks that is not there yet, and its effects.
    fn files(&self, name: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
        let files = (self.folder.join(format!("{name}.redb")), self.folder.join(format!("{name}.effects")));
        for file in [&files.0, &files.1] {
            if file.exists() {
                fs::remove_file(file)?;
            }
        }
        Ok(files)
    }

    /// Starts the server behind `instrument`, whose last argument is the program to run.
    fn start(&self, instrument: Option<Command>, file: &Path, effects: &Path) -> anyhow::Result<Running> {
        let mut command = match instrument {
            Some(mut instrument) => {
                instrument.arg(&self.program);
                instrument
            }
            None => Command::new(&self.program),
        };
        command.arg("serve").args([file, effects]).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = Guarded::spawn("server with tasks", &mut command)?;
        let line = child.first_line(PATIENCE)?;
        let words: Vec<&str> = line.split(' ').collect();
        let ["listening", "on", address, "tasks", tasks, "lost", lost, "unreadable", "0"] = *words else {
            anyhow::bail!("the server said: {line}");
        };
        Ok(Running { address: address.to_owned(), tasks: tasks.parse()?, lost: lost.parse()?, child })
    }
}

/// A server that listens.
pub(crate) struct Running {
    child: Guarded,
    address: String,
    /// Tasks that it found in its file, and those of them that had failed with the last process.
    tasks: usize,
    lost: usize,
}

/// Kills the server `rounds` times; what it comes to, in words.
fn killed(server: &Subject, rounds: u64, seed: u64) -> anyhow::Result<String> {
    let (file, effects) = server.files("killed")?;
    let ledger = Ledger::default();
    let mut lost = 0;
    for round in 0..rounds {
        let running = server.start(None, &file, &effects)?;
        lost += running.lost;
        ledger
            .verify(&mut Connection::open(&running.address)?, running.tasks, &effects)
            .with_context(|| format!("after {round} deaths, with the seed {seed}"))?;
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let moment = Duration::from_millis(20 + random.below(280));
        load::until(moment, &running.address, &ledger, &mut random, || running.child.kill())?;
    }
    let running = server.start(None, &file, &effects)?;
    lost += running.lost;
    ledger.verify(&mut Connection::open(&running.address)?, running.tasks, &effects)?;
    running.child.kill()?;
    ledger.told(rounds, lost)
}
