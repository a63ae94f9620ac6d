//! Streamable HTTP shell for the Model Context Protocol engine, on hyper.

pub mod codec;
