//! `x-mcp-header` annotations: which arguments of a tool travel in HTTP headers as well.
//!
//! Why here: registration refuses a tool whose annotations break a rule, and the HTTP shell compares headers with the
//! body by the same list.
//! Invariants: an annotation in any position but a chain of `properties` refuses the whole schema.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Custom Headers from Tool Parameters"

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{SchemaError, shorten, walk};

const ANNOTATION: &str = "x-mcp-header";
const MAX_ECHO_BYTES: usize = 100;

/// One argument that a client repeats in the header `Mcp-Param-{header}`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirroredParameter {
    /// The header's name without its `Mcp-Param-` prefix, as the schema spells it.
    pub header: String,
    /// Member names from the root of the arguments to the value.
    pub path: Vec<String>,
    /// The declared type, which decides how the value is written.
    pub kind: MirroredKind,
}

impl MirroredParameter {
    /// The value in `arguments`; `None` when absent or null, which means that no header is expected.
    #[must_use]
    pub fn value_in<'arguments>(&self, arguments: &'arguments Value) -> Option<&'arguments Value> {
        let value = self.path.iter().try_fold(arguments, |value, name| value.as_object()?.get(name))?;
        (!value.is_null()).then_some(value)
    }
}

/// The types a mirrored parameter may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MirroredKind {
    /// `"type": "string"`.
    String,
    /// `"type": "integer"`; values stay within ±(2^53 − 1).
    Integer,
    /// `"type": "boolean"`.
    Boolean,
}

/// Extracts the mirrored parameters of an arguments schema, in the order of their paths.
///
/// # Errors
///
/// [`SchemaError::HeaderAnnotation`] for the first broken rule: the header is a non-empty token, unique without regard to
/// case; the annotated property is a string, an integer or a boolean; only `properties` lead to it.
/// [`SchemaError::TooDeep`] for a document that is not worth searching.
pub fn mirrored_parameters(schema: &Value) -> Result<Vec<MirroredParameter>, SchemaError> {
    walk::require_shallow(schema)?;
    let mut search = Search { found: Vec::new(), headers: HashSet::new(), pointer: String::new() };
    if let Value::Object(root) = schema {
        search.visit(root, Some(&mut Vec::new()))?;
    }
    Ok(search.found)
}

struct Search {
    found: Vec<MirroredParameter>,
    headers: HashSet<String>,
    pointer: String,
}

impl Search {
    /// `path` is `None` once anything but `properties` has been passed.
    fn visit(&mut self, schema: &Map<String, Value>, mut path: Option<&mut Vec<String>>) -> Result<(), SchemaError> {
        if let Some(annotation) = schema.get(ANNOTATION) {
            let parameter = self.read(annotation, schema, path.as_deref().map(Vec::as_slice))?;
            self.found.push(parameter);
        }
        for child in walk::children(schema) {
            let Value::Object(below) = child.value else { continue };
            let length = self.pointer.len();
            child.append_to(&mut self.pointer);
            match path.as_deref_mut() {
                Some(path) if child.keyword == "properties" => {
                    path.extend(child.tokens);
                    self.visit(below, Some(path))?;
                    path.pop();
                }
                _ => self.visit(below, None)?,
            }
            self.pointer.truncate(length);
        }
        Ok(())
    }

    fn read(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        path: Option<&[String]>,
    ) -> Result<MirroredParameter, SchemaError> {
        let Some(header) = annotation.as_str() else {
            return Err(self.refuse("the header name is a string".to_owned()));
        };
        let shown = shorten(header, MAX_ECHO_BYTES);
        if header.is_empty() || !header.bytes().all(is_token_byte) {
            return Err(self.refuse(format!("`{}` is not a header token", shown.escape_debug())));
        }
        let path = match path {
            Some(path) if !path.is_empty() => path.to_vec(),
            _ => {
                return Err(
                    self.refuse("only a property reached through `properties` alone can be annotated".to_owned())
                );
            }
        };
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("string") => MirroredKind::String,
            Some("integer") => MirroredKind::Integer,
            Some("boolean") => MirroredKind::Boolean,
            _ => return Err(self.refuse("the property's type must be string, integer or boolean".to_owned())),
        };
        if !self.headers.insert(header.to_ascii_lowercase()) {
            return Err(self.refuse(format!("the header `{shown}` is used twice")));
        }
        Ok(MirroredParameter { header: header.to_owned(), path, kind })
    }

    fn refuse(&self, reason: String) -> SchemaError {
        SchemaError::HeaderAnnotation { pointer: self.pointer.clone(), reason }
    }
}

