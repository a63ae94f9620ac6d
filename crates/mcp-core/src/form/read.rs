//! From JSON to a form, strictly.
//!
//! Why here: every way to make a form ends here, so that the allowed forms are written down once.
//! Invariants: what is accepted can be written again with the same meaning; defaults satisfy their own field.
//! Spec: 2026-07-28 schema, `PrimitiveSchemaDefinition`

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::{Choices, Field, FormError, FormSchema, Kind, TextFormat, answer};
use crate::protocol::schema::shorten;

const MAX_ECHO_BYTES: usize = 100;

/// Reads a whole form. Required fields come first, in the order of `required`.
pub(super) fn form(schema: &Value) -> Result<FormSchema, FormError> {
    let Value::Object(members) = schema else { return Err(root("a form is a JSON object")) };
    for (keyword, value) in members {
        let fits = match keyword.as_str() {
            "$schema" => value.is_string(),
            "type" => value == "object",
            "properties" => value.is_object(),
            "required" => value.is_array(),
            _ => return Err(root(&format!("`{}` has no place beside the fields", shorten(keyword, MAX_ECHO_BYTES)))),
        };
        if !fits {
            return Err(root(&format!("`{keyword}` has the wrong value")));
        }
    }
    let (Some(_), Some(Value::Object(properties))) = (members.get("type"), members.get("properties")) else {
        return Err(root("`type` and `properties` are needed"));
    };
    let required = match members.get("required") {
        Some(names) => texts(names).map_err(|reason| root(&format!("`required`: {reason}")))?,
        None => Vec::new(),
    };
    if let Some(unknown) = required.iter().find(|name| !properties.contains_key(*name)) {
        return Err(root(&format!("`{}` is required and not a field", shorten(unknown, MAX_ECHO_BYTES))));
    }
    let mut fields = Vec::new();
    for (name, schema) in properties {
        fields.push(field(name, schema, required.contains(name))?);
    }
    fields.sort_by_key(|field| required.iter().position(|name| *name == field.name).unwrap_or(usize::MAX));
    Ok(FormSchema { fields })
}

/// Reads one field.
pub(super) fn field(name: &str, schema: &Value, required: bool) -> Result<Field, FormError> {
    read_field(name, schema, required)
        .map_err(|reason| FormError::Field { field: shorten(name, MAX_ECHO_BYTES), reason })
}

fn read_field(name: &str, schema: &Value, required: bool) -> Result<Field, String> {
    let Value::Object(members) = schema else { return Err("a field is described by a JSON object".to_owned()) };
    let mut keywords = Keywords { members, used: HashSet::from(["type"]) };
    let title = keywords.text("title")?;
    let description = keywords.text("description")?;
    let kind = match members.get("type").and_then(Value::as_str) {
        Some("string") if members.contains_key("enum") || members.contains_key("oneOf") => {
            let choices = keywords.choices("oneOf", true)?;
            Kind::Choice { choices, default: keywords.text("default")? }
        }
        Some("string") => Kind::Text {
            min_length: keywords.count("minLength")?,
            max_length: keywords.count("maxLength")?,
            format: keywords.format()?,
            default: keywords.text("default")?,
        },
        Some(number @ ("integer" | "number")) => Kind::Number {
            is_integer: number == "integer",
            minimum: keywords.number("minimum")?,
            maximum: keywords.number("maximum")?,
            default: keywords.number("default")?,
        },
        Some("boolean") => Kind::Boolean { default: keywords.boolean("default")? },
        Some("array") => Kind::Choices {
            choices: keywords.items()?,
            min_items: keywords.count("minItems")?,
            max_items: keywords.count("maxItems")?,
            default: keywords.texts("default")?,
        },
        _ => {
            let allowed = "a field is a string, integer, number, boolean, or an array of choices";
            return Err(allowed.to_owned());
        }
    };
    keywords.require_all_used()?;
    let field = Field { name: name.to_owned(), title, description, required, kind };
    require_consistent(&field, members.get("default"))?;
    Ok(field)
}

fn require_consistent(field: &Field, default: Option<&Value>) -> Result<(), String> {
    let is_empty_range = match &field.kind {
        Kind::Text { min_length: Some(least), max_length: Some(most), .. }
        | Kind::Choices { min_items: Some(least), max_items: Some(most), .. } => least > most,
        Kind::Number { minimum: Some(least), maximum: Some(most), .. } => answer::is_less(most, least),
        Kind::Text { .. } | Kind::Number { .. } | Kind::Boolean { .. } | Kind::Choice { .. } | Kind::Choices { .. } => {
            false
        }
    };
    if is_empty_range {
        return Err("the least is more than the most".to_owned());
    }
    match default.map(|default| answer::flaws(field, default)).unwrap_or_default().first() {
        Some((_, flaw)) => Err(format!("its default does not fit: {flaw}")),
        None => Ok(()),
    }
}

