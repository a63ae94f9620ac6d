//! `cargo xtask interop`: official clients against the sample server, each step asserting what came back.
//!
//! Why here: a client that nobody here wrote is the best witness that any client just works.
//! Invariants: clients are pinned and installed by the command itself; a step, carrier or era that was not tried fails,
//! unless the table of limits says why it cannot be.

mod clients;
mod conversation;
mod limits;
mod matrix;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

use self::clients::Client;
use self::conversation::Server;
use self::matrix::{Matrix, Sum};
use crate::conformance::build;
use crate::{NotRun, options, refuse_leftovers, root};

/// Smaller than the sample server's lists, so that each of them comes in pages.
const PAGE_SIZE: &str = "10";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut options = options(arguments);
    let with: String = options.value_from_str("--with")?;
    let all_versions = options.contains("--all-versions");
    refuse_leftovers(options)?;
    let mut clients: Vec<&Client> = clients::ALL.iter().filter(|client| with == "all" || with == client.name).collect();
    clients.retain(|client| all_versions || !client.older);
    ensure!(!clients.is_empty(), "`--with {with}` is not known; there is python, typescript, inspector and all");
    let program = build("everything-server")?;
    let (mut failures, mut missing, mut sum) = (Vec::new(), Vec::new(), Sum::default());
    for client in clients {
        match try_client(client, &program) {
            Ok(matrix) => {
                sum.add(&matrix);
                failures.extend(matrix.failures);
            }
            Err(error) => match error.downcast::<NotRun>() {
                // The others can be judged all the same.
                Ok(NotRun(what)) => missing.push(format!("{}: {what}", client.title)),
                Err(error) => return Err(error.context(format!("the client {}", client.title))),
            },
        }
    }
    println!("\n{sum}");
    ensure!(failures.is_empty(), "{} of the steps failed:\n{}", failures.len(), failures.join("\n"));
    if missing.is_empty() { Ok(()) } else { bail!(NotRun(missing.join("; "))) }
}

/// Runs every column of a client and prints its matrix.
fn try_client(client: &Client, program: &Path) -> anyhow::Result<Matrix> {
    let results = root().join("target/interop").join(client.title.replace(' ', "-"));
    fs::create_dir_all(&results).with_context(|| format!("cannot create {}", results.display()))?;
    let columns = (client.columns)(&root().join("tests/interop").join(client.name), &results)?;
    let mut server = Server::start(program, &results.join("server.log"))?;
    let mut matrix = Matrix::new(client.title);
    for mut column in columns {
        match column.carrier {
            clients::Carrier::Http => column.command.arg(server.url()),
            clients::Carrier::Pair => column.command.arg(server.pair_url()),
            clients::Carrier::Stdio => column.command.arg(program).args(["--stdio", "--page-size", PAGE_SIZE]),
        };
        let log = results.join(format!("{}.log", column.name.replace(' ', "-")));
        let said = conversation::hold(&mut column.command, &mut server, &log)?;
        matrix.add(&column.name, &said);
    }
    server.end()?;
    print!("{}", matrix.table());
    Ok(matrix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_client_is_refused() {
        assert!(run(&["--with".to_owned(), "cobol".to_owned()]).is_err());
        assert!(run(&[]).is_err());
    }
}
