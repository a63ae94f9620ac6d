//! Bounds and references of a schema, checked before anything is compiled.
//!
//! Why here: the validator behind it trusts its input to be finite; a schema from a registration is not trusted so far.
//! Invariants: a schema that passes is small, stays inside its document, and meets each part of an instance with at most
//! `MAX_EXPANSIONS` sub-schemas, no more than `MAX_CHAIN` of them nested.
//! Spec: 2026-07-28 basic/index, "JSON Schema Usage"; JSON Schema 2020-12 core, "References"

use std::collections::HashMap;
use std::{io, ptr};

use jsonschema::{Draft, Uri, uri};
use serde_json::{Map, Value};

use super::{
    MAX_SCHEMA_BYTES, MAX_SUBSCHEMAS, SchemaError, SchemaRole, push_token, shorten,
    walk::{self, children},
};
use crate::uri_template::percent_decode;

/// The most sub-schemas that may apply to one place of an instance, references followed.
const MAX_EXPANSIONS: usize = 10_000;
/// The longest chain of references and in-place keywords: checking recurses along it.
const MAX_CHAIN: usize = 64;
/// The most `pattern` texts and `patternProperties` names; each compiles to a bounded automaton.
const MAX_PATTERNS: usize = 256;
/// The longest `$id` or reference in bytes.
const MAX_REFERENCE_BYTES: usize = 2048;
/// The most bytes of all sub-schemas' locations together, which a compiled schema keeps for its reports.
const MAX_LOCATION_BYTES: usize = 16 * 1024 * 1024;
const MAX_ECHO_BYTES: usize = 100;
const DEFAULT_BASE: &str = "json-schema:///";

/// What the compiler needs to know about a schema that passed.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) draft: Draft,
    /// The most sub-schemas nested over one place of an instance.
    pub(super) height: usize,
}

/// Checks `schema` within its bounds.
pub(super) fn precheck(schema: &Value, role: SchemaRole) -> Result<Checked, SchemaError> {
    let Value::Object(root) = schema else { return Err(SchemaError::NotAnObject) };
    walk::require_shallow(schema)?;
    let mut counter = Counter { left: MAX_SCHEMA_BYTES };
    serde_json::to_writer(&mut counter, schema).map_err(|_| SchemaError::TooLarge)?;
    if role == SchemaRole::Arguments && root.get("type").and_then(Value::as_str) != Some("object") {
        return Err(SchemaError::RootType);
    }
    let draft = dialect(root.get("$schema"), "")?;
    let height = Document::read(schema, draft)?.require_bounded_expansion()?;
    Ok(Checked { draft, height })
}

fn dialect(declared: Option<&Value>, pointer: &str) -> Result<Draft, SchemaError> {
    let Some(declared) = declared else { return Ok(Draft::Draft202012) };
    let name = declared.as_str().map(|name| name.strip_suffix('#').unwrap_or(name));
    match name {
        Some("https://json-schema.org/draft/2020-12/schema") => Ok(Draft::Draft202012),
        Some("http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema") => Ok(Draft::Draft7),
        _ => Err(SchemaError::UnknownDialect {
            pointer: pointer.to_owned(),
            dialect: shorten(declared.as_str().unwrap_or("not a string"), MAX_ECHO_BYTES),
        }),
    }
}

/// Counts bytes and fails beyond the limit, so that nothing is buffered.
struct Counter {
    left: usize,
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sub-schema; numbered in the order of reading, a parent before its children.
struct Node<'schema> {
    value: &'schema Value,
    /// The parent and the tokens from there; the root has none.
    parent: Option<(usize, Vec<String>)>,
    /// The nearest resource around it, by its node.
    resource: usize,
    in_place: Vec<usize>,
}

struct Document<'schema> {
    draft: Draft,
    nodes: Vec<Node<'schema>>,
    /// By the address of the value, which is unique within the document.
    by_address: HashMap<*const Value, usize>,
    /// Base addresses of the nodes that are resources.
    bases: HashMap<usize, Uri<String>>,
    /// By address without its fragment.
    resources: HashMap<String, usize>,
    anchors: HashMap<(usize, &'schema str), usize>,
    dynamic_anchors: HashMap<&'schema str, Vec<usize>>,
}

impl<'schema> Document<'schema> {
    fn read(schema: &'schema Value, draft: Draft) -> Result<Self, SchemaError> {
        let mut document = Self {
            draft,
            nodes: Vec::new(),
            by_address: HashMap::new(),
            bases: HashMap::new(),
            resources: HashMap::new(),
            anchors: HashMap::new(),
            dynamic_anchors: HashMap::new(),
        };
        document.collect(schema)?;
        for node in 0..document.nodes.len() {
            document.identify(node)?;
        }
        for node in 0..document.nodes.len() {
            document.follow(node)?;
        }
        Ok(document)
    }

