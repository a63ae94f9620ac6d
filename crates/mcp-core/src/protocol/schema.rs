//! JSON Schemas of tools: the validator seam, the bounded report of a failed check, mirrored parameters.
//!
//! Why here: the registry compiles at registration and the call path checks; both speak to one pure trait, so that the
//! built-in validator stays an optional dependency.
//! Invariants: nothing here does I/O or resolves anything outside the document; a report never echoes a large value.
//! Spec: 2026-07-28 server/tools, "Tool" and "Output Schema"; basic/index, "JSON Schema Usage"

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

#[cfg(feature = "jsonschema")]
mod builtin;
mod mirror;
#[cfg(feature = "jsonschema")]
mod precheck;
mod walk;

#[cfg(feature = "jsonschema")]
pub use builtin::BuiltinValidator;
pub use mirror::{MirroredKind, MirroredParameter, mirrored_parameters};

/// The deepest nesting of objects and arrays in a schema, the root counting as one.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// The most sub-schemas in one schema.
pub const MAX_SUBSCHEMAS: usize = 10_000;
/// The most bytes of a schema's compact JSON text.
pub const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
/// The most violations one check reports.
pub const MAX_VIOLATIONS: usize = 8;

const MAX_PATH_BYTES: usize = 256;
const MAX_REASON_BYTES: usize = 240;

/// What a schema describes; decides the rules for its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaRole {
    /// A tool's arguments: the root says `"type": "object"`.
    Arguments,
    /// A tool's structured result: any root.
    Result,
}

/// Turns schemas into checkers. Compiling happens once per registration, checking on every call.
pub trait SchemaValidator: Send + Sync + 'static {
    /// Compiles `schema`.
    ///
    /// # Errors
    ///
    /// Names what is wrong and where; a schema that would reach outside the document, or whose checking could not be
    /// bounded, is refused as well.
    fn compile(&self, schema: &Value, role: SchemaRole) -> Result<Arc<dyn CompiledSchema>, SchemaError>;
}

/// A schema ready to check instances; shared between calls.
pub trait CompiledSchema: Send + Sync + 'static {
    /// Checks one instance.
    ///
    /// # Errors
    ///
    /// Between one and [`MAX_VIOLATIONS`] violations.
    fn check(&self, instance: &Value) -> Result<(), Vec<Violation>>;
}

/// One way in which an instance differs from its schema; fit for a model or a person to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// JSON pointer into the instance, empty for its root; cut with an ellipsis beyond 256 bytes.
    pub path: String,
    /// What is wrong; cut with an ellipsis beyond 240 bytes.
    pub reason: String,
}

impl Violation {
    /// Makes a violation, cutting both texts to their bounds.
    #[must_use]
    pub fn new(path: &str, reason: &str) -> Self {
        Self { path: shorten(path, MAX_PATH_BYTES), reason: shorten(reason, MAX_REASON_BYTES) }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            formatter.write_str(&self.reason)
        } else {
            write!(formatter, "{}: {}", self.path, self.reason)
        }
    }
}

/// Why a schema is refused. Pointers are JSON pointers into the schema, empty for its root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The root is no object.
    #[error("a schema is a JSON object")]
    NotAnObject,
    /// The root of an arguments schema does not say `"type": "object"`.
    #[error("the root of an arguments schema must have \"type\": \"object\"")]
    RootType,
    /// Nested deeper than [`MAX_SCHEMA_DEPTH`].
    #[error("the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")]
    TooDeep,
    /// More text than [`MAX_SCHEMA_BYTES`].
    #[error("the schema is larger than {MAX_SCHEMA_BYTES} bytes")]
    TooLarge,
    /// Another size bound; the text names it.
    #[error("the schema has {0}")]
    TooMany(String),
    /// `$schema` names a dialect other than 2020-12 and draft-07, or not the root's.
    #[error("unsupported dialect `{dialect}` at `{pointer}`: use 2020-12 or draft-07 throughout")]
    UnknownDialect {
        /// Where `$schema` stands.
        pointer: String,
        /// What it says.
        dialect: String,
    },
    /// A reference that leaves the document; nothing is ever fetched.
    #[error("`{reference}` at `{pointer}` refers outside the schema")]
    ExternalReference {
        /// Where the reference stands.
        pointer: String,
        /// What it says.
        reference: String,
    },
    /// A reference to nothing in the document.
    #[error("`{reference}` at `{pointer}` does not name a sub-schema")]
    UnresolvedReference {
        /// Where the reference stands.
        pointer: String,
        /// What it says.
        reference: String,
    },
    /// References lead back to this sub-schema without consuming any of the instance.
    #[error("the sub-schema at `{pointer}` refers back to itself without consuming any of the instance")]
    EndlessReference {
        /// The sub-schema where the cycle was met.
        pointer: String,
    },
    /// A pattern that the linear-time engine does not take.
    #[error("the pattern `{pattern}` at `{pointer}` is not usable: {reason}")]
    Pattern {
        /// Where the pattern stands.
        pointer: String,
        /// The pattern.
        pattern: String,
        /// Why not.
        reason: String,
    },
    /// Not a valid schema in its dialect.
    #[error("invalid schema at `{pointer}`: {reason}")]
    Invalid {
        /// Where.
        pointer: String,
        /// What is wrong.
        reason: String,
    },
    /// An `x-mcp-header` annotation breaks its rules.
    #[error("invalid `x-mcp-header` at `{pointer}`: {reason}")]
    HeaderAnnotation {
        /// The annotated sub-schema.
        pointer: String,
        /// The broken rule.
        reason: String,
    },
}

/// Cuts `text` to at most `limit` bytes, the ellipsis included, on a character boundary.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub(ELLIPSIS.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", &text[..end])
}

/// Appends one reference token to a JSON pointer.
pub(crate) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_on_a_character_boundary() {
        let violation = Violation::new(&"ä".repeat(300), &"日".repeat(300));
        assert!(violation.path.len() <= MAX_PATH_BYTES && violation.path.ends_with('…'));
        assert!(violation.reason.len() <= MAX_REASON_BYTES && violation.reason.ends_with('…'));
    }

    #[test]
    fn short_texts_are_kept_whole() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(Violation::new("/a", "wrong").to_string(), "/a: wrong");
        assert_eq!(Violation::new("", "wrong").to_string(), "wrong");
    }

    #[test]
    fn pointer_tokens_are_escaped() {
        let mut pointer = String::new();
        push_token(&mut pointer, "a/b~c");
        assert_eq!(pointer, "/a~1b~0c");
    }
}
