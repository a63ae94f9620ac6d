//! Whether a flush of the file stands between the receipt of each create and its acknowledgement.
//!
//! Why here: a kill leaves what the system has in memory, so that it alone shows nothing of a power cut; the order of the
//! system calls does.
//! Invariants: one client, one request at a time, and tasks that run on, so that nothing else is stored meanwhile; the flush
//! has begun after the receipt and ended well before the acknowledgement.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::Subject;
use super::http::{Connection, OWNERS};

/// The revision that the clients of this command speak.
pub(super) const REVISION: &str = "2026-07-28";

/// Creates that are traced.
const CREATES: usize = 100;

pub(super) fn run(server: &Subject, strace: &Path) -> anyhow::Result<String> {
    let (file, effects) = server.files("traced")?;
    let trace = server.folder.join("traced.strace");
    let mut command = Command::new(strace);
    // -D: the server is our child, and strace its grandchild.
    command.args(["-D", "-f", "-y", "-s", "64", "-e", "trace=fsync,fdatasync,read,recvfrom,write,writev,sendto", "-o"]);
    command.arg(&trace);
    let running = server.start(Some(command), &file, &effects)?;
    let mut connection = Connection::open(&running.address)?;
    for number in 0..CREATES {
        connection.create(OWNERS[0], "go_on", &format!("traced-{number}"))?;
    }
    running.child.kill()?;
    let text = fs::read_to_string(&trace).context("strace wrote nothing")?;
    let name = file.file_name().and_then(|name| name.to_str()).context("a file without a name")?;
    let flushes = judged(&text, name)?;
    Ok(format!(
        "flushes: {CREATES} creates of one client, traced: {CREATES} acknowledged after an fsync or fdatasync of the file that \
         began after their receipt ({flushes} flushes in all)"
    ))
}

/// Reads strace's lines in their order; the flushes between a receipt and its acknowledgement.
fn judged(text: &str, file: &str) -> anyhow::Result<usize> {
    let (mut acknowledged, mut flushes, mut is_flushed) = (0, 0, false);
    let mut is_received = false;
    // Flushes that have begun and not ended, by thread.
    let mut begun: HashMap<&str, bool> = HashMap::new();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let is_flush = call.starts_with("fsync(") || call.starts_with("fdatasync(");
        let resumes_flush = call.starts_with("<... fsync resumed>") || call.starts_with("<... fdatasync resumed>");
        if is_flush && call.contains(file) {
            if call.ends_with("<unfinished ...>") {
                begun.insert(thread, is_received);
            } else if is_received && call.ends_with("= 0") {
                (is_flushed, flushes) = (true, flushes + 1);
            }
        } else if resumes_flush {
            if begun.remove(thread) == Some(true) && is_received && call.ends_with("= 0") {
                (is_flushed, flushes) = (true, flushes + 1);
            }
        } else if call.contains("\"POST /mcp") {
            ensure!(!is_received, "a request came before the last was answered");
            (is_received, is_flushed) = (true, false);
        } else if call.contains("\"HTTP/1.1 200") {
            ensure!(is_received, "an answer without a request");
            ensure!(is_flushed, "create {acknowledged} was acknowledged before a flush");
            (is_received, acknowledged) = (false, acknowledged + 1);
        }
    }
    ensure!(acknowledged == CREATES, "{acknowledged} acknowledgements are in the trace of {CREATES}");
    Ok(flushes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIPT: &str = "7 recvfrom(9<TCP:[1->2]>, \"POST /mcp HTTP/1.1\\r\\n\"..., 8192, 0, NULL, NULL) = 700\n";
    const ANSWER: &str = "7 writev(9<TCP:[1->2]>, [{iov_base=\"HTTP/1.1 200 OK\\r\\n\"..., iov_len=90}], 2) = 300\n";
    const FLUSH: &str = "8 fdatasync(4</a/t.redb>)         = 0\n";
    const BEGIN: &str = "8 fdatasync(4</a/t.redb> <unfinished ...>\n";
    const END: &str = "8 <... fdatasync resumed>)            = 0\n";

    #[test]
    fn a_flush_counts_between_receipt_and_answer_only() {
        let judged = |create: &str| judged(&create.repeat(CREATES), "t.redb");
        assert_eq!(judged(&format!("{RECEIPT}{FLUSH}{ANSWER}")).unwrap(), CREATES);
        assert_eq!(judged(&format!("{RECEIPT}{BEGIN}{END}{ANSWER}")).unwrap(), CREATES);
        let wrong = [
            format!("{RECEIPT}{ANSWER}"),
            format!("{FLUSH}{RECEIPT}{ANSWER}"),
            format!("{RECEIPT}{ANSWER}{FLUSH}"),
            format!("{BEGIN}{RECEIPT}{END}{ANSWER}"),
            format!("{RECEIPT}{BEGIN}{ANSWER}{END}"),
            format!("{RECEIPT}{}{ANSWER}", FLUSH.replace("= 0", "= -1 EIO")),
            format!("{RECEIPT}{}{ANSWER}", FLUSH.replace("t.redb", "other")),
            FLUSH.to_owned(),
        ];
        for create in wrong {
            judged(&create).unwrap_err();
        }
    }
}
