//! Forms for elicitation: the flat schemas a client can show, and the check of what comes back.
//!
//! Why here: a question is built once, from a Rust type, by hand or from JSON, and its answer is checked by the same rules
//! on every transport.
//! Invariants: a `FormSchema` is always within the allowed forms; its fields keep the order a reader should meet them in.
//! Spec: 2026-07-28 client/elicitation, "Requested Schema"; 2025-06-18 client/elicitation, "Requested Schema"

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Number, Value};

use crate::protocol::schema::Violation;

mod answer;
mod builder;
#[cfg(feature = "schemars")]
mod derive;
mod read;

pub use builder::{FormBuilder, FormField};

/// A form: a flat object of texts, numbers, booleans and choices from fixed lists.
///
/// Made from a Rust type with [`of`](Self::of), from JSON with [`from_value`](Self::from_value) or piece by piece with
/// [`builder`](Self::builder). Serializes as the `requestedSchema` of an elicitation, required fields first where the order
/// was not chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct FormSchema {
    fields: Vec<Field>,
}

impl FormSchema {
    /// Starts a form without fields.
    pub fn builder() -> FormBuilder {
        FormBuilder::new()
    }

    /// Derives the form of a struct.
    ///
    /// Documentation becomes descriptions, `Option` and `#[serde(default)]` make a field optional, enums without payload
    /// become choices (titled as soon as one variant has a title or documentation), and a `Vec` or set of those a multiple
    /// choice. Number formats are dropped, their ranges kept.
    ///
    /// # Errors
    ///
    /// Names the first field that no form can hold.
    #[cfg(feature = "schemars")]
    pub fn of<T: schemars::JsonSchema>() -> Result<Self, FormError> {
        derive::form_of::<T>()
    }

    /// Reads a hand-written schema, strictly: only the keywords of the allowed forms, consistent with each other.
    ///
    /// # Errors
    ///
    /// Names the first field that breaks a rule, or what is wrong with the object around them.
    pub fn from_value(schema: &Value) -> Result<Self, FormError> {
        read::form(schema)
    }

    /// The schema as JSON.
    #[must_use]
    pub fn as_value(&self) -> Value {
        let properties: Map<_, _> =
            self.fields.iter().map(|field| (field.name.clone(), Value::Object(field.schema()))).collect();
        let required: Vec<_> = self.required().collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        Value::Object(schema)
    }

    /// Checks the content of an accepted answer. Members that the form does not have are tolerated.
    ///
    /// Lengths count Unicode code points; `email`, `uri`, `date` and `date-time` are checked for their shape.
    ///
    /// # Errors
    ///
    /// Between one and eight violations, in the order of the fields.
    pub fn check(&self, content: &Map<String, Value>) -> Result<(), Vec<Violation>> {
        answer::check(&self.fields, content)
    }

    /// Whether a field uses `oneOf` or `anyOf` with titles, which revisions before 2025-11-25 lack.
    #[must_use]
    pub fn needs_titled_enums(&self) -> bool {
        self.fields.iter().any(|field| match &field.kind {
            Kind::Choice { choices, .. } => matches!(choices, Choices::Titled(_)),
            Kind::Choices { choices, .. } => matches!(choices, Choices::Titled(_)),
            Kind::Text { .. } | Kind::Number { .. } | Kind::Boolean { .. } => false,
        })
    }

    /// Whether a field takes several choices, which revisions before 2025-11-25 lack.
    #[must_use]
    pub fn needs_multi_select(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.kind, Kind::Choices { .. }))
    }

    /// Whether a field other than a boolean has a default, which revisions before 2025-11-25 lack.
    #[must_use]
    pub fn needs_defaults_beyond_boolean(&self) -> bool {
        self.fields.iter().any(|field| match &field.kind {
            Kind::Text { default, .. } | Kind::Choice { default, .. } => default.is_some(),
            Kind::Number { default, .. } => default.is_some(),
            Kind::Choices { default, .. } => default.is_some(),
            Kind::Boolean { .. } => false,
        })
    }

    /// The form in the words of revision 2025-06-18: titles of choices as `enumNames`, defaults of booleans only. `None` if
    /// it takes several choices, which that revision cannot say.
    #[must_use]
    pub fn for_2025_06_18(&self) -> Option<Self> {
        let mut form = self.clone();
        for field in &mut form.fields {
            match &mut field.kind {
                Kind::Text { default, .. } => *default = None,
                Kind::Number { default, .. } => *default = None,
                Kind::Boolean { .. } => {}
                Kind::Choice { choices, default } => {
                    *default = None;
                    if let Choices::Titled(pairs) = choices {
                        *choices = Choices::Named(std::mem::take(pairs));
                    }
                }
                Kind::Choices { .. } => return None,
            }
        }
        Some(form)
    }

    fn required(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(|field| field.required).map(|field| field.name.as_str())
    }
}

