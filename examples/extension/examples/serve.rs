//! Serves the skills of a folder on stdin and stdout: `cargo run -p skills-extension --example serve -- FOLDER`.
//!
//! Why here: a whole server of an extension, to be started by a client.

use std::error::Error;

use mcp_core::Server;
use skills_extension::Skills;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: serve FOLDER")?;
    let skills = Skills::from_dir(&folder)?;
    let server = skills.install(Server::builder("skills", env!("CARGO_PKG_VERSION"))).build()?;
    Ok(mcp_stdio::run(server)?)
}
