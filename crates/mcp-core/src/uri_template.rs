//! URI templates of resources: parsing, expanding, and matching an address back to its variables.
//!
//! Why here: the crates for RFC 6570 expand only; reading a resource needs the inverse, over the same parsed parts.
//! Invariants: matching takes time linear in the address for a given template, whatever either holds; what a match yields
//! expands to an equivalent address, unless it looks escaped still and stands where expanding passes escapes through.
//! Spec: 2026-07-28 server/resources, "Resource Templates"; RFC 6570, sections 2 and 3

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;

mod matching;
mod parse;

/// The longest template in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 4 * 1024;
/// The most variables in one template, repeated ones counted again.
pub const MAX_TEMPLATE_VARIABLES: usize = 32;
/// The longest address in bytes; longer ones match nothing.
pub const MAX_URI_BYTES: usize = 128 * 1024;

/// A parsed RFC 6570 template (level 4, without associative arrays) that can be matched as well as expanded.
///
/// How an address matches:
///
/// - The scheme compares without case, the rest of the literal text exactly. Characters beyond ASCII equal their
///   percent-encoded form.
/// - `{v}` and `{+v}` take at least one character. `{v}` takes none of `/`, `?` and `#`; `{+v}` takes any. The other forms
///   may be missing, and their variables are then absent.
/// - Where the text leaves a choice, a form that may be missing is there if its first character is, and earlier
///   expressions take as little as they can.
/// - Values are percent-decoded once. A broken escape, or bytes that are not UTF-8, match nothing. So `%2541` is the value
///   `%41`, which `{+v}` and `{#v}` then expand to `%41`, as RFC 6570 has it, and every other form to `%2541`.
/// - `{v:3}` takes at most three characters. `{v*}` yields a list, every other form one text, commas included.
/// - `{?a,b}`, `{&c}` and `{;d}` take their members in any order, each at most once unless exploded, and no others.
/// - A variable that occurs twice must have one value; where a prefix and the whole occur, they must agree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
    /// The bytes of the leading literal that are a scheme with its colon.
    scheme: usize,
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// The template breaks RFC 6570 or a limit, or matching it would be guesswork: an expression `{v}` or `{+v}` right
    /// after another expression, `{a*,b}` without names, or anything but a fragment after a query expression.
    pub fn parse(text: &str) -> Result<Self, UriTemplateError> {
        let parts = parse::parse(text)?;
        let scheme = match parts.first() {
            Some(Part::Literal(literal)) => scheme_length(literal),
            _ => 0,
        };
        Ok(Self { text: text.to_owned(), parts, scheme })
    }

    /// The template as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of its variables in the order of their first occurrence.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let mut seen = HashSet::new();
        self.specs().map(|spec| spec.name.as_str()).filter(move |name| seen.insert(*name))
    }

    /// Matches an address; `None` if it does not match. Variables come in the order of the template, absent ones do not.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        matching::matches(&self.parts, self.scheme, uri)
    }

    /// Expands the template. Variables without a value vanish, and so do empty lists.
    #[must_use]
    pub fn expand(&self, variables: &Variables) -> String {
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => uri.push_str(literal),
                Part::Expression(expression) => expression.expand(variables, &mut uri),
            }
        }
        uri
    }

    /// The key for choosing among templates that match one address: take the greatest, and of equals the one registered
    /// first. More literal characters win, then fewer variables, then fewer of the kinds that span `/`.
    #[must_use]
    pub fn specificity(&self) -> Specificity {
        let literal = self.parts.iter().map(|part| match part {
            Part::Literal(literal) => literal.len(),
            Part::Expression(_) => 0,
        });
        let spanning = self.expressions().filter(|expression| expression.spans_segments());
        Specificity {
            literal: literal.sum(),
            variables: Reverse(self.specs().count()),
            spanning: Reverse(spanning.count()),
        }
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Expression(expression) => Some(expression),
        })
    }

    fn specs(&self) -> impl Iterator<Item = &VariableSpec> {
        self.expressions().flat_map(|expression| expression.all_specs())
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::str::FromStr for UriTemplate {
    type Err = UriTemplateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// How specific a template is; the greater is the more specific. See [`UriTemplate::specificity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    literal: usize,
    variables: Reverse<usize>,
    spanning: Reverse<usize>,
}

/// Why a template is refused; offsets count bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriTemplateError {
    /// Longer than [`MAX_TEMPLATE_BYTES`].
    #[error("the template is longer than {MAX_TEMPLATE_BYTES} bytes")]
    TooLong,
    /// More than [`MAX_TEMPLATE_VARIABLES`] variables.
    #[error("the template has more than {MAX_TEMPLATE_VARIABLES} variables")]
    TooManyVariables,
    /// Not an RFC 6570 template.
    #[error("malformed template at byte {offset}: {reason}")]
    Malformed {
        /// Where.
        offset: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A template whose addresses could be read in several ways.
    #[error("ambiguous template at byte {offset}: {reason}")]
    Ambiguous {
        /// Where.
        offset: usize,
        /// What makes it so.
        reason: &'static str,
    },
}

/// The value of a template variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VariableValue {
    /// One text.
    Text(String),
    /// Several texts, as exploded variables have.
    List(Vec<String>),
}

impl From<&str> for VariableValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for VariableValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for VariableValue {
    fn from(items: Vec<String>) -> Self {
        Self::List(items)
    }
}

/// Named values in order; each name once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Variables {
    entries: Vec<(String, VariableValue)>,
}