impl Serialize for FormSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let required: Vec<_> = self.required().collect();
        let mut schema = serializer.serialize_map(None)?;
        schema.serialize_entry("type", "object")?;
        schema.serialize_entry("properties", &Properties(&self.fields))?;
        if !required.is_empty() {
            schema.serialize_entry("required", &required)?;
        }
        schema.end()
    }
}

/// Keeps the order of the fields, which a JSON object in memory would not.
struct Properties<'form>(&'form [Field]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|field| (&field.name, field.schema())))
    }
}

/// Why something is no form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// A field breaks a rule.
    #[error("the field `{field}` does not fit a form: {reason}")]
    Field {
        /// Its name.
        field: String,
        /// The rule.
        reason: String,
    },
    /// The object around the fields breaks a rule.
    #[error("not a form: {reason}")]
    Root {
        /// The rule.
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    name: String,
    title: Option<String>,
    description: Option<String>,
    required: bool,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text { min_length: Option<u64>, max_length: Option<u64>, format: Option<TextFormat>, default: Option<String> },
    Number { is_integer: bool, minimum: Option<Number>, maximum: Option<Number>, default: Option<Number> },
    Boolean { default: Option<bool> },
    Choice { choices: Choices, default: Option<String> },
    Choices { choices: Choices, min_items: Option<u64>, max_items: Option<u64>, default: Option<Vec<String>> },
}

/// What can be chosen; values with titles where there are any.
#[derive(Debug, Clone, PartialEq)]
enum Choices {
    Plain(Vec<String>),
    /// Each with its title beside it.
    Titled(Vec<(String, String)>),
    /// The older way to give titles, `enumNames`.
    Named(Vec<(String, String)>),
}

impl Choices {
    fn values(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Plain(values) => Box::new(values.iter().map(String::as_str)),
            Self::Titled(pairs) | Self::Named(pairs) => Box::new(pairs.iter().map(|(value, _)| value.as_str())),
        }
    }

    fn contain(&self, wanted: &str) -> bool {
        self.values().any(|value| value == wanted)
    }

    /// Adds the keywords that list the choices; `titles` is where titled ones go.
    fn describe(&self, titles: &str, schema: &mut Map<String, Value>) {
        match self {
            Self::Plain(values) => {
                schema.insert("enum".to_owned(), values.clone().into());
            }
            Self::Titled(pairs) => {
                let titled: Vec<_> =
                    pairs.iter().map(|(value, title)| serde_json::json!({"const": value, "title": title})).collect();
                schema.insert(titles.to_owned(), titled.into());
            }
            Self::Named(pairs) => {
                let (values, names): (Vec<_>, Vec<_>) = pairs.iter().cloned().unzip();
                schema.insert("enum".to_owned(), values.into());
                schema.insert("enumNames".to_owned(), names.into());
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

impl TextFormat {
    const ALL: [Self; 4] = [Self::Email, Self::Uri, Self::Date, Self::DateTime];

    const fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Date => "date",
            Self::DateTime => "date-time",
        }
    }
}

impl Field {
    fn schema(&self) -> Map<String, Value> {
        let mut schema = Map::new();
        let mut put = |keyword: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema.insert(keyword.to_owned(), value);
            }
        };
        put("title", self.title.clone().map(Value::from));
        put("description", self.description.clone().map(Value::from));
        match &self.kind {
            Kind::Text { min_length, max_length, format, default } => {
                put("type", Some("string".into()));
                put("minLength", min_length.map(Value::from));
                put("maxLength", max_length.map(Value::from));
                put("format", format.map(|format| format.name().into()));
                put("default", default.clone().map(Value::from));
            }
            Kind::Number { is_integer, minimum, maximum, default } => {
                put("type", Some(if *is_integer { "integer" } else { "number" }.into()));
                put("minimum", minimum.clone().map(Value::from));
                put("maximum", maximum.clone().map(Value::from));
                put("default", default.clone().map(Value::from));
            }
            Kind::Boolean { default } => {
                put("type", Some("boolean".into()));
                put("default", default.map(Value::from));
            }
            Kind::Choice { choices, default } => {
                put("type", Some("string".into()));
                put("default", default.clone().map(Value::from));
                choices.describe("oneOf", &mut schema);
            }
            Kind::Choices { choices, min_items, max_items, default } => {
                let mut items = Map::new();
                if matches!(choices, Choices::Plain(_)) {
                    items.insert("type".to_owned(), "string".into());
                }
                choices.describe("anyOf", &mut items);
                put("type", Some("array".into()));
                put("items", Some(items.into()));
                put("minItems", min_items.map(Value::from));
                put("maxItems", max_items.map(Value::from));
                put("default", default.clone().map(Value::from));
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests;
