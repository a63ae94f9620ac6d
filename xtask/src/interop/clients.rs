//! The official clients: how each is installed, and the carriers and eras in which it is tried.
//!
//! Why here: what differs between clients is a row here and a script in `tests/interop`.
//! Invariants: versions come from committed files; nothing is installed outside the client's own folders.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::ensure;

use crate::NotRun;
use crate::node::Packages;
use crate::process::Guarded;

/// How long an installation may take.
const INSTALL_LIMIT: Duration = Duration::from_secs(300);
/// The oldest Node for the TypeScript clients, and for the inspector, which brings one.
const NODE_MAJOR: u32 = 20;
const INSPECTOR_NODE_MAJOR: u32 = 22;
/// How an era is asked for: by a probe, by the handshake, by its revision.
pub(super) const MODES: [&str; 3] = ["auto", "legacy", "2026-07-28"];
/// The same in the inspector's words.
const INSPECTOR_MODES: [&str; 3] = ["auto", "legacy", "modern"];

/// Older versions of the Python SDK, each with the carriers it has. It got Streamable HTTP with 1.8.
const PYTHON_VERSIONS: [(&str, &[NamedCarrier]); 6] = [
    ("1.2.1", &[PAIR, STDIO]),
    ("1.9.4", &[HTTP, PAIR, STDIO]),
    ("1.13.1", &[HTTP, PAIR, STDIO]),
    ("1.20.0", &[HTTP, PAIR, STDIO]),
    ("1.26.0", &[HTTP, PAIR, STDIO]),
    ("1.30.0", &[HTTP, PAIR, STDIO]),
];
/// The same of the TypeScript SDK, which got Streamable HTTP with 1.10.
const TYPESCRIPT_VERSIONS: [(&str, &[NamedCarrier]); 4] = [
    ("1.0.4", &[PAIR, STDIO]),
    ("1.10.2", &[HTTP, PAIR, STDIO]),
    ("1.17.5", &[HTTP, PAIR, STDIO]),
    ("1.25.3", &[HTTP, PAIR, STDIO]),
];

/// The clients that are tried.
pub(super) const ALL: [Client; 5] = [
    Client { name: "python", title: "python", older: false, columns: python },
    Client { name: "python", title: "older python", older: true, columns: older_python },
    Client { name: "typescript", title: "typescript", older: false, columns: typescript },
    Client { name: "typescript", title: "older typescript", older: true, columns: older_typescript },
    Client { name: "inspector", title: "inspector", older: false, columns: inspector },
];

/// An official client.
pub(super) struct Client {
    /// What `--with` calls it, and the name of its folder.
    pub(super) name: &'static str,
    /// What its table is called.
    pub(super) title: &'static str,
    /// Tried with `--all-versions` only.
    pub(super) older: bool,
    /// Installs it, from its folder and with a folder for what is not to be kept, and says what is to be run.
    pub(super) columns: fn(&Path, &Path) -> anyhow::Result<Vec<Column>>,
}

/// One run of a client.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) carrier: Carrier,
    /// Lacks the server at its end: an address or a program.
    pub(super) command: Command,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Carrier {
    Http,
    /// The two endpoints of 2024-11-05.
    Pair,
    Stdio,
}

type NamedCarrier = (&'static str, Carrier);

const HTTP: NamedCarrier = ("http", Carrier::Http);
const PAIR: NamedCarrier = ("pair", Carrier::Pair);
const STDIO: NamedCarrier = ("stdio", Carrier::Stdio);

fn python(folder: &Path, results: &Path) -> anyhow::Result<Vec<Column>> {
    let requirements = fs::read_to_string(folder.join("requirements.txt"))?;
    let interpreter = environment(&requirements, results)?;
    columns("", &[HTTP, STDIO], &MODES, || Ok(script(&interpreter, &folder.join("client.py"))))
}

fn older_python(folder: &Path, results: &Path) -> anyhow::Result<Vec<Column>> {
    let mut all = Vec::new();
    for (version, carriers) in PYTHON_VERSIONS {
        let results = results.join(version);
        fs::create_dir_all(&results)?;
        // Versions before 1.21 use what later ones of pydantic do not have any more.
        let requirements = format!("mcp=={version}\npydantic==2.11.10\n");
        let interpreter = environment(&requirements, &results)?;
        let command = || Ok(script(&interpreter, &folder.join("session.py")));
        all.extend(columns(&format!("{version} "), carriers, &["legacy"], command)?);
    }
    Ok(all)
}

fn script(interpreter: &Path, script: &Path) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(script);
    command
}