    /// Numbers all sub-schemas.
    fn collect(&mut self, schema: &'schema Value) -> Result<(), SchemaError> {
        self.push(schema, None)?;
        let mut location_lengths = vec![0_usize];
        let mut location_bytes = 0_usize;
        let mut patterns = 0_usize;
        let mut next = 0;
        while let Some(node) = self.nodes.get(next) {
            if let Value::Object(members) = node.value {
                patterns += usize::from(members.contains_key("pattern"));
                patterns += members.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
                for child in children(members) {
                    let mut step = String::new();
                    child.append_to(&mut step);
                    location_lengths.push(location_lengths[next] + step.len());
                    location_bytes += location_lengths[next] + step.len();
                    let in_place = child.is_in_place();
                    let mut tokens = vec![child.keyword.to_owned()];
                    tokens.extend(child.tokens);
                    let number = self.push(child.value, Some((next, tokens)))?;
                    if in_place {
                        self.nodes[next].in_place.push(number);
                    }
                }
            }
            if patterns > MAX_PATTERNS {
                return Err(SchemaError::TooMany(format!("more than {MAX_PATTERNS} patterns")));
            }
            if location_bytes > MAX_LOCATION_BYTES {
                return Err(SchemaError::TooMany("too long names for its number of sub-schemas".to_owned()));
            }
            next += 1;
        }
        Ok(())
    }

    fn push(&mut self, value: &'schema Value, parent: Option<(usize, Vec<String>)>) -> Result<usize, SchemaError> {
        let number = self.nodes.len();
        if number == MAX_SUBSCHEMAS {
            return Err(SchemaError::TooMany(format!("more than {MAX_SUBSCHEMAS} sub-schemas")));
        }
        self.by_address.insert(ptr::from_ref(value), number);
        self.nodes.push(Node { value, parent, resource: 0, in_place: Vec::new() });
        Ok(number)
    }

    /// Notes the node's dialect, address and anchors. Parents come first.
    fn identify(&mut self, number: usize) -> Result<(), SchemaError> {
        let parent = self.nodes[number].parent.as_ref().map(|(parent, _)| *parent);
        let resource = parent.map_or(0, |parent| self.nodes[parent].resource);
        self.nodes[number].resource = resource;
        let members = self.nodes[number].value.as_object();
        if let Some(declared) = members.and_then(|members| members.get("$schema"))
            && dialect(Some(declared), &self.pointer(number))? != self.draft
        {
            return Err(SchemaError::UnknownDialect {
                pointer: self.pointer(number),
                dialect: shorten(declared.as_str().unwrap_or_default(), MAX_ECHO_BYTES),
            });
        }
        // Draft-07 ignores what stands beside `$ref`, `$id` included.
        let ignored = self.draft == Draft::Draft7 && members.is_some_and(|members| members.contains_key("$ref"));
        let id = self.text(number, "$id")?.filter(|_| !ignored);
        let (address, fragment) = id.map_or(("", ""), |id| id.split_once('#').unwrap_or((id, "")));
        if parent.is_none() || !address.is_empty() {
            let base = match parent {
                Some(_) => uri::resolve_against(&self.bases[&resource].borrow(), address),
                None if address.is_empty() => uri::from_str(DEFAULT_BASE),
                None => uri::from_str(address),
            };
            let base = base.map_err(|error| self.invalid(number, &error.to_string()))?;
            if self.resources.insert(base.as_str().to_owned(), number).is_some() {
                return Err(self.invalid(number, "another sub-schema has the same $id"));
            }
            self.bases.insert(number, base);
            self.nodes[number].resource = number;
        }
        let resource = self.nodes[number].resource;
        let dynamic = self.text(number, "$dynamicAnchor")?;
        let old_style = (self.draft == Draft::Draft7 && !fragment.is_empty()).then_some(fragment);
        for anchor in [self.text(number, "$anchor")?, dynamic, old_style].into_iter().flatten() {
            self.anchors.entry((resource, anchor)).or_insert(number);
        }
        if let Some(anchor) = dynamic {
            self.dynamic_anchors.entry(anchor).or_default().push(number);
        }
        Ok(())
    }

