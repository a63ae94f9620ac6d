//! What the command line asks for.
//!
//! Why here: every way of loading has the same question behind it, so they share their options.
//! Invariants: an unknown or incomplete option is refused.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Outcome;
use crate::question::Era;

const USAGE: &str = "\
usage: bench-load URL [OPTIONS]              sends a number of requests
       bench-load timed URL [OPTIONS]        sends for a time and reads what CPU the server took
       bench-load hold KIND URL [OPTIONS]    opens idle things and reads what memory the server took;
                                             KIND is connections, sessions, streams or listens
       bench-load peak URL [OPTIONS]         sends one request and reads what memory the server took at most
       bench-load stdio-peak [OPTIONS] -- SERVER    the same on pipes
       bench-load stdio [OPTIONS] -- SERVER  the server is a child that is written to and read from
       bench-load stdio-count [OPTIONS] -- SERVER   the same, a number of requests
       bench-load start [OPTIONS] -- SERVER  how long a child takes until its first answer
URL is http://HOST:PORT/PATH
  --requests N         requests to send and check (default 1000)
  --connections N      connections, or requests on the pipe, each with one in flight (default 1)
  --number N           how many things to hold (default 1000)
  --milliseconds N     how long to measure, after a fifth of it to warm up (default 1500)
  --server PID         the server's process, for what is read of it
  --text BYTES         length of the text to echo (default 64)
  --list TOOLS         tools/list instead of tools/call; the answer must hold so many tools
  --era modern|legacy  revision 2026-07-28, or 2025-11-25 with a session per connection (default modern)
  --header LINE        one more line in the head of each counted or timed request, such as credentials
  --capabilities JSON  what the modern client declares (default {})";

pub(crate) struct Options {
    pub(crate) command: Command,
    pub(crate) requests: usize,
    pub(crate) connections: usize,
    pub(crate) number: usize,
    pub(crate) time: Duration,
    pub(crate) server: Option<u32>,
    pub(crate) text: usize,
    pub(crate) tools: Option<usize>,
    pub(crate) era: Era,
    /// A line for the head of each request over HTTP, with its end; nothing if there is none to add.
    pub(crate) header: String,
    pub(crate) capabilities: Value,
}

pub(crate) enum Command {
    Count(Target),
    Timed(Target),
    Hold(Kind, Target),
    Peak(Target),
    /// The server's program and its arguments.
    Stdio(Vec<String>),
    StdioCount(Vec<String>),
    StdioPeak(Vec<String>),
    Start(Vec<String>),
}

/// What is held open and idle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Connections that have had one request.
    Connections,
    /// Sessions of the legacy era, all opened over one connection.
    Sessions,
    /// Their streams by GET, each with its connection.
    Streams,
    /// `subscriptions/listen` of the modern era, each with its connection.
    Listens,
}

/// Where a server listens.
pub(crate) struct Target {
    pub(crate) authority: String,
    pub(crate) path: String,
}

impl Target {
    pub(crate) fn parse(url: &str) -> Outcome<Self> {
        let (authority, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).ok_or(USAGE)?;
        Ok(Self { authority: authority.to_owned(), path: format!("/{path}") })
    }
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Outcome<Self> {
        let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
        let (words, program) = arguments.split_at_checked(end).ok_or(USAGE)?;
        let program = program.iter().skip(1).cloned().collect::<Vec<_>>();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (command, rest) = match words.as_slice() {
            ["timed", url, rest @ ..] => (Command::Timed(Target::parse(url)?), rest),
            ["hold", kind, url, rest @ ..] => (Command::Hold(Kind::parse(kind)?, Target::parse(url)?), rest),
            ["peak", url, rest @ ..] => (Command::Peak(Target::parse(url)?), rest),
            ["stdio", rest @ ..] => (Command::Stdio(program.clone()), rest),
            ["stdio-count", rest @ ..] => (Command::StdioCount(program.clone()), rest),
            ["stdio-peak", rest @ ..] => (Command::StdioPeak(program.clone()), rest),
            ["start", rest @ ..] => (Command::Start(program.clone()), rest),
            [url, rest @ ..] => (Command::Count(Target::parse(url)?), rest),
            [] => return Err(USAGE.into()),
        };
        let has_program =
            matches!(command, Command::Stdio(_) | Command::StdioCount(_) | Command::StdioPeak(_) | Command::Start(_));
        if has_program == program.is_empty() {
            return Err(USAGE.into());
        }
        let mut options = Self {
            command,
            requests: 1_000,
            connections: 1,
            number: 1_000,
            time: Duration::from_millis(1_500),
            server: None,
            text: 64,
            tools: None,
            era: Default::default(),
            header: String::new(),
            capabilities: json!({}),
        };
        options.take(rest)?;
        if let Command::Hold(Kind::Sessions | Kind::Streams, _) = options.command {
            options.era = "legacy".parse()?;
        }
        if options.requests == 0 || options.connections == 0 || options.number == 0 {
            return Err(USAGE.into());
        }
        Ok(options)
    }

    fn take(&mut self, mut rest: &[&str]) -> Outcome<()> {
        while let [name, value, after @ ..] = rest {
            match (*name, *value) {
                ("--requests", number) => self.requests = number.parse()?,
                ("--connections", number) => self.connections = number.parse()?,
                ("--number", number) => self.number = number.parse()?,
                ("--milliseconds", number) => self.time = Duration::from_millis(number.parse()?),
                ("--server", number) => self.server = Some(number.parse()?),
                ("--text", number) => self.text = number.parse()?,
                ("--list", number) => self.tools = Some(number.parse()?),
                ("--era", era) => self.era = era.parse()?,
                ("--capabilities", object) => self.capabilities = serde_json::from_str(object)?,
                ("--header", line) if line.contains(':') => self.header = format!("{line}\r\n"),
                _ => return Err(USAGE.into()),
            }
            rest = after;
        }
        if rest.is_empty() { Ok(()) } else { Err(USAGE.into()) }
    }
}

impl Kind {
    fn parse(word: &str) -> Outcome<Self> {
        match word {
            "connections" => Ok(Self::Connections),
            "sessions" => Ok(Self::Sessions),
            "streams" => Ok(Self::Streams),
            "listens" => Ok(Self::Listens),
            _ => Err(USAGE.into()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The options of a command line, or why there are none.
    pub(crate) fn options(words: &[&str]) -> Outcome<Options> {
        Options::parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    const URL: &str = "http://127.0.0.1:1/mcp";

    #[test]
    fn an_option_without_its_value_is_refused() {
        assert!(options(&[URL]).is_ok());
        assert!(options(&[URL, "--text"]).is_err());
        assert!(options(&[URL, "--requests", "0"]).is_err());
    }

    #[test]
    fn a_child_needs_its_program_and_an_address_has_none() {
        assert!(options(&["stdio", "--era", "legacy", "--", "server", "--flag"]).is_ok());
        assert!(options(&["stdio"]).is_err());
        assert!(options(&["start", "--"]).is_err());
        assert!(options(&["timed", URL, "--", "server"]).is_err());
    }

    #[test]
    fn what_follows_the_dashes_belongs_to_the_child() {
        let Command::Start(program) = options(&["start", "--text", "3", "--", "server", "--text"]).unwrap().command
        else {
            panic!("another command");
        };
        assert_eq!(program, ["server", "--text"]);
    }
}
