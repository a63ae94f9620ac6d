//! Agent Skills over MCP: the extension `io.modelcontextprotocol/skills`, written as an outsider would write one.
//!
//! A skill is a folder with a file `SKILL.md` of instructions for a model. [`Skills`] serves some: every file as a resource,
//! and three methods that say which skills and files there are.
//!
//! ```
//! use skills_extension::{Skill, Skills};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = "---\nname: greet\ndescription: How guests are greeted here\n---\n\nBow.\n";
//! let skills = Skills::new([Skill::new("greet", [("SKILL.md", text)])?])?;
//! let server = skills.install(mcp_core::Server::builder("house", "1.0.0")).build()?;
//! # let _ = server;
//! # Ok(())
//! # }
//! ```
//!
//! Read `extension.rs` for what an extension is to the engine; the rest is about skills.
//!
//! Spec: the extension `io.modelcontextprotocol/skills`, SEP-2640, for revisions from 2026-07-28.

mod address;
mod extension;
mod files;
mod folder;
mod header;
mod skill;

pub use header::{HeaderError, MAX_HEADER_BYTES};
pub use skill::{MAX_SKILL_BYTES, MAX_SKILL_FILES, Skill, SkillError, Skills};

/// The identifier of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

// The page's code is compiled and run with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