/// The members of a field's schema, ticked off as they are read.
struct Keywords<'schema> {
    members: &'schema Map<String, Value>,
    used: HashSet<&'static str>,
}

impl<'schema> Keywords<'schema> {
    fn read<T>(
        &mut self,
        keyword: &'static str,
        wanted: &str,
        read: impl FnOnce(&'schema Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.used.insert(keyword);
        let Some(value) = self.members.get(keyword) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| format!("`{keyword}` must be {wanted}"))
    }

    fn text(&mut self, keyword: &'static str) -> Result<Option<String>, String> {
        self.read(keyword, "a string", |value| value.as_str().map(str::to_owned))
    }

    fn count(&mut self, keyword: &'static str) -> Result<Option<u64>, String> {
        self.read(keyword, "a whole number from 0", Value::as_u64)
    }

    fn number(&mut self, keyword: &'static str) -> Result<Option<Number>, String> {
        self.read(keyword, "a number", |value| value.as_number().cloned())
    }

    fn boolean(&mut self, keyword: &'static str) -> Result<Option<bool>, String> {
        self.read(keyword, "true or false", Value::as_bool)
    }

    fn texts(&mut self, keyword: &'static str) -> Result<Option<Vec<String>>, String> {
        self.read(keyword, "an array of distinct strings", |value| texts(value).ok())
    }

    fn format(&mut self) -> Result<Option<TextFormat>, String> {
        self.read("format", "email, uri, date or date-time", |value| {
            TextFormat::ALL.into_iter().find(|format| value == format.name())
        })
    }

    fn choices(&mut self, titles: &'static str, may_be_named: bool) -> Result<Choices, String> {
        let plain = self.texts("enum")?;
        let titled = self.read(titles, "an array of objects with distinct `const` and a `title`", titled)?;
        let names = match may_be_named {
            true => self.read("enumNames", "an array of strings", strings)?,
            false => None,
        };
        let choices = match (plain, titled, names) {
            (Some(values), None, None) => Choices::Plain(values),
            (None, Some(pairs), None) => Choices::Titled(pairs),
            (Some(values), None, Some(names)) if names.len() == values.len() => {
                Choices::Named(values.into_iter().zip(names).collect())
            }
            (Some(_), None, Some(_)) => return Err("`enumNames` must name each of `enum`".to_owned()),
            _ => return Err(format!("choices are listed in either `enum` or `{titles}`")),
        };
        if choices.values().next().is_none() {
            return Err("there is nothing to choose".to_owned());
        }
        Ok(choices)
    }

    fn items(&mut self) -> Result<Choices, String> {
        const WANTED: &str = "choices: strings with `enum`, or `anyOf` with `const` and `title`";
        let members = self
            .read("items", WANTED, Value::as_object)?
            .ok_or_else(|| format!("an array needs `items`, which must be {WANTED}"))?;
        let mut keywords = Keywords { members, used: HashSet::from(["type"]) };
        let choices = keywords.choices("anyOf", false).map_err(|_| format!("`items` must be {WANTED}"))?;
        keywords.require_all_used().map_err(|_| format!("`items` must be {WANTED}"))?;
        match (members.get("type"), &choices) {
            (Some(kind), _) if kind == "string" => Ok(choices),
            (None, Choices::Titled(_)) => Ok(choices),
            _ => Err(format!("`items` must be {WANTED}")),
        }
    }

    fn require_all_used(&self) -> Result<(), String> {
        match self.members.keys().find(|keyword| !self.used.contains(keyword.as_str())) {
            Some(keyword) => {
                Err(format!("`{}` is not allowed for this kind of field", shorten(keyword, MAX_ECHO_BYTES)))
            }
            None => Ok(()),
        }
    }
}

fn titled(value: &Value) -> Option<Vec<(String, String)>> {
    let mut seen = HashSet::new();
    let pair = |entry: &Value| {
        let members = entry.as_object().filter(|members| members.len() == 2)?;
        let value = members.get("const")?.as_str()?.to_owned();
        let title = members.get("title")?.as_str()?.to_owned();
        seen.insert(value.clone()).then_some((value, title))
    };
    value.as_array()?.iter().map(pair).collect()
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn texts(value: &Value) -> Result<Vec<String>, &'static str> {
    let texts = strings(value).ok_or("an array of strings is needed")?;
    let distinct: HashSet<_> = texts.iter().collect();
    if distinct.len() == texts.len() { Ok(texts) } else { Err("a string occurs twice") }
}

fn root(reason: &str) -> FormError {
    FormError::Root { reason: reason.to_owned() }
}
