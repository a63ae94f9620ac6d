//! From an address back to the variables of a template.
//!
//! Why here: the address comes from outside, so that its reading must not depend on luck: no backtracking.
//! Invariants: a backward pass finds where the rest of the template fits, a forward pass then takes the first place that
//! does; each passes over the address once per part of the template.
//! Spec: RFC 6570, section 1.4, "Limitations"

use super::{
    Expression, MAX_URI_BYTES, Modifier, Operator, Part, VariableSpec, VariableValue, Variables, encode_character,
    first_characters, percent_decode, starts_escape,
};

pub(super) fn matches(parts: &[Part], scheme: usize, uri: &str) -> Option<Variables> {
    if uri.len() > MAX_URI_BYTES {
        return None;
    }
    let address = Address::read(uri);
    let (start, parts) = match parts.split_first() {
        Some((Part::Literal(literal), rest)) => (address.after_first_literal(literal, scheme)?, rest),
        _ => (0, parts),
    };
    let fits = address.fits(parts);
    if !fits.first()?.contains(start) {
        return None;
    }
    let mut found = Found::default();
    let mut position = start;
    for (part, after) in parts.iter().zip(fits.iter().skip(1)) {
        match part {
            Part::Literal(literal) => position += literal.len(),
            Part::Expression(expression) => {
                let Some((from, to)) = address.take(expression, position, after) else { continue };
                expression.read(&address.text[position..from], &address.text[from..to], &mut found)?;
                position = to;
            }
        }
    }
    found.finish(parts)
}

/// An address with all its characters in ASCII.
struct Address {
    text: String,
    /// Positions inside an escape, where no value begins or ends.
    inside: Positions,
}

impl Address {
    fn read(uri: &str) -> Self {
        let mut text = String::with_capacity(uri.len());
        for character in uri.chars() {
            if character.is_ascii() {
                text.push(character);
            } else {
                encode_character(character, &mut text);
            }
        }
        let mut inside = Positions::none(text.len());
        let mut position = 0;
        while position < text.len() {
            let escaped = starts_escape(&text.as_bytes()[position..]);
            if escaped {
                inside.insert(position + 1);
                inside.insert(position + 2);
            }
            position += if escaped { 3 } else { 1 };
        }
        Self { text, inside }
    }

    fn after_first_literal(&self, literal: &str, scheme: usize) -> Option<usize> {
        let start = self.text.get(..literal.len())?;
        let fits = start[..scheme].eq_ignore_ascii_case(&literal[..scheme]) && start[scheme..] == literal[scheme..];
        fits.then_some(literal.len())
    }

    /// For each part, and for the end, the positions from which the rest of the template fits.
    fn fits(&self, parts: &[Part]) -> Vec<Positions> {
        let mut after = Positions::none(self.text.len());
        after.insert(self.text.len());
        let mut all = vec![after];
        for part in parts.iter().rev() {
            let mut here = Positions::none(self.text.len());
            if let Some(after) = all.last() {
                match part {
                    Part::Literal(literal) => self.fit_literal(literal, after, &mut here),
                    Part::Expression(expression) => self.fit_expression(expression, after, &mut here),
                }
            }
            all.push(here);
        }
        all.reverse();
        all
    }

    fn fit_literal(&self, literal: &str, after: &Positions, here: &mut Positions) {
        let text = self.text.as_bytes();
        for end in literal.len()..=text.len() {
            let start = end - literal.len();
            if after.contains(end) && !self.inside.contains(start) && text[start..end] == *literal.as_bytes() {
                here.insert(start);
            }
        }
    }

    fn fit_expression(&self, expression: &Expression, after: &Positions, here: &mut Positions) {
        // Whether a value, perhaps empty, can begin at the positions ahead: nearest first.
        let mut ahead = [false; 3];
        for position in (0..=self.text.len()).rev() {
            let unit = self.unit(position, expression);
            let continues = unit.is_some_and(|length| ahead[length - 1]);
            let fits = if expression.operator.lead().is_none() {
                continues
            } else {
                after.contains(position) || (expression.leads(self.text.as_bytes().get(position)) && ahead[0])
            };
            let is_boundary = !self.inside.contains(position);
            if fits && is_boundary {
                here.insert(position);
            }
            let begins = is_boundary && (after.contains(position) || continues);
            ahead = [begins, ahead[0], ahead[1]];
        }
    }

    /// The value's bounds, as short as the rest allows; `None` if an optional expression is absent.
    fn take(&self, expression: &Expression, position: usize, after: &Positions) -> Option<(usize, usize)> {
        let (from, mut to) = if expression.operator.lead().is_none() {
            (position, position + self.unit(position, expression)?)
        } else if expression.leads(self.text.as_bytes().get(position)) {
            (position + 1, position + 1)
        } else {
            return None;
        };
        while !after.contains(to) {
            to += self.unit(to, expression)?;
        }
        Some((from, to))
    }

    /// The length of the character or escape at `position` if a value of `expression` may hold it.
    fn unit(&self, position: usize, expression: &Expression) -> Option<usize> {
        let rest = &self.text.as_bytes()[position..];
        let byte = *rest.first()?;
        if byte == b'%' {
            return starts_escape(rest).then_some(3);
        }
        expression.holds(byte).then_some(1)
    }
}

