//! From a Rust type to a form, by way of the schema that schemars derives.
//!
//! Why here: schemars speaks all of JSON Schema; what a form can say of it is rewritten, the rest refused.
//! Invariants: the result passes the strict reading of hand-written forms.
//! Spec: 2026-07-28 client/elicitation, "Requested Schema"

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{FormError, FormSchema, read};

const ALLOWED: &str =
    "a form takes text, numbers, booleans, enums without payload, and lists or options of those enums or values";
/// References in a row; a type that needs more refers to itself.
const MAX_REFERENCES: usize = 16;

pub(super) fn form_of<T: JsonSchema>() -> Result<FormSchema, FormError> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    let root = |reason: &str| FormError::Root { reason: reason.to_owned() };
    let Value::Object(mut members) = schema else { return Err(root("the type is no struct with named fields")) };
    let definitions = match members.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    for annotation in ["$schema", "title", "description", "additionalProperties"] {
        members.remove(annotation);
    }
    let is_struct = members.get("type").is_some_and(|kind| kind == "object")
        && members.keys().all(|keyword| matches!(keyword.as_str(), "type" | "properties" | "required"));
    if !is_struct {
        return Err(root("the type is no struct with named fields"));
    }
    let mut required: Vec<Value> = match members.remove("required") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    let mut fields = Map::new();
    if let Some(Value::Object(properties)) = members.remove("properties") {
        for (name, schema) in properties {
            let field = rewrite(schema, &definitions)
                .map_err(|reason| FormError::Field { field: name.clone(), reason: reason.to_owned() })?;
            if field.is_nullable {
                required.retain(|required| *required != name);
            }
            fields.insert(name, Value::Object(field.members));
        }
    }
    read::form(&json!({"type": "object", "properties": fields, "required": required}))
}

struct Rewritten {
    members: Map<String, Value>,
    is_nullable: bool,
}

/// Brings a field's schema into an allowed form as far as it has one; the strict reading judges the rest.
fn rewrite(schema: Value, definitions: &Map<String, Value>) -> Result<Rewritten, &'static str> {
    let Rewritten { mut members, is_nullable } = flatten(schema, definitions, MAX_REFERENCES)?;
    for annotation in ["examples", "deprecated", "readOnly", "writeOnly", "$comment"] {
        members.remove(annotation);
    }
    // The null of an option or unit is the field's absence.
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    fold_choices(&mut members, "oneOf")?;
    match members.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => {
            members.remove("format");
        }
        Some("array") => {
            let items = members.remove("items").ok_or(ALLOWED)?;
            let Rewritten { members: mut items, is_nullable: false } = flatten(items, definitions, MAX_REFERENCES)?
            else {
                return Err(ALLOWED);
            };
            fold_choices(&mut items, "anyOf")?;
            if !items.contains_key("enum") && !items.contains_key("anyOf") {
                return Err(ALLOWED);
            }
            // The title and description of the choices' type have no place on the items.
            items.retain(|keyword, _| matches!(keyword.as_str(), "type" | "enum" | "anyOf"));
            members.insert("items".to_owned(), items.into());
            members.remove("uniqueItems");
        }
        Some("string" | "boolean") => {}
        _ => return Err(ALLOWED),
    }
    Ok(Rewritten { members, is_nullable })
}

/// Follows references and takes `null` out of the alternatives. What stands beside a reference goes before what it names.
fn flatten(schema: Value, definitions: &Map<String, Value>, left: usize) -> Result<Rewritten, &'static str> {
    let Value::Object(mut members) = schema else { return Err(ALLOWED) };
    let mut is_nullable = false;
    let mut target = None;
    if let Some(reference) = members.remove("$ref") {
        let name = reference.as_str().and_then(|reference| reference.strip_prefix("#/$defs/")).ok_or(ALLOWED)?;
        let name = name.replace("~1", "/").replace("~0", "~");
        target = Some(definitions.get(&name).cloned().ok_or(ALLOWED)?);
    } else if let Some(Value::Array(alternatives)) = members.get_mut("anyOf") {
        let before = alternatives.len();
        alternatives.retain(|alternative| alternative.get("type").is_none_or(|kind| kind != "null"));
        is_nullable = alternatives.len() < before;
        if alternatives.len() > 1 {
            return Err(ALLOWED);
        }
        target = Some(alternatives.pop().ok_or(ALLOWED)?);
        members.remove("anyOf");
    }
    if let Some(target) = target {
        let left = left.checked_sub(1).ok_or(ALLOWED)?;
        let mut below = flatten(target, definitions, left)?;
        below.members.append(&mut members);
        return Ok(Rewritten { members: below.members, is_nullable: is_nullable || below.is_nullable });
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        let before = types.len();
        types.retain(|kind| kind != "null");
        is_nullable = types.len() < before;
        let only = types.pop().filter(|_| types.is_empty()).ok_or(ALLOWED)?;
        members.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    Ok(Rewritten { members, is_nullable })
}

/// Gathers the variants of an enum without payload: plain if none has a title or documentation, titled under `titles`
/// otherwise.
fn fold_choices(members: &mut Map<String, Value>, titles: &str) -> Result<(), &'static str> {
    if let Some(only) = members.remove("const") {
        members.insert("enum".to_owned(), json!([only]));
    }
    let Some(variants) = members.remove("oneOf") else { return Ok(()) };
    let mut choices: Vec<(Value, Option<Value>)> = Vec::new();
    for variant in variants.as_array().into_iter().flatten() {
        let title = variant.get("title").or_else(|| variant.get("description")).cloned();
        match (variant.get("const"), variant.get("enum")) {
            (Some(value), None) => choices.push((value.clone(), title)),
            (None, Some(Value::Array(values))) => {
                choices.extend(values.iter().map(|value| (value.clone(), title.clone())))
            }
            _ => return Err(ALLOWED),
        }
    }
    if choices.iter().any(|(value, _)| !value.is_string()) {
        return Err(ALLOWED);
    }
    members.insert("type".to_owned(), "string".into());
    if choices.iter().all(|(_, title)| title.is_none()) {
        let values: Vec<_> = choices.into_iter().map(|(value, _)| value).collect();
        members.insert("enum".to_owned(), values.into());
    } else {
        let titled: Vec<_> = choices
            .into_iter()
            .map(|(value, title)| json!({"const": value, "title": title.unwrap_or_else(|| value.clone())}))
            .collect();
        members.insert(titles.to_owned(), titled.into());
    }
    Ok(())
}
