//! The published JSON schema of each revision, where it is on the machine.
//!
//! Why here: snapshots and random values are held against the same definitions, made stricter in the same way.
//! Invariants: nothing of the specification is in this repository; a member that a definition does not name is a fault,
//! though the published schemas let it pass.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jsonschema::Validator;
use mcp_wire::Revision;
use serde_json::{Map, Value, json};

/// The schema of one revision.
pub(crate) struct Schemas {
    document: Map<String, Value>,
    /// Where its definitions are: `definitions` or `$defs`.
    place: &'static str,
    compiled: Mutex<BTreeMap<String, Validator>>,
}

/// The schema of the revision, in the folder that `MCP_SPEC_SCHEMA` names, or else beside the repository; without it the
/// test says so.
pub(crate) fn published(revision: Revision, test: &str) -> Option<Schemas> {
    let file = folder().join(format!("{revision}.json"));
    let Ok(text) = fs::read_to_string(&file) else {
        say(&format!("NOT RUN: {test}: {revision}.json is not here (MCP_SPEC_SCHEMA may name its folder)"));
        return None;
    };
    let mut document: Map<String, Value> = serde_json::from_str(&text).expect("a published schema is JSON");
    let place = if document.contains_key("$defs") { "$defs" } else { "definitions" };
    for (name, definition) in document[place].as_object_mut().expect("definitions have names") {
        if name.ends_with("MetaObject") {
            continue;
        }
        // Every request has metadata, though the newest schema does not name it where the request is a question.
        if name.contains("Request")
            && let Some(properties) = definition.get_mut("properties").and_then(Value::as_object_mut)
        {
            properties.entry("_meta").or_insert(Value::Bool(true));
        }
        close(definition);
    }
    Some(Schemas { document, place, compiled: Mutex::default() })
}

impl Schemas {
    /// Whether the value is what the definition says, and nothing more.
    pub(crate) fn check(&self, definition: &str, value: &Value) -> Result<(), String> {
        let mut compiled = self.compiled.lock().unwrap();
        let validator = compiled.entry(definition.to_owned()).or_insert_with(|| self.compile(definition));
        let faults: Vec<String> =
            validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
        if faults.is_empty() { Ok(()) } else { Err(format!("no {definition}: {}\n{value:#}", faults.join("; "))) }
    }

    /// Whether there is such a definition.
    pub(crate) fn has(&self, definition: &str) -> bool {
        self.document[self.place].get(definition).is_some()
    }

    /// The definitions that a union lists.
    pub(crate) fn members(&self, union: &str) -> BTreeSet<String> {
        let listed = self.document[self.place][union]["anyOf"].as_array().into_iter().flatten();
        listed.filter_map(|member| member["$ref"].as_str()?.rsplit('/').next().map(ToOwned::to_owned)).collect()
    }

    fn compile(&self, definition: &str) -> Validator {
        assert!(self.has(definition), "no definition is called {definition}");
        let mut schema = self.document.clone();
        schema.insert("allOf".to_owned(), json!([{ "$ref": format!("#/{}/{definition}", self.place) }]));
        let schema = Value::Object(schema);
        jsonschema::options().should_validate_formats(true).build(&schema).expect("a published schema compiles")
    }
}

/// Refuses members that an object does not name, wherever the schema does not say that there may be others.
fn close(schema: &mut Value) {
    let members = match schema {
        Value::Array(schemas) => return schemas.iter_mut().for_each(close),
        Value::Object(members) => members,
        _ => return,
    };
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        // Definitions of older messages leave out what every frame has.
        if properties.contains_key("method") {
            for name in ["jsonrpc", "id"] {
                properties.entry(name).or_insert(Value::Bool(true));
            }
            // Every request has it, though each older definition names its own parameters alone.
            if let Some(parameters) =
                properties.get_mut("params").and_then(|params| params.get_mut("properties")?.as_object_mut())
            {
                parameters.entry("_meta").or_insert(Value::Bool(true));
            }
        }
        for (name, property) in properties.iter_mut() {
            // These are open, though not every revision's schema says so.
            if !matches!(name.as_str(), "_meta" | "inputSchema" | "outputSchema") {
                close(property);
            }
        }
        members.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    for keyword in ["anyOf", "items", "additionalProperties"] {
        members.get_mut(keyword).into_iter().for_each(close);
    }
}

fn folder() -> PathBuf {
    match env::var_os("MCP_SPEC_SCHEMA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/spec/schema"),
    }
}

#[expect(clippy::print_stdout, reason = "what a test did not cover is said by name")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}
