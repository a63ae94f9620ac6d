//! From a template's text to its parts.
//!
//! Why here: what is refused here never reaches the matcher, which therefore has no errors of its own.
//! Invariants: no two literals are neighbours; at most one query expression, followed by nothing but a fragment.
//! Spec: RFC 6570, section 2

use super::{
    Expression, MAX_TEMPLATE_BYTES, MAX_TEMPLATE_VARIABLES, Modifier, Operator, Part, UriTemplateError, VariableSpec,
    encode_character, is_reserved, is_unreserved, starts_escape,
};

pub(super) fn parse(text: &str) -> Result<Vec<Part>, UriTemplateError> {
    if text.len() > MAX_TEMPLATE_BYTES {
        return Err(UriTemplateError::TooLong);
    }
    let mut parts = Vec::new();
    let mut offset = 0;
    let mut variables = 0;
    while offset < text.len() {
        let rest = &text[offset..];
        if let Some(inside) = rest.strip_prefix('{') {
            let Some(length) = inside.find('}') else { return Err(malformed(offset, "the brace is not closed")) };
            let expression = expression(&inside[..length], offset + 1)?;
            variables += expression.specs.len();
            if variables > MAX_TEMPLATE_VARIABLES {
                return Err(UriTemplateError::TooManyVariables);
            }
            append(&mut parts, expression, offset)?;
            offset += length + 2;
        } else {
            let length = rest.find('{').unwrap_or(rest.len());
            if follows_query(&parts) && !rest.starts_with('#') {
                return Err(ambiguous(offset, "only a fragment can follow a query expression"));
            }
            parts.push(Part::Literal(literal(&rest[..length], offset)?));
            offset += length;
        }
    }
    Ok(parts)
}

fn literal(text: &str, offset: usize) -> Result<String, UriTemplateError> {
    let mut literal = String::with_capacity(text.len());
    for (index, character) in text.char_indices() {
        let is_plain = is_unreserved(character) || is_reserved(character) || starts_escape(&text.as_bytes()[index..]);
        if is_plain {
            literal.push(character);
        } else if !character.is_ascii() && !character.is_control() {
            encode_character(character, &mut literal);
        } else {
            return Err(malformed(offset + index, "this character cannot stand in an address"));
        }
    }
    Ok(literal)
}

fn expression(inside: &str, offset: usize) -> Result<Expression, UriTemplateError> {
    let operator = match inside.chars().next() {
        Some('+') => Operator::Reserved,
        Some('#') => Operator::Fragment,
        Some('.') => Operator::Label,
        Some('/') => Operator::Path,
        Some(';') => Operator::Parameters,
        Some('?') => Operator::Query,
        Some('&') => Operator::Continuation,
        Some('=' | ',' | '!' | '@' | '|') => return Err(malformed(offset, "this operator has no meaning yet")),
        _ => Operator::Simple,
    };
    let mut offset = offset + usize::from(operator != Operator::Simple);
    let list = &inside[usize::from(operator != Operator::Simple)..];
    let mut specs = Vec::new();
    for text in list.split(',') {
        specs.push(variable(text, offset)?);
        offset += text.len() + 1;
    }
    let expression = Expression { operator, specs, continued: Vec::new() };
    let has_explosion = expression.specs.iter().any(|spec| spec.modifier == Modifier::Explode);
    if has_explosion && expression.specs.len() > 1 && !operator.is_named() {
        return Err(ambiguous(offset - 1, "an exploded variable without a name must be alone in its expression"));
    }
    Ok(expression)
}

fn variable(text: &str, offset: usize) -> Result<VariableSpec, UriTemplateError> {
    let (name, modifier) = if let Some(name) = text.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, digits)) = text.split_once(':') {
        let is_number = (1..=4).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        match digits.parse() {
            Ok(limit) if is_number => (name, Modifier::Prefix(limit)),
            _ => return Err(malformed(offset, "a prefix is a number from 1 to 9999")),
        }
    } else {
        (text, Modifier::None)
    };
    let mut rest = name.as_bytes();
    // Dots stand only between other characters.
    let mut after_dot = true;
    while let Some(byte) = rest.first() {
        let length = if starts_escape(rest) { 3 } else { 1 };
        let is_dot = *byte == b'.';
        if !(length == 3 || byte.is_ascii_alphanumeric() || *byte == b'_' || is_dot) || (is_dot && after_dot) {
            return Err(malformed(offset, "a variable's name has letters, digits, `_`, single dots and escapes"));
        }
        after_dot = is_dot;
        rest = &rest[length..];
    }
    if after_dot {
        return Err(malformed(offset, "a variable's name is empty or ends with a dot"));
    }
    Ok(VariableSpec { name: name.to_owned(), modifier })
}

/// Adds an expression if a reader could tell where it begins.
fn append(parts: &mut Vec<Part>, expression: Expression, offset: usize) -> Result<(), UriTemplateError> {
    match (parts.last_mut(), expression.operator) {
        (Some(Part::Expression(query)), Operator::Continuation)
            if matches!(query.operator, Operator::Query | Operator::Continuation) =>
        {
            query.continued.extend(expression.specs);
            return Ok(());
        }
        (Some(Part::Expression(_)), Operator::Simple | Operator::Reserved) => {
            return Err(ambiguous(offset, "nothing separates this expression from the one before"));
        }
        _ => {}
    }
    if follows_query(parts) && expression.operator != Operator::Fragment {
        return Err(ambiguous(offset, "only a fragment can follow a query expression"));
    }
    parts.push(Part::Expression(expression));
    Ok(())
}

fn follows_query(parts: &[Part]) -> bool {
    matches!(
        parts.last(),
        Some(Part::Expression(Expression { operator: Operator::Query | Operator::Continuation, .. }))
    )
}

fn malformed(offset: usize, reason: &'static str) -> UriTemplateError {
    UriTemplateError::Malformed { offset, reason }
}

fn ambiguous(offset: usize, reason: &'static str) -> UriTemplateError {
    UriTemplateError::Ambiguous { offset, reason }
}
