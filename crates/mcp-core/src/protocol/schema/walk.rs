//! Where sub-schemas stand inside a schema.
//!
//! Why here: the bounds, the reference check and the search for annotations must agree on what is a schema and what is
//! only data or a name.
//! Invariants: unknown keywords count as holding schemas, because references and readers may reach into them; the values
//! of `const`, `enum`, `default` and `examples` are data and are never entered.
//! Spec: JSON Schema 2020-12 core, "A Vocabulary for Applying Subschemas"; draft-07, "Keywords for Applying Subschemas"

use serde_json::{Map, Value};

use super::{MAX_SCHEMA_DEPTH, SchemaError, push_token};

/// A sub-schema one step below another: an object, or a boolean where only a schema can stand.
pub(super) struct Child<'schema> {
    pub(super) keyword: &'schema str,
    /// The tokens after the keyword: a member name, an index, both or none.
    pub(super) tokens: Vec<String>,
    pub(super) value: &'schema Value,
}

impl Child<'_> {
    /// Whether this sub-schema applies to the same instance location as its parent.
    #[cfg(feature = "jsonschema")]
    pub(super) fn is_in_place(&self) -> bool {
        matches!(
            self.keyword,
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies"
        )
    }

    pub(super) fn append_to(&self, pointer: &mut String) {
        push_token(pointer, self.keyword);
        for token in &self.tokens {
            push_token(pointer, token);
        }
    }
}

/// The sub-schemas directly below `schema`.
pub(super) fn children(schema: &Map<String, Value>) -> Vec<Child<'_>> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        match keyword.as_str() {
            "const" | "enum" | "default" | "examples" => {}
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies"
            | "dependentRequired" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if value.is_object() || value.is_boolean() {
                        found.push(Child { keyword, tokens: vec![name.clone()], value });
                    }
                }
            }
            _ => collect(keyword, value, &mut Vec::new(), &mut found),
        }
    }
    found
}

fn collect<'schema>(
    keyword: &'schema str,
    value: &'schema Value,
    tokens: &mut Vec<String>,
    found: &mut Vec<Child<'schema>>,
) {
    match value {
        Value::Object(_) => found.push(Child { keyword, tokens: tokens.clone(), value }),
        Value::Bool(_) if takes_schema(keyword) => found.push(Child { keyword, tokens: tokens.clone(), value }),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                tokens.push(index.to_string());
                collect(keyword, item, tokens, found);
                tokens.pop();
            }
        }
        _ => {}
    }
}

fn takes_schema(keyword: &str) -> bool {
    matches!(
        keyword,
        "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "items"
            | "prefixItems"
            | "additionalItems"
            | "contains"
            | "additionalProperties"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema"
    )
}

/// Refuses a document nested deeper than [`MAX_SCHEMA_DEPTH`], so that everything after may recurse.
pub(super) fn require_shallow(schema: &Value) -> Result<(), SchemaError> {
    if is_shallow(schema, MAX_SCHEMA_DEPTH) { Ok(()) } else { Err(SchemaError::TooDeep) }
}

/// Whether `value` nests at most `limit` objects and arrays; never recurses deeper than that.
pub(super) fn is_shallow(value: &Value, limit: usize) -> bool {
    match value {
        Value::Object(members) => limit > 0 && members.values().all(|member| is_shallow(member, limit - 1)),
        Value::Array(items) => limit > 0 && items.iter().all(|item| is_shallow(item, limit - 1)),
        _ => true,
    }
}