impl Variables {
    /// No variables.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Sets a variable, replacing an earlier value in place.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<VariableValue>) {
        let (name, value) = (name.into(), value.into());
        match self.entries.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((name, value)),
        }
    }

    /// The value of a variable.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&VariableValue> {
        self.entries.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The text of a variable; `None` if it is absent or a list.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            VariableValue::Text(text) => Some(text),
            VariableValue::List(_) => None,
        }
    }

    /// The items of a variable; `None` if it is absent or one text.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<&[String]> {
        match self.value(name)? {
            VariableValue::Text(_) => None,
            VariableValue::List(items) => Some(items),
        }
    }

    /// All variables in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &VariableValue)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many variables there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<Name: Into<String>, Value: Into<VariableValue>> FromIterator<(Name, Value)> for Variables {
    fn from_iter<Entries: IntoIterator<Item = (Name, Value)>>(entries: Entries) -> Self {
        let mut variables = Self::new();
        for (name, value) in entries {
            variables.insert(name, value);
        }
        variables
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    /// Ready for an address: characters beyond ASCII are percent-encoded.
    Literal(String),
    Expression(Expression),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Expression {
    operator: Operator,
    specs: Vec<VariableSpec>,
    /// The variables of `{&..}` expressions right after a `{?..}`: a reader meets them as one query.
    continued: Vec<VariableSpec>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct VariableSpec {
    name: String,
    modifier: Modifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Modifier {
    None,
    /// At most this many characters.
    Prefix(usize),
    Explode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameters,
    Query,
    Continuation,
}

impl Operator {
    /// What stands before the first value.
    const fn lead(self) -> Option<char> {
        match self {
            Self::Simple | Self::Reserved => None,
            Self::Fragment => Some('#'),
            Self::Label => Some('.'),
            Self::Path => Some('/'),
            Self::Parameters => Some(';'),
            Self::Query => Some('?'),
            Self::Continuation => Some('&'),
        }
    }

    /// What stands between values.
    const fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Path => '/',
            Self::Parameters => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Whether values go with their names.
    const fn is_named(self) -> bool {
        matches!(self, Self::Parameters | Self::Query | Self::Continuation)
    }

    /// Whether values keep reserved characters as they are.
    const fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

impl Expression {
    fn all_specs(&self) -> impl Iterator<Item = &VariableSpec> {
        self.specs.iter().chain(&self.continued)
    }

    /// Whether its text is several values rather than one.
    fn is_split(&self) -> bool {
        self.specs.len() > 1 || self.specs.iter().any(|spec| spec.modifier == Modifier::Explode)
    }

    fn spans_segments(&self) -> bool {
        self.operator.keeps_reserved() || (self.operator == Operator::Path && self.is_split())
    }

    fn expand(&self, variables: &Variables, uri: &mut String) {
        self.operator.expand(&self.specs, variables, uri);
        Operator::Continuation.expand(&self.continued, variables, uri);
    }
}

impl Operator {
    fn expand(self, specs: &[VariableSpec], variables: &Variables, uri: &mut String) {
        let mut is_first = true;
        for spec in specs {
            let items = match variables.value(&spec.name) {
                Some(VariableValue::Text(text)) => std::slice::from_ref(text),
                Some(VariableValue::List(items)) => items,
                None => &[],
            };
            // Without explosion a list is one value, joined by commas.
            let values: Vec<&[String]> = match spec.modifier {
                Modifier::Explode => items.chunks(1).collect(),
                _ if items.is_empty() => Vec::new(),
                _ => vec![items],
            };
            for value in values {
                if is_first {
                    uri.extend(self.lead());
                } else {
                    uri.push(self.separator());
                }
                is_first = false;
                if self.is_named() {
                    uri.push_str(&spec.name);
                    if self != Self::Parameters || value.iter().any(|item| !item.is_empty()) || value.len() > 1 {
                        uri.push('=');
                    }
                }
                for (index, item) in value.iter().enumerate() {
                    if index > 0 {
                        uri.push(',');
                    }
                    let item = match spec.modifier {
                        Modifier::Prefix(limit) => first_characters(item, limit),
                        _ => item,
                    };
                    encode(item, self.keeps_reserved(), uri);
                }
            }
        }
    }
}

fn first_characters(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}

fn scheme_length(literal: &str) -> usize {
    let Some(colon) = literal.find(':') else { return 0 };
    let mut bytes = literal[..colon].bytes();
    let is_scheme = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if is_scheme { colon + 1 } else { 0 }
}

/// Percent-encodes what is not unreserved; with `keep_reserved`, reserved characters and ready escapes stay.
fn encode(text: &str, keep_reserved: bool, uri: &mut String) {
    for (offset, character) in text.char_indices() {
        let kept = is_unreserved(character)
            || (keep_reserved && (is_reserved(character) || starts_escape(&text.as_bytes()[offset..])));
        if kept {
            uri.push(character);
        } else {
            encode_character(character, uri);
        }
    }
}

fn encode_character(character: char, uri: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
        uri.push('%');
        uri.push(char::from(DIGITS[usize::from(byte >> 4)]));
        uri.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~".contains(character)
}

fn is_reserved(character: char) -> bool {
    ":/?#[]@!$&'()*+,;=".contains(character)
}

fn starts_escape(text: &[u8]) -> bool {
    matches!(text, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Decodes percent escapes once; `None` for a broken escape or bytes that are not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