fn typescript(folder: &Path, _results: &Path) -> anyhow::Result<Vec<Column>> {
    let packages = Packages::available(folder.to_owned(), NODE_MAJOR)?;
    let mut all = columns("v1 ", &[HTTP, PAIR, STDIO], &["legacy"], || packages.command("v1.mjs"))?;
    all.extend(columns("v2 ", &[HTTP, STDIO], &MODES, || packages.command("v2.mjs"))?);
    Ok(all)
}

fn older_typescript(folder: &Path, _results: &Path) -> anyhow::Result<Vec<Column>> {
    let packages = Packages::available(folder.to_owned(), NODE_MAJOR)?;
    let mut all = Vec::new();
    for (version, carriers) in TYPESCRIPT_VERSIONS {
        let command = || {
            let mut command = packages.command("v1.mjs")?;
            command.env("SDK", format!("sdk-{version}"));
            Ok(command)
        };
        all.extend(columns(&format!("{version} "), carriers, &["legacy"], command)?);
    }
    Ok(all)
}

fn inspector(folder: &Path, results: &Path) -> anyhow::Result<Vec<Column>> {
    let packages = Packages::available(folder.to_owned(), INSPECTOR_NODE_MAJOR)?;
    columns("", &[HTTP, STDIO], &INSPECTOR_MODES, || {
        let mut command = packages.command("inspector.mjs")?;
        // It keeps settings in the home directory, and those of a developer are none of its business.
        command.env("HOME", results);
        Ok(command)
    })
}

/// A column for each carrier and mode.
fn columns(
    prefix: &str,
    carriers: &[NamedCarrier],
    modes: &[&str],
    command: impl Fn() -> anyhow::Result<Command>,
) -> anyhow::Result<Vec<Column>> {
    let mut columns = Vec::new();
    for (name, carrier) in carriers {
        for mode in modes {
            let mut command = command()?;
            command.arg(mode);
            columns.push(Column { name: format!("{prefix}{name} {mode}"), carrier: *carrier, command });
        }
    }
    Ok(columns)
}

/// The interpreter of a virtual environment that holds these requirements, made when it is not there yet.
fn environment(requirements: &str, results: &Path) -> anyhow::Result<PathBuf> {
    let home = results.join("venv");
    let interpreter = home.join("bin/python");
    let stamp = results.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == requirements) && interpreter.exists() {
        return Ok(interpreter);
    }
    let log = results.join("install.log");
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&home);
    if !finish(&mut make, &log).is_ok_and(|made| made) {
        let text = format!("python3 with venv is needed (apt-get install python3-venv); see {}", log.display());
        return Err(NotRun(text).into());
    }
    let mut install = Command::new(&interpreter);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(requirements.lines().filter(|line| !line.starts_with('#')));
    ensure!(finish(&mut install, &log)?, "it could not be installed; see {}", log.display());
    fs::write(&stamp, requirements)?;
    Ok(interpreter)
}

/// Runs a program to its end, its output in a file; whether it succeeded.
fn finish(command: &mut Command, output: &Path) -> anyhow::Result<bool> {
    let file = File::create(output)?;
    command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
    let child = Guarded::spawn("installation", command)?;
    let status = child.wait_at_most(INSTALL_LIMIT)?;
    Ok(status.is_some_and(|status| status.success()))
}
