//! Whether an answer fits its form.
//!
//! Why here: the restricted forms are few enough to check directly, so that forms need no JSON Schema validator.
//! Invariants: values are not echoed; the list of violations is bounded.
//! Spec: 2026-07-28 client/elicitation, "Response Actions"

use serde_json::{Map, Number, Value};

use super::{Choices, Field, Kind, TextFormat};
use crate::protocol::schema::{MAX_VIOLATIONS, Violation, push_token};

pub(super) fn check(fields: &[Field], content: &Map<String, Value>) -> Result<(), Vec<Violation>> {
    let mut violations = Vec::new();
    for field in fields {
        let found = match content.get(&field.name) {
            Some(value) => flaws(field, value),
            None if field.required => vec![(None, "is required".to_owned())],
            None => continue,
        };
        for (index, reason) in found {
            let mut path = String::new();
            push_token(&mut path, &field.name);
            if let Some(index) = index {
                push_token(&mut path, &index.to_string());
            }
            violations.push(Violation::new(&path, &reason));
            if violations.len() == MAX_VIOLATIONS {
                return Err(violations);
            }
        }
    }
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// What is wrong with a field's value, with the index of the item concerned; at most as many as a report holds.
pub(super) fn flaws(field: &Field, value: &Value) -> Vec<(Option<usize>, String)> {
    match (&field.kind, value) {
        (Kind::Choices { choices, min_items, max_items, .. }, Value::Array(items)) => {
            let unknown = items.iter().enumerate().filter_map(|(index, item)| {
                let fits = item.as_str().is_some_and(|item| choices.contain(item));
                (!fits).then(|| (Some(index), must_be_choice(choices)))
            });
            let count = items.len() as u64;
            let outside = outside("items", count, *min_items, *max_items).map(|flaw| (None, flaw));
            outside.into_iter().chain(unknown).take(MAX_VIOLATIONS).collect()
        }
        _ => flaw(&field.kind, value).map(|flaw| (None, flaw)).into_iter().collect(),
    }
}

fn flaw(kind: &Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Text { min_length, max_length, format, .. }, Value::String(text)) => {
            let misshapen = format.filter(|format| !has_shape(*format, text));
            outside("characters", text.chars().count() as u64, *min_length, *max_length)
                .or_else(|| misshapen.map(|format| format!("must be a valid {}", format.name())))
        }
        (Kind::Number { is_integer: true, .. }, Value::Number(number)) if !is_whole(number) => {
            Some("must be a whole number".to_owned())
        }
        (Kind::Number { minimum, maximum, .. }, Value::Number(number)) => {
            let below = minimum.as_ref().filter(|minimum| is_less(number, minimum));
            let above = maximum.as_ref().filter(|maximum| is_less(maximum, number));
            below
                .map(|minimum| format!("must be at least {minimum}"))
                .or_else(|| above.map(|maximum| format!("must be at most {maximum}")))
        }
        (Kind::Boolean { .. }, Value::Bool(_)) => None,
        (Kind::Choice { choices, .. }, Value::String(text)) => {
            (!choices.contain(text)).then(|| must_be_choice(choices))
        }
        (Kind::Text { .. }, _) => Some("must be a string".to_owned()),
        (Kind::Number { is_integer: true, .. }, _) => Some("must be an integer".to_owned()),
        (Kind::Number { .. }, _) => Some("must be a number".to_owned()),
        (Kind::Boolean { .. }, _) => Some("must be true or false".to_owned()),
        (Kind::Choice { choices, .. }, _) => Some(must_be_choice(choices)),
        (Kind::Choices { .. }, _) => Some("must be an array of choices".to_owned()),
    }
}

fn outside(what: &str, count: u64, least: Option<u64>, most: Option<u64>) -> Option<String> {
    match (least, most) {
        (Some(least), _) if count < least => Some(format!("must have at least {least} {what}")),
        (_, Some(most)) if count > most => Some(format!("must have at most {most} {what}")),
        _ => None,
    }
}

fn must_be_choice(choices: &Choices) -> String {
    let mut listed = String::from("must be one of ");
    for (index, value) in choices.values().take(10).enumerate() {
        if index > 0 {
            listed.push_str(", ");
        }
        listed.push_str(value);
    }
    listed
}

/// Compares without losing digits of integers.
pub(super) fn is_less(left: &Number, right: &Number) -> bool {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left < right,
        _ => left.as_f64() < right.as_f64(),
    }
}

fn is_whole(number: &Number) -> bool {
    number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// Whether a text has the shape of its format; whether the address answers or the day was a holiday is not asked.
fn has_shape(format: TextFormat, text: &str) -> bool {
    match format {
        TextFormat::Email => is_email(text),
        TextFormat::Uri => is_uri(text),
        TextFormat::Date => is_date(text.as_bytes()),
        TextFormat::DateTime => is_date_time(text.as_bytes()),
    }
}

fn is_email(text: &str) -> bool {
    let is_plain = !text.chars().any(|character| character.is_whitespace() || character.is_control());
    is_plain
        && text.rsplit_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !host.starts_with('.') && !host.ends_with('.')
        })
}

fn is_uri(text: &str) -> bool {
    let is_plain = !text.chars().any(|character| character.is_whitespace() || character.is_control());
    is_plain
        && text.split_once(':').is_some_and(|(scheme, rest)| {
            !rest.is_empty()
                && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        })
}

fn is_date(text: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return false };
    let (Some(century), Some(year)) = (two_digits(*y1, *y2), two_digits(*y3, *y4)) else { return false };
    let (Some(month), Some(day)) = (two_digits(*m1, *m2), two_digits(*d1, *d2)) else { return false };
    let year = century * 100 + year;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// RFC 3339, with the letters in either case.
fn is_date_time(text: &[u8]) -> bool {
    let Some((date, [b'T' | b't', h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..])) = text.split_at_checked(10) else {
        return false;
    };
    let within = |high: u8, low: u8, most: u32| two_digits(high, low).is_some_and(|number| number <= most);
    let zone = match rest {
        [b'.', fraction @ ..] => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        _ => rest,
    };
    let is_zone = match zone {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => within(*h1, *h2, 23) && within(*m1, *m2, 59),
        _ => false,
    };
    is_date(date) && within(*h1, *h2, 23) && within(*m1, *m2, 59) && within(*s1, *s2, 60) && is_zone
}

fn two_digits(high: u8, low: u8) -> Option<u32> {
    Some(char::from(high).to_digit(10)? * 10 + char::from(low).to_digit(10)?)
}
