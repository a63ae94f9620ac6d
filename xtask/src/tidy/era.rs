//! Where eras and revisions may be named.
//!
//! Why here: the era enters by one door and leaves by one door; a test of it anywhere else would be a second home.
//! Invariants: tests are free; who names an era or a revision stands in `tidy.toml` with the reason.

use super::Finding;
use super::scan::{begins_in, is_word};
use super::tree::{Source, Tree, View};

/// The one file that may write a revision's text.
const HOME_OF_TEXTS: &str = "crates/mcp-wire/src/revision.rs";

/// Ways to name one era or revision, a renamed import included.
const WORDS: [&str; 4] = ["Era::", "Revision::V", "Era as ", "Revision as "];

/// What a body writes that finds an era out.
const LOOKS: [&str; 3] = [".era()", "rules().era", "Era::"];

/// What a function returns that carries the decision outside.
const ANSWERS: [&str; 3] = ["bool", "Era", "Option<Era>"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (line, code) in file.shipped(View::Code) {
            let named = WORDS.iter().find(|word| begins_in(code, word));
            if let Some(word) = named.filter(|_| !tree.exceptions.cover("era", &file.path, "")) {
                let message =
                    format!("`{}` is written outside the files of [[era]]: ask Revision::rules()", word.trim_end());
                findings.push(file.finding(line, message));
            }
        }
        for (line, text) in file.shipped(View::Literals) {
            let date = dated(text).filter(|_| file.path != HOME_OF_TEXTS);
            if let Some(date) = date.filter(|_| !tree.exceptions.cover("revision-text", &file.path, "")) {
                let message = format!("\"{date}\" is a revision as a text: parse it into a Revision, or use one");
                findings.push(file.finding(line, message));
            }
        }
        for function in answers(file) {
            if !tree.exceptions.cover("era-answer", &file.path, &function.name) {
                let message = format!("pub fn {} carries the era outside: return what follows from it", function.name);
                findings.push(file.finding(function.line, message));
            }
        }
    }
    for section in ["era", "revision-text", "era-answer"] {
        findings.extend(tree.exceptions.needless(section));
    }
    findings
}

/// A literal that is a date of this century and nothing else.
fn dated(line: &str) -> Option<&str> {
    let shaped = |text: &str| {
        text.len() == 10
            && text.starts_with("20")
            && text.bytes().enumerate().all(
                |(index, byte)| {
                    if matches!(index, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() }
                },
            )
    };
    line.split('"').skip(1).step_by(2).find(|text| shaped(text))
}

struct Function {
    name: String,
    line: usize,
}

/// Public functions that look an era up and answer with it, or with a yes or no.
fn answers(file: &Source) -> Vec<Function> {
    let mut shipped = String::new();
    let mut numbers = Vec::new();
    for (number, line) in file.shipped(View::Code) {
        numbers.push(number);
        shipped.push_str(line);
        shipped.push('\n');
    }
    let mut found = Vec::new();
    for (at, _) in shipped.match_indices("pub ").filter(|(at, _)| !shipped[..*at].ends_with(is_word)) {
        let Some(declared) = function(&shipped[at + "pub ".len()..]) else { continue };
        let Some(open) = declared.find(['{', ';']) else { continue };
        let returned = declared[..open].rsplit_once("->").map_or("", |(_, returned)| returned);
        let returned = returned.split_once("where").map_or(returned, |(returned, _)| returned).trim();
        let body = body(&declared[open..]);
        if ANSWERS.contains(&returned) && LOOKS.iter().any(|look| body.contains(look)) {
            let name = declared.split(|c| !is_word(c)).next().unwrap_or_default().to_owned();
            found.push(Function { name, line: numbers[shipped[..at].matches('\n').count()] });
        }
    }
    found
}

/// What follows `fn`, if that is what the item is.
fn function(item: &str) -> Option<&str> {
    let mut rest = item;
    while let Some(after) = ["const ", "async "].iter().find_map(|word| rest.strip_prefix(word)) {
        rest = after;
    }
    rest.strip_prefix("fn ")
}

/// From an opening brace to its closing one.
fn body(rest: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return &rest[..at];
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/mcp-core/src/a.rs";

    fn lines(text: &str, exceptions: &str) -> Vec<usize> {
        check(&Tree::of(&[(FILE, text)], exceptions)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn naming_an_era_or_a_revision_needs_an_entry() {
        let text = "\
//! Era::Modern
fn a(revision: Revision) -> u8 { match revision { Revision::V2026_07_28 => 1, _ => 2 } }
fn b(era: Era) { x(era == Era::Legacy) }
use mcp_wire::Era as When;
fn c() { OtherEra::A; \"Era::Modern\"; }
#[cfg(test)]
mod tests { const D: Era = Era::Modern; }
";
        assert_eq!(lines(text, ""), [2, 3, 4]);
        assert_eq!(lines(text, &format!("[[era]]\nfile = \"{FILE}\"\nreason = \"x\"\n")), [0; 0]);
    }

    #[test]
    fn a_revision_as_a_text_needs_an_entry_outside_its_home() {
        let text =
            "fn a(v: &str) -> u8 { u8::from(v == \"2026-07-28\") } // \"2025-11-25\"\nfn b() { \"2026-07-289\"; }\n";
        assert_eq!(lines(text, ""), [1]);
        assert_eq!(lines(text, &format!("[[revision-text]]\nfile = \"{FILE}\"\nreason = \"x\"\n")), [0; 0]);
        assert!(check(&Tree::of(&[(HOME_OF_TEXTS, text)], "")).is_empty());
    }

    #[test]
    fn a_public_function_that_answers_with_the_era_needs_an_entry() {
        let text = "\
impl A {
    pub fn modern(&self) -> bool {
        let x = || { 1 };
        self.revision.era() == self.era
    }
    pub const fn when(self) -> Era { self.rules().era }
    pub fn count(&self) -> usize { usize::from(self.revision.era() == self.era) }
    pub fn open(&self) -> bool { self.open }
    pub(crate) fn inner(&self) -> bool { self.revision.era() == self.era }
}
";
        assert_eq!(lines(text, ""), [2, 6]);
        let both = format!(
            "[[era-answer]]\nfile = \"{FILE}\"\nfunction = \"modern\"\nreason = \"x\"\n\n\
             [[era-answer]]\nfile = \"{FILE}\"\nfunction = \"when\"\nreason = \"x\"\n"
        );
        assert_eq!(lines(text, &both), [0; 0]);
    }

    #[test]
    fn an_entry_for_a_file_that_names_nothing_is_reported() {
        let entry = format!("[[era]]\nfile = \"{FILE}\"\nreason = \"x\"\n");
        assert_eq!(lines("fn a() {}\n", &entry), [1]);
    }
}
