//! URI templates: what parses is within its bounds, what is expanded matches again, and what a match yields expands to a
//! match.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use mcp_core::{MAX_TEMPLATE_BYTES, MAX_TEMPLATE_VARIABLES, UriTemplate, VariableValue, Variables};

// The lines of an input are the template, an address, and values for the variables in turn, where `|` makes a list.
fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let (Some(text), Some(uri)) = (lines.next(), lines.next()) else { return };
    let Ok(template) = UriTemplate::parse(text) else { return };
    assert_eq!(template.as_str(), text);
    assert_eq!(UriTemplate::parse(template.as_str()).as_ref(), Ok(&template));
    let names: Vec<&str> = template.variables().collect();
    assert!(text.len() <= MAX_TEMPLATE_BYTES && names.len() <= MAX_TEMPLATE_VARIABLES);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "a name is told once");

    let mut given = Variables::new();
    for (name, value) in names.iter().zip(lines) {
        if value.contains('|') {
            given.insert(*name, value.split('|').map(ToOwned::to_owned).collect::<Vec<_>>());
        } else {
            given.insert(*name, value);
        }
    }
    let expanded = template.expand(&given);
    assert!(expanded.bytes().all(|byte| matches!(byte, b'!'..=b'~')), "not an address: {expanded:?}");
    if let Some(found) = template.matches(&expanded) {
        check(&template, &found);
    }
    if let Some(found) = template.matches(uri) {
        assert!(found.iter().all(|(name, _)| names.contains(&name)), "{found:?}");
        check(&template, &found);
    }
});

/// What a match yields expands to an address that matches and yields the same.
fn check(template: &UriTemplate, found: &Variables) {
    let expressions = template.as_str().split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let places: usize = expressions.map(|expression| expression.split(',').count()).sum();
    if template.variables().count() < places {
        // A variable that occurs twice may be absent in one place and not in the other.
        return;
    }
    let again = template.matches(&template.expand(found));
    // These two write what is reserved as it is: what looks like an escape is taken for one, and a comma for what stands
    // between variables.
    if ["{+", "{#"].iter().any(|expression| template.as_str().contains(expression)) {
        let is_taken_otherwise = found.iter().any(|(_, value)| match value {
            VariableValue::Text(text) => text.contains(['%', ',']),
            other => format!("{other:?}").contains('%'),
        });
        assert!(is_taken_otherwise || again.is_some(), "{found:?}");
    } else {
        assert_eq!(again.as_ref(), Some(found));
    }
}
