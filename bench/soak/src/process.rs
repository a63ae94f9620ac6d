//! The server as a child, and what the operating system says of it.
//!
//! Why here: a server cannot say how large it is without becoming larger.
//! Invariants: reads `/proc`, so it runs on Linux alone; the child is killed when this is dropped, and ends by itself when
//! this whole program does: the pipe that it reads from is held for that alone.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::Outcome;

/// How long the server may take to end when nobody calls any more.
const END: Duration = Duration::from_secs(30);

/// A server that listens.
pub(crate) struct Server {
    child: Child,
    id: u32,
    pub(crate) address: SocketAddr,
}

/// What a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    pub(crate) resident_kib: u64,
    pub(crate) descriptors: usize,
}

impl Server {
    /// Starts this program again, as the server.
    pub(crate) async fn start() -> Outcome<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // The allocator of glibc then gives back what is free, and what is seen is what is held.
        command.envs([("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_TRIM_THRESHOLD_", "131072")]);
        command.env("MALLOC_ARENA_MAX", "2");
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let line = BufReader::new(output).lines().next_line().await?.ok_or("the server ended before it listened")?;
        let address = line.strip_prefix("listening on ").ok_or("the server did not say where it listens")?.parse()?;
        let id = child.id().ok_or("the server has ended")?;
        Ok(Self { child, id, address })
    }

    pub(crate) fn size(&self) -> Outcome<Size> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id))?;
        let resident_kib = resident(&status).ok_or("the process has no size")?;
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.id))?.count();
        Ok(Size { resident_kib, descriptors })
    }

    /// Asks the server to end, as an operator does.
    pub(crate) async fn end(&mut self) -> Outcome<()> {
        let id = self.id.to_string();
        let asked = Command::new("sh").args(["-c", "kill -TERM \"$1\"", "kill", &id]).status().await?;
        if !asked.success() {
            return Err("the server ended before it was asked to".into());
        }
        match tokio::time::timeout(END, self.child.wait()).await {
            Ok(Ok(ended)) if ended.success() => Ok(()),
            Ok(_) => Err("the server did not end well".into()),
            Err(_) => Err("the server did not end when it was asked to".into()),
        }
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_by_its_name() {
        assert_eq!(resident("Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t    1234 kB\n"), Some(1_234));
        assert_eq!(resident("Name:\tx\n"), None);
    }
}
