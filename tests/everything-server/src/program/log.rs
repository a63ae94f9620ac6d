//! The log, on stderr.
//!
//! Why here: a program's log is installed once, by the program.
//! Invariants: nothing is written to stdout; in JSON, each line is one object.

use std::error::Error;
use std::fs;
use std::io;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt};

use super::options::{LogFormat, Options, filter};

/// What is logged, to be replaced while the program runs.
pub(crate) type FilterHandle = Handle<Targets, Registry>;

/// Installs the log.
pub(crate) fn write_to_stderr(options: &Options) -> Result<FilterHandle, Box<dyn Error>> {
    let (filter, handle) = reload::Layer::new(wanted(options)?);
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(false);
    let lines = match options.log_format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).try_init()?;
    Ok(handle)
}

/// What is to be logged now.
pub(super) fn wanted(options: &Options) -> Result<Targets, Box<dyn Error>> {
    let Some(path) = &options.log_level_file else { return Ok(options.log_level.0.clone()) };
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(filter(&text).map_err(|error| format!("{}: {error}", path.display()))?.0)
}
