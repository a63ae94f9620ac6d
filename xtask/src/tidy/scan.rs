//! Tells code, literals and comments of a Rust file apart.
//!
//! Why here: a rule about code must not stumble over a word in a comment, nor one about comments over a text.
//! Invariants: each view has the file's lines, so a line number means the same in all of them.

use std::iter::repeat_n;

/// How an item begins that only tests see.
const TESTS: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test,"];

/// The file with everything else blanked out.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// Neither comments nor literals.
    pub(super) code: String,
    /// Code and literals.
    pub(super) literals: String,
    pub(super) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Literal,
    Comment,
}

pub(super) fn views(text: &str) -> Views {
    let mut views = Views::default();
    let mut at = 0;
    while at < text.len() {
        let after_word = text[..at].ends_with(is_word);
        let (kind, length) = piece(&text[at..], after_word);
        let part = &text[at..at + length];
        let blank: String = part.chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        let keep = |kept: bool| if kept { part } else { blank.as_str() };
        views.code.push_str(keep(kind == Kind::Code));
        views.literals.push_str(keep(kind != Kind::Comment));
        views.comments.push_str(keep(kind == Kind::Comment));
        at += length;
    }
    views
}

/// For each line of `code`, whether it is part of an item that only tests see.
///
/// Relies on rustfmt: an item ends on its own line or with a closing bracket below its beginning.
pub(super) fn test_lines(code: &str) -> Vec<bool> {
    let lines: Vec<&str> = code.lines().collect();
    let mut marks = Vec::with_capacity(lines.len());
    while marks.len() < lines.len() {
        let rest = &lines[marks.len()..];
        let begins = TESTS.iter().any(|attribute| rest[0].trim_start().starts_with(attribute));
        let hidden = if begins { item_length(rest) } else { 0 };
        marks.extend(if hidden == 0 { repeat_n(false, 1) } else { repeat_n(true, hidden) });
    }
    marks
}

/// Whether `pattern` is in `line` and no word runs into its beginning.
pub(super) fn begins_in(line: &str, pattern: &str) -> bool {
    line.match_indices(pattern).any(|(at, _)| !line[..at].ends_with(is_word))
}

/// Whether `word` is in `line` with no word running into either end.
pub(super) fn stands_in(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word))
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn piece(rest: &str, after_word: bool) -> (Kind, usize) {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with("//") {
        (Kind::Comment, rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        (Kind::Comment, block_comment(rest))
    } else if rest.starts_with('"') {
        (Kind::Literal, quoted(rest, '"'))
    } else if let Some(length) = raw_string(rest).filter(|_| !after_word) {
        (Kind::Literal, length)
    } else if rest.starts_with('\'') && is_character(rest) {
        (Kind::Literal, quoted(rest, '\''))
    } else {
        (Kind::Code, first)
    }
}

/// Comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|rest| rest.trim_start_matches('#').starts_with('"')))?;
    let hashes = rest[prefix.len()..].find('"')?;
    let begin = prefix.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len()))
}

/// A quote begins a character, or a lifetime.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// How many lines the item that begins with `lines[0]` has, its attributes included.
fn item_length(lines: &[&str]) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let attributes = lines.iter().take_while(|line| line.trim_start().starts_with("#[")).count();
    let Some(head) = lines.get(attributes) else { return lines.len() };
    if head.trim_end().ends_with([';', '}']) {
        return attributes + 1;
    }
    let inside = lines[attributes + 1..]
        .iter()
        .take_while(|line| indent(line) != indent(head) || !line.trim_start().starts_with(['}', ']', ')']))
        .count();
    (attributes + inside + 2).min(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_told_from_code() {
        let cases = [
            ("a // b\nc", "a     \nc", "     // b\n "),
            ("a /* b /* c */ d */ e", "a                   e", "  /* b /* c */ d */  "),
            ("a(\"// b\") // c", "a(      ) ", "          // c"),
            ("a(\"\\\"//\", b)", "a(      , b)", ""),
            ("a(r#\"\"// b\"#, c)", "a(          , c)", ""),
            ("a('\"', b) // c", "a(   , b) ", "          // c"),
            ("fn a<'b>(c: &'b str) {} // d", "fn a<'b>(c: &'b str) {} ", "                        // d"),
            ("for_r\"a\"", "for_r   ", ""),
        ];
        for (text, code, comments) in cases {
            let found = views(text);
            assert_eq!(found.code.trim_end(), code.trim_end(), "{text}");
            assert_eq!(found.comments.trim(), comments.trim(), "{text}");
            assert_eq!(found.code.len(), text.len(), "{text}");
        }
        assert_eq!(views("a(\"b\") // c").literals, "a(\"b\")     ");
    }

    #[test]
    fn items_of_tests_are_marked_and_what_follows_is_not() {
        let code = "\
fn a() {}
#[cfg(test)]
mod tests;
fn b() {}
#[cfg(test)]
#[path = \"x\"]
mod more {
    fn c() {
    }
}
fn d() {}
#[cfg(test)]
const E: [u8; 2] = [
    1,
];
#[cfg(all(test, unix))]
mod other {
}
fn f() {}
#[cfg(not(test))]
fn g() {}
";
        let marks = test_lines(code);
        let shipped: Vec<&str> = code.lines().zip(&marks).filter(|(_, mark)| !**mark).map(|(line, _)| line).collect();
        assert_eq!(shipped, ["fn a() {}", "fn b() {}", "fn d() {}", "fn f() {}", "#[cfg(not(test))]", "fn g() {}"]);
    }

    #[test]
    fn a_pattern_is_found_at_the_edges_of_words() {
        assert!(begins_in("x(Era::A)", "Era::") && !begins_in("OtherEra::A", "Era::"));
        assert!(
            stands_in("a static b", "static") && !stands_in("statics", "static") && !stands_in("_static", "static")
        );
    }
}
