//! Forms made by hand.
//!
//! Why here: a question that is put together at run time has no Rust type to derive from.
//! Invariants: nothing is judged before `build`, which reads the fields like any hand-written schema.

use serde_json::{Map, Value, json};

use super::{FormError, FormSchema, read};

/// Collects the fields of a form, in the order in which they are shown. See [`FormSchema::builder`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct FormBuilder {
    fields: Vec<(String, FormField)>,
}

impl FormBuilder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a text.
    pub fn string(self, name: &str, describe: impl FnOnce(FormField) -> FormField) -> Self {
        self.field(name, json!({"type": "string"}), describe)
    }

    /// Adds a whole number.
    pub fn integer(self, name: &str, describe: impl FnOnce(FormField) -> FormField) -> Self {
        self.field(name, json!({"type": "integer"}), describe)
    }

    /// Adds a number.
    pub fn number(self, name: &str, describe: impl FnOnce(FormField) -> FormField) -> Self {
        self.field(name, json!({"type": "number"}), describe)
    }

    /// Adds a yes or no.
    pub fn boolean(self, name: &str, describe: impl FnOnce(FormField) -> FormField) -> Self {
        self.field(name, json!({"type": "boolean"}), describe)
    }

    /// Adds a choice of one value.
    pub fn choice(self, name: &str, values: &[&str], describe: impl FnOnce(FormField) -> FormField) -> Self {
        self.field(name, json!({"type": "string", "enum": values}), describe)
    }

    /// Adds a choice of one value; each comes with the title to show for it.
    pub fn titled_choice(
        self,
        name: &str,
        choices: &[(&str, &str)],
        describe: impl FnOnce(FormField) -> FormField,
    ) -> Self {
        self.field(name, json!({"type": "string", "oneOf": titled(choices)}), describe)
    }

    /// Adds a choice of several values.
    pub fn choices(self, name: &str, values: &[&str], describe: impl FnOnce(FormField) -> FormField) -> Self {
        self.field(name, json!({"type": "array", "items": {"type": "string", "enum": values}}), describe)
    }

    /// Adds a choice of several values; each comes with the title to show for it.
    pub fn titled_choices(
        self,
        name: &str,
        choices: &[(&str, &str)],
        describe: impl FnOnce(FormField) -> FormField,
    ) -> Self {
        self.field(name, json!({"type": "array", "items": {"anyOf": titled(choices)}}), describe)
    }

    /// Makes the form.
    ///
    /// # Errors
    ///
    /// Names the first field that is given twice, has a setting foreign to its kind, or contradicts itself.
    pub fn build(self) -> Result<FormSchema, FormError> {
        let mut fields: Vec<super::Field> = Vec::with_capacity(self.fields.len());
        for (name, field) in self.fields {
            if fields.iter().any(|known| known.name == name) {
                return Err(FormError::Field { field: name, reason: "it occurs twice".to_owned() });
            }
            fields.push(read::field(&name, &Value::Object(field.schema), field.required)?);
        }
        Ok(FormSchema { fields })
    }

    fn field(mut self, name: &str, schema: Value, describe: impl FnOnce(FormField) -> FormField) -> Self {
        let schema = match schema {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        self.fields.push((name.to_owned(), describe(FormField { schema, required: false })));
        self
    }
}

fn titled(choices: &[(&str, &str)]) -> Vec<Value> {
    choices.iter().map(|(value, title)| json!({"const": value, "title": title})).collect()
}

/// The settings of one field; [`FormBuilder::build`] refuses those that are foreign to its kind.
#[derive(Debug, Clone)]
#[must_use]
pub struct FormField {
    schema: Map<String, Value>,
    required: bool,
}

impl FormField {
    /// Makes the field required; it is optional otherwise.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// What to show as the field's name.
    pub fn title(self, title: &str) -> Self {
        self.with("title", title)
    }

    /// What to show as an explanation.
    pub fn description(self, description: &str) -> Self {
        self.with("description", description)
    }

    /// What the client fills in at first; it must fit the field.
    pub fn default_value(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// The least length of a text in characters.
    pub fn min_length(self, characters: u64) -> Self {
        self.with("minLength", characters)
    }

    /// The greatest length of a text in characters.
    pub fn max_length(self, characters: u64) -> Self {
        self.with("maxLength", characters)
    }

    /// The format of a text: `email`, `uri`, `date` or `date-time`.
    pub fn format(self, format: &str) -> Self {
        self.with("format", format)
    }

    /// The least number.
    pub fn minimum(self, number: impl Into<Value>) -> Self {
        self.with("minimum", number)
    }

    /// The greatest number.
    pub fn maximum(self, number: impl Into<Value>) -> Self {
        self.with("maximum", number)
    }

    /// The fewest values to choose.
    pub fn min_items(self, values: u64) -> Self {
        self.with("minItems", values)
    }

    /// The most values to choose.
    pub fn max_items(self, values: u64) -> Self {
        self.with("maxItems", values)
    }

    fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.schema.insert(keyword.to_owned(), value.into());
        self
    }
}