/// RFC 9110 `tchar`.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn annotated(schema: &Value) -> Result<Vec<MirroredParameter>, SchemaError> {
        mirrored_parameters(schema)
    }

    #[test]
    fn annotations_are_found_through_nested_properties() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "job": {"type": "object", "properties": {
                "priority": {"type": "integer", "x-mcp-header": "Priority"},
                "dry/run": {"type": "boolean", "x-mcp-header": "Dry-Run"},
            }},
        }});
        let found: Vec<_> = annotated(&schema)
            .unwrap()
            .into_iter()
            .map(|parameter| (parameter.header, parameter.path.join(" "), parameter.kind))
            .collect();
        assert_eq!(
            found,
            [
                ("Dry-Run".to_owned(), "job dry/run".to_owned(), MirroredKind::Boolean),
                ("Priority".to_owned(), "job priority".to_owned(), MirroredKind::Integer),
                ("Region".to_owned(), "region".to_owned(), MirroredKind::String),
            ]
        );
    }

    #[test]
    fn an_annotation_in_any_other_position_refuses_the_schema() {
        let leaf = json!({"type": "string", "x-mcp-header": "A"});
        for keyword in [
            "items",
            "additionalProperties",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "propertyNames",
            "unevaluatedProperties",
            "unevaluatedItems",
            "additionalItems",
            "contentSchema",
            "x-unknown",
        ] {
            let schema = json!({"type": "object", "properties": {"p": {keyword: leaf}}});
            assert!(annotated(&schema).is_err(), "{keyword}");
        }
        for keyword in ["allOf", "anyOf", "oneOf", "prefixItems", "items", "x-unknown"] {
            let schema = json!({"type": "object", keyword: [{"properties": {"p": leaf}}]});
            assert!(annotated(&schema).is_err(), "{keyword}");
        }
        for keyword in ["$defs", "definitions", "dependentSchemas", "dependencies", "patternProperties"] {
            let schema = json!({"type": "object", keyword: {"p": leaf}});
            let error = annotated(&schema).unwrap_err();
            assert!(
                matches!(error, SchemaError::HeaderAnnotation { pointer, .. } if pointer == format!("/{keyword}/p"))
            );
        }
        assert!(annotated(&json!({"type": "string", "x-mcp-header": "A"})).is_err(), "root");
    }

    #[test]
    fn names_and_data_that_look_like_annotations_are_left_alone() {
        let schema = json!({"type": "object", "properties": {
            "x-mcp-header": {"type": "string"},
            "data": {
                "const": {"x-mcp-header": "A"},
                "enum": [{"x-mcp-header": "A"}],
                "default": {"x-mcp-header": "A"},
                "examples": [{"x-mcp-header": "A"}],
            },
            "default": {"type": "string", "x-mcp-header": "Default"},
        }, "$defs": {"x-mcp-header": {"type": "string"}}, "dependentRequired": {"x-mcp-header": ["a"]}});
        let found = annotated(&schema).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, ["default"]);
    }

    #[test]
    fn the_header_must_be_a_unique_token() {
        for bad in [json!(""), json!("a b"), json!("a\r\n"), json!("ä"), json!("a:"), json!(1), json!(null)] {
            let schema = json!({"type": "object", "properties": {"p": {"type": "string", "x-mcp-header": bad}}});
            assert!(annotated(&schema).is_err(), "{bad}");
        }
        let twice = json!({"type": "object", "properties": {
            "a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string", "x-mcp-header": "sAME"},
        }});
        let error = annotated(&twice).unwrap_err().to_string();
        assert!(error.contains("/properties/b") && error.contains("twice"), "{error}");
    }

    #[test]
    fn only_strings_integers_and_booleans_can_be_mirrored() {
        for bad in [json!("number"), json!("object"), json!("array"), json!("null"), json!(["string", "null"])] {
            let schema = json!({"type": "object", "properties": {"p": {"type": bad, "x-mcp-header": "A"}}});
            assert!(annotated(&schema).is_err(), "{bad}");
        }
        assert!(annotated(&json!({"type": "object", "properties": {"p": {"x-mcp-header": "A"}}})).is_err());
    }

    #[test]
    fn a_value_is_read_at_its_exact_path() {
        let parameter = MirroredParameter {
            header: "A".to_owned(),
            path: vec!["a".to_owned(), "b".to_owned()],
            kind: MirroredKind::String,
        };
        assert_eq!(parameter.value_in(&json!({"a": {"b": "x"}})), Some(&json!("x")));
        for absent in [json!({"a": {"b": null}}), json!({"a": {}}), json!({"a": [1]}), json!({}), json!(3)] {
            assert_eq!(parameter.value_in(&absent), None);
        }
    }

    #[test]
    fn a_document_too_deep_to_search_is_refused() {
        let mut schema = json!({"type": "string"});
        for _ in 0..40 {
            schema = json!({"properties": {"p": schema}});
        }
        assert_eq!(annotated(&schema), Err(SchemaError::TooDeep));
    }

    proptest! {
        #[test]
        fn any_token_is_taken_and_any_other_text_refused(header in "[ -~]{0,12}") {
            let schema = json!({"type": "object", "properties": {"p": {"type": "string", "x-mcp-header": header}}});
            let token = !header.is_empty() && header.bytes().all(is_token_byte);
            prop_assert_eq!(annotated(&schema).is_ok(), token);
        }
    }
}