    /// Adds the targets of the node's references to what applies in place.
    fn follow(&mut self, number: usize) -> Result<(), SchemaError> {
        for keyword in ["$ref", "$dynamicRef"] {
            let Some(reference) = self.text(number, keyword)? else { continue };
            let target = self.resolve(number, keyword, reference)?;
            if keyword == "$ref" && self.draft == Draft::Draft7 {
                self.nodes[number].in_place.clear();
            }
            self.nodes[number].in_place.push(target);
            let dynamic = reference.split_once('#').and_then(|(_, anchor)| self.dynamic_anchors.get(anchor));
            if keyword == "$dynamicRef"
                && let Some(others) = dynamic
            {
                // Which one applies depends on the way the instance is reached: all of them may.
                let others = others.iter().filter(|other| **other != target);
                self.nodes[number].in_place.extend(others);
            }
        }
        Ok(())
    }

    fn resolve(&self, number: usize, keyword: &str, reference: &str) -> Result<usize, SchemaError> {
        let place = || {
            let mut pointer = self.pointer(number);
            push_token(&mut pointer, keyword);
            (pointer, shorten(reference, MAX_ECHO_BYTES))
        };
        let unresolved = || {
            let (pointer, reference) = place();
            SchemaError::UnresolvedReference { pointer, reference }
        };
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if address.is_empty() {
            self.nodes[number].resource
        } else {
            let base = &self.bases[&self.nodes[number].resource];
            let address = uri::resolve_against(&base.borrow(), address).map_err(|_| unresolved())?;
            self.resources.get(address.as_str()).copied().ok_or_else(|| {
                let (pointer, reference) = place();
                SchemaError::ExternalReference { pointer, reference }
            })?
        };
        let fragment = percent_decode(fragment).ok_or_else(unresolved)?;
        if fragment.is_empty() {
            Ok(resource)
        } else if fragment.starts_with('/') {
            let value = self.nodes[resource].value.pointer(&fragment).ok_or_else(unresolved)?;
            self.by_address.get(&ptr::from_ref(value)).copied().ok_or_else(unresolved)
        } else {
            self.anchors.get(&(resource, fragment.as_str())).copied().ok_or_else(unresolved)
        }
    }

    /// Refuses cycles of references and explosions of them; tells the greatest height.
    fn require_bounded_expansion(&self) -> Result<usize, SchemaError> {
        let mut reaches = vec![Reach::Unknown; self.nodes.len()];
        let mut greatest = 1;
        for number in 0..self.nodes.len() {
            let (_, height) = self.measure(number, MAX_CHAIN, &mut reaches)?;
            greatest = greatest.max(height);
        }
        Ok(greatest)
    }

    /// How many sub-schemas apply through this one, and how deeply nested.
    fn measure(&self, number: usize, left: usize, reaches: &mut [Reach]) -> Result<(usize, usize), SchemaError> {
        match reaches[number] {
            Reach::Known { count, height } if height <= left => return Ok((count, height)),
            Reach::Underway => return Err(SchemaError::EndlessReference { pointer: self.pointer(number) }),
            Reach::Unknown if left > 0 => {}
            Reach::Unknown | Reach::Known { .. } => {
                return Err(SchemaError::TooMany(format!("chains of more than {MAX_CHAIN} references")));
            }
        }
        reaches[number] = Reach::Underway;
        let (mut count, mut height) = (1_usize, 1);
        for next in &self.nodes[number].in_place {
            let (below, depth) = self.measure(*next, left - 1, reaches)?;
            count = count.saturating_add(below);
            height = height.max(depth + 1);
        }
        if count > MAX_EXPANSIONS {
            return Err(SchemaError::TooMany(format!(
                "references that expand to more than {MAX_EXPANSIONS} sub-schemas"
            )));
        }
        reaches[number] = Reach::Known { count, height };
        Ok((count, height))
    }

    fn text(&self, number: usize, keyword: &str) -> Result<Option<&'schema str>, SchemaError> {
        let Some(text) = self.nodes[number].value.get(keyword).and_then(Value::as_str) else { return Ok(None) };
        if text.len() > MAX_REFERENCE_BYTES {
            return Err(self.invalid(number, &format!("{keyword} is longer than {MAX_REFERENCE_BYTES} bytes")));
        }
        Ok(Some(text))
    }

    fn invalid(&self, number: usize, reason: &str) -> SchemaError {
        SchemaError::Invalid { pointer: self.pointer(number), reason: shorten(reason, MAX_ECHO_BYTES) }
    }

    fn pointer(&self, mut number: usize) -> String {
        let mut steps = Vec::new();
        while let Some((parent, tokens)) = &self.nodes[number].parent {
            steps.push(tokens);
            number = *parent;
        }
        let mut pointer = String::new();
        for token in steps.into_iter().rev().flatten() {
            push_token(&mut pointer, token);
        }
        pointer
    }
}

#[derive(Clone, Copy)]
enum Reach {
    Unknown,
    Underway,
    Known { count: usize, height: usize },
}