impl Expression {
    fn leads(&self, byte: Option<&u8>) -> bool {
        let found = byte.copied().map(char::from);
        found.is_some()
            && (found == self.operator.lead() || (!self.continued.is_empty() && found == Operator::Continuation.lead()))
    }

    fn holds(&self, byte: u8) -> bool {
        match byte {
            0..=b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{'..=b'}' | 0x7f.. => false,
            b'#' => self.operator.keeps_reserved(),
            b'?' => self.operator.keeps_reserved() || matches!(self.operator, Operator::Query | Operator::Continuation),
            b'/' => self.spans_segments() || matches!(self.operator, Operator::Query | Operator::Continuation),
            _ => true,
        }
    }

    /// Reads the values out of the expression's text, which comes without its lead.
    fn read<'template>(&'template self, lead: &str, text: &str, found: &mut Found<'template>) -> Option<()> {
        let separator = self.operator.separator();
        if self.operator.is_named() {
            let begins_continued = self.operator == Operator::Query && lead == "&";
            return self.read_named(text.split(separator), begins_continued, found);
        }
        match self.specs.as_slice() {
            [spec] if spec.modifier == Modifier::Explode => {
                let items: Option<Vec<_>> = text.split(separator).map(percent_decode).collect();
                found.add(spec, VariableValue::List(items?))
            }
            [spec] => found.add(spec, VariableValue::Text(percent_decode(text)?)),
            specs => {
                let mut values = text.split(separator);
                for (spec, value) in specs.iter().zip(&mut values) {
                    found.add(spec, VariableValue::Text(percent_decode(value)?))?;
                }
                values.next().is_none().then_some(())
            }
        }
    }

    fn read_named<'template, 'text>(
        &'template self,
        members: impl Iterator<Item = &'text str>,
        begins_continued: bool,
        found: &mut Found<'template>,
    ) -> Option<()> {
        let specs: Vec<_> = if begins_continued { self.continued.iter().collect() } else { self.all_specs().collect() };
        let mut values = vec![Vec::new(); specs.len()];
        for member in members {
            let (name, value) = member.split_once('=').unwrap_or((member, ""));
            let index = specs.iter().position(|spec| spec.name == name)?;
            if specs[index].modifier != Modifier::Explode && !values[index].is_empty() {
                return None;
            }
            values[index].push(percent_decode(value)?);
        }
        for (spec, mut values) in specs.into_iter().zip(values) {
            let value = match (spec.modifier, values.pop()) {
                (_, None) => continue,
                (Modifier::Explode, Some(last)) => {
                    values.push(last);
                    VariableValue::List(values)
                }
                (_, Some(only)) => VariableValue::Text(only),
            };
            found.add(spec, value)?;
        }
        Some(())
    }
}

/// Values as they are met; whole ones and prefixes apart until the end.
#[derive(Default)]
struct Found<'template> {
    whole: Variables,
    prefixes: Vec<(&'template VariableSpec, usize, String)>,
}

impl<'template> Found<'template> {
    fn add(&mut self, spec: &'template VariableSpec, value: VariableValue) -> Option<()> {
        match (spec.modifier, value) {
            (Modifier::Prefix(limit), VariableValue::Text(prefix)) => {
                (first_characters(&prefix, limit).len() == prefix.len()).then_some(())?;
                self.prefixes.push((spec, limit, prefix));
            }
            (_, value) => match self.whole.value(&spec.name) {
                Some(known) => (*known == value).then_some(())?,
                None => self.whole.insert(spec.name.as_str(), value),
            },
        }
        Some(())
    }

    /// Checks prefixes against whole values and puts all in the order of the template.
    fn finish(self, parts: &[Part]) -> Option<Variables> {
        let mut known = self.whole;
        // The longest prefix stands for the value where the whole is nowhere.
        let mut prefixes = self.prefixes;
        prefixes.sort_by_key(|(_, _, prefix)| std::cmp::Reverse(prefix.len()));
        for (spec, limit, prefix) in prefixes {
            match known.value(&spec.name) {
                Some(VariableValue::Text(text)) => (first_characters(text, limit) == prefix).then_some(())?,
                Some(VariableValue::List(_)) => return None,
                None => known.insert(spec.name.as_str(), prefix),
            }
        }
        let expressions = parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Expression(expression) => Some(expression),
        });
        let names = expressions.flat_map(Expression::all_specs).map(|spec| spec.name.as_str());
        Some(names.filter_map(|name| Some((name, known.value(name)?.clone()))).collect())
    }
}

/// A set of positions in an address.
struct Positions {
    words: Vec<u64>,
}

impl Positions {
    fn none(length: usize) -> Self {
        Self { words: vec![0; length / 64 + 1] }
    }

    fn insert(&mut self, position: usize) {
        self.words[position / 64] |= 1 << (position % 64);
    }

    fn contains(&self, position: usize) -> bool {
        self.words[position / 64] >> (position % 64) & 1 == 1
    }
}
