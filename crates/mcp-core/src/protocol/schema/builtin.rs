//! The built-in validator, over the `jsonschema` crate.
//!
//! Why here: with the feature `jsonschema` a server needs no validator of its own.
//! Invariants: patterns run on a linear-time engine; nothing is fetched; formats are annotations; an instance too deep for
//! the stack is refused before it is walked.
//! Spec: 2026-07-28 basic/index, "JSON Schema Usage"

use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use regex::RegexBuilder;
use serde_json::Value;

use super::precheck::precheck;
use super::{CompiledSchema, MAX_VIOLATIONS, SchemaError, SchemaRole, SchemaValidator, Violation, shorten, walk};

/// As deep as the JSON parser goes.
const MAX_INSTANCE_DEPTH: usize = 128;
/// Checking recurses per level of the instance and per sub-schema nested there; half of what fits 2 MiB unoptimised.
const MAX_RECURSION: usize = 512;
/// Larger instances get their first violation only, because the list is made whole before it is cut.
const MAX_LISTED_NODES: usize = 2000;
/// The most bytes of one compiled pattern, and of the states it keeps while matching.
const MAX_PATTERN_BYTES: usize = 512 * 1024;
const MAX_ECHO_BYTES: usize = 100;

/// Validates JSON Schema 2020-12 (the default) and draft-07 (when `$schema` says so).
///
/// `format` is an annotation. Patterns use linear-time matching: look-around and back-references are refused, as are
/// patterns that compile to more than 512 KiB, more than 256 patterns, references out of the document, and references that
/// apply more than 10,000 sub-schemas to one value or nest more than 64 there. Instances may nest 128 deep, less where a
/// schema nests more than 4 sub-schemas over one value (512 divided by that number).
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct BuiltinValidator;

impl BuiltinValidator {
    /// The validator; it has no settings.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl SchemaValidator for BuiltinValidator {
    fn compile(&self, schema: &Value, role: SchemaRole) -> Result<Arc<dyn CompiledSchema>, SchemaError> {
        let checked = precheck(schema, role)?;
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        let validator = jsonschema::options()
            .with_draft(checked.draft)
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .offline()
            .build(schema)
            .map_err(|error| refusal(&error))?;
        let max_depth = MAX_INSTANCE_DEPTH.min(MAX_RECURSION / checked.height);
        Ok(Arc::new(Compiled { validator, max_depth }))
    }
}

struct Compiled {
    validator: Validator,
    max_depth: usize,
}

impl CompiledSchema for Compiled {
    fn check(&self, instance: &Value) -> Result<(), Vec<Violation>> {
        if !walk::is_shallow(instance, self.max_depth) {
            return Err(vec![Violation::new("", "the value is nested too deep")]);
        }
        if self.validator.is_valid(instance) {
            return Ok(());
        }
        let mut nodes_left = MAX_LISTED_NODES;
        let violations: Vec<_> = if is_small(instance, &mut nodes_left) {
            self.validator.iter_errors(instance).take(MAX_VIOLATIONS).map(|error| violation(&error)).collect()
        } else {
            self.validator.validate(instance).err().iter().map(violation).collect()
        };
        // The quick answer stands even if the long one should find nothing.
        if violations.is_empty() {
            return Err(vec![Violation::new("", "the value does not match its schema")]);
        }
        Err(violations)
    }
}

fn is_small(value: &Value, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match value {
        Value::Object(members) => members.values().all(|member| is_small(member, left)),
        Value::Array(items) => items.iter().all(|item| is_small(item, left)),
        _ => true,
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    Violation::new(error.instance_path().as_str(), &reason(error))
}

/// Says what was wanted; of the instance it shows types and, shortened, names of unwanted members.
fn reason(error: &ValidationError<'_>) -> String {
    let found = type_name(error.instance());
    match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(wanted) } => {
            format!("must be of type {wanted}, not {found}")
        }
        ValidationErrorKind::Required { property } => format!("{property} is required"),
        ValidationErrorKind::FalseSchema => "is not allowed here".to_owned(),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let first = unexpected.first().map_or("", String::as_str);
            let name = shorten(first, MAX_ECHO_BYTES);
            match unexpected.len() {
                0 | 1 => format!("member {name:?} is not allowed"),
                count => format!("member {name:?} and {} more are not allowed", count - 1),
            }
        }
        ValidationErrorKind::PropertyNames { error } => format!("a member's name is refused: {}", reason(error)),
        _ => error.masked_with("the value").to_string(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn refusal(schema_error: &ValidationError<'_>) -> SchemaError {
    let pointer = schema_error.instance_path().as_str().to_owned();
    match (schema_error.kind(), schema_error.instance().as_str()) {
        (ValidationErrorKind::Format { format }, Some(pattern)) if format == "regex" => SchemaError::Pattern {
            pointer,
            pattern: shorten(pattern, MAX_ECHO_BYTES),
            reason: shorten(&pattern_flaw(pattern), MAX_ECHO_BYTES),
        },
        _ => SchemaError::Invalid { pointer, reason: shorten(&reason(schema_error), MAX_ECHO_BYTES) },
    }
}

/// Why the linear-time engine refuses a pattern; the validator itself does not say.
fn pattern_flaw(pattern: &str) -> String {
    match RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build() {
        Err(regex::Error::CompiledTooBig(limit)) => format!("it compiles to more than {limit} bytes"),
        // The last line is the sentence; those before draw a picture.
        Err(error) => error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        Ok(_) => "not an ECMA-262 expression".to_owned(),
    }
}

#[cfg(test)]
mod tests;
