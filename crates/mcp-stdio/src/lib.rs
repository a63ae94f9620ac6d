//! The Model Context Protocol over lines of text: one message per line, over stdin and stdout or any pair of byte streams.
//!
//! A server in a process of its own is one call of [`run`]:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = mcp_core::Server::builder("greeter", "1.0.0").build()?;
//! mcp_stdio::run(server)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Pipe`] carries the same lines over anything else that reads and writes bytes, a pair in memory included.

mod lines;
mod pipe;
#[cfg(feature = "server")]
mod stdio;
#[cfg(feature = "server")]
mod threads;

pub use lines::{DEFAULT_MAX_LINE, LineTooLong, Lines};
pub use pipe::{MemoryPipe, Pipe, PipeReader, PipeWriter, pair};
#[cfg(feature = "server")]
pub use stdio::{PipeError, run, serve_stdio};

// The page's code is compiled with the documentation.
#[cfg(all(doctest, feature = "server"))]
#[doc = include_str!("../README.md")]
struct Readme;
