//! The extension as a client meets it.

#[cfg(test)]
mod skills;
