//! What is asked again and again, and what must come back.
//!
//! Why here: over HTTP and on pipes the same bytes are sent and the same answers are right.
//! Invariants: requests differ in nothing but the digits of their ids; an answer counts only with its id and its text.
//! Spec: 2026-07-28 basic, "Requests"; 2025-11-25 basic/lifecycle, "Initialization".

use std::str::FromStr;

use memchr::memmem::Finder;
use serde_json::{Value, json};

use crate::Outcome;
use crate::options::Options;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";
/// Ids start here so that all have the same number of digits, which keeps the requests of one length.
pub(crate) const FIRST_ID: u64 = 1_000_000;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Era {
    #[default]
    Modern,
    Legacy,
}

impl Era {
    /// Whether a handshake comes first, and over HTTP a session.
    pub(crate) fn shakes_hands(self) -> bool {
        self == Self::Legacy
    }
}

impl FromStr for Era {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "modern" => Ok(Self::Modern),
            "legacy" => Ok(Self::Legacy),
            _ => Err(format!("no era is called {word}")),
        }
    }
}

pub(crate) struct Question {
    pub(crate) method: &'static str,
    /// The request's JSON before and after its id.
    body: (String, String),
    text: String,
    tools: Option<usize>,
    finder: Finder<'static>,
}

impl Question {
    pub(crate) fn of(options: &Options) -> Self {
        Self::sized(options, options.text)
    }

    /// The same with a text of another length.
    pub(crate) fn sized(options: &Options, bytes: usize) -> Self {
        let method = if options.tools.is_some() { "tools/list" } else { "tools/call" };
        let text: String = ('a'..='z').cycle().take(bytes).collect();
        let mut members = Vec::new();
        if !options.era.shakes_hands() {
            members.push(format!(r#""_meta":{}"#, modern_meta(&options.capabilities)));
        }
        if options.tools.is_none() {
            members.push(format!(r#""name":"echo","arguments":{{"text":"{text}"}}"#));
        }
        let before = r#"{"jsonrpc":"2.0","id":"#.to_owned();
        let after = format!(r#","method":"{method}","params":{{{}}}}}"#, members.join(","));
        let finder = Finder::new(text.as_bytes()).into_owned();
        Self { method, body: (before, after), text, tools: options.tools, finder }
    }

    pub(crate) fn body(&self, id: u64) -> String {
        format!("{}{id}{}", self.body.0, self.body.1)
    }

    /// Where in the body the digits of the id are.
    pub(crate) fn id_offset(&self) -> usize {
        self.body.0.len()
    }

    /// Looks at the whole answer.
    pub(crate) fn check(&self, id: u64, answer: &Value) -> Outcome<()> {
        let result = &answer["result"];
        let right = match self.tools {
            Some(count) => result["tools"].as_array().is_some_and(|tools| tools.len() == count),
            None => result["content"][0]["text"] == self.text.as_str(),
        };
        if answer["id"] == id && right {
            return Ok(());
        }
        let shown: String = answer.to_string().chars().take(2_000).collect();
        Err(format!("request {id} was answered {shown}").into())
    }

    /// Looks for what [`Self::check`] would, without reading JSON; `length` is that of an answer that was checked.
    ///
    /// Cheap, so that the client is not what limits the rate.
    pub(crate) fn glance(&self, id: u64, answer: &[u8], length: usize) -> Outcome<()> {
        // Numbers of events may have more digits than they began with.
        const SLACK: usize = 64;
        let right = match self.tools {
            Some(_) => answer.len().abs_diff(length) < SLACK,
            None => self.finder.find(answer).is_some(),
        };
        if right && has_id(answer, id) {
            return Ok(());
        }
        let shown: String = String::from_utf8_lossy(answer).chars().take(2_000).collect();
        Err(format!("request {id} was answered {shown}").into())
    }
}

/// What each request of the modern era says of its client.
pub(crate) fn modern_meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The first request of the legacy era; its id is 1.
pub(crate) fn initialize() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": { "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client_info() },
    })
}

/// Whether the handshake agreed on the revision that was asked for.
pub(crate) fn check_handshake(answer: &Value) -> Outcome<()> {
    if answer["result"]["protocolVersion"] == LEGACY {
        return Ok(());
    }
    Err(format!("initialize was answered {answer}").into())
}

/// What ends the handshake.
pub(crate) fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

/// The id of an answer, found and not parsed.
pub(crate) fn id_of(answer: &[u8]) -> Option<u64> {
    ids(answer).next()
}

fn has_id(answer: &[u8], id: u64) -> bool {
    ids(answer).any(|found| found == id)
}

/// Numbers that stand behind `"id":`.
fn ids(answer: &[u8]) -> impl Iterator<Item = u64> {
    const KEY: &[u8] = br#""id":"#;
    memchr::memmem::find_iter(answer, KEY).filter_map(|position| {
        let digits = answer.get(position + KEY.len()..)?;
        let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
        std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
    })
}

fn client_info() -> Value {
    json!({ "name": "bench-load", "version": "1.0.0" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::options;

    fn question(rest: &[&str]) -> Question {
        Question::of(&options(&[&["http://127.0.0.1:1/mcp"], rest].concat()).unwrap())
    }

    fn echoed(text: &str) -> Value {
        json!({ "id": 7, "result": { "content": [{ "type": "text", "text": text }] } })
    }

    #[test]
    fn the_body_is_the_json_that_its_era_asks_for() {
        for (era, modern) in [("modern", true), ("legacy", false)] {
            let question = question(&["--era", era, "--text", "3"]);
            let text = question.body(7);
            assert_eq!(text.as_bytes()[question.id_offset()], b'7');
            let body: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(body["id"], 7);
            assert_eq!(body["params"]["arguments"]["text"], "abc");
            assert_eq!(body["params"].get("_meta").is_some(), modern);
        }
    }

    #[test]
    fn an_answer_counts_only_with_its_id_and_text() {
        let question = question(&["--text", "3"]);
        for (id, text, right) in [(7, "abc", true), (8, "abc", false), (7, "abd", false)] {
            let answer = echoed(text);
            assert_eq!(question.check(id, &answer).is_ok(), right);
            assert_eq!(question.glance(id, answer.to_string().as_bytes(), 0).is_ok(), right);
        }
    }

    #[test]
    fn a_list_counts_only_with_its_number_of_tools() {
        let question = question(&["--list", "2"]);
        let list = json!({ "id": 7, "result": { "tools": [{}, {}] } });
        assert!(question.check(7, &list).is_ok());
        assert!(question.check(7, &json!({ "id": 7, "result": { "tools": [{}] } })).is_err());
        let text = list.to_string();
        assert!(question.glance(7, text.as_bytes(), text.len() + 2).is_ok());
        assert!(question.glance(7, text.as_bytes(), text.len() + 1_000).is_err());
    }

    #[test]
    fn an_id_is_found_behind_other_members() {
        assert_eq!(id_of(br#"{"jsonrpc":"2.0","result":{},"id":12}"#), Some(12));
        assert_eq!(id_of(br#"{"jsonrpc":"2.0","method":"notifications/message"}"#), None);
    }
}
