//! Sequences of operations on one connection, beside a model of what each request is owed: one response, or none after it
//! was taken back, and never an id that stays taken.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mcp_core::{Exchange, Outbound, Peer, Principal, Scope, Server};
use mcp_fuzz::{GRACE, answer, decoded, modern, poll, read, response, send, shake_hands, wait, within};
use mcp_wire::{Message, Request};
use serde_json::{Value, json};
use std::task::Poll;

#[derive(Arbitrary, Debug)]
struct Input {
    shakes_hands: bool,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Call {
        id: u8,
        tool: Tool,
        is_modern: bool,
    },
    Listen {
        id: u8,
        tools: bool,
        prompts: bool,
    },
    Cancel {
        id: u8,
    },
    /// The carrier lets go of an exchange.
    Drop {
        id: u8,
    },
    /// Answers an open question, or one that nobody asked.
    Answer {
        question: u8,
        answer: Given,
    },
    Subscribe {
        entry: u8,
        begins: bool,
    },
    Change(Changed),
    Wait {
        seconds: u8,
    },
    Level {
        level: u8,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Echo,
    Wait,
    Tell,
    Ask,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Name,
    Nonsense,
    Refusal,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    Tools,
    Prompts,
    Resource(u8),
}

/// A request that is under way.
struct Open {
    exchange: Exchange,
    kind: Kind,
}

enum Kind {
    /// Ends by itself after this much time, since nobody takes longer.
    Waits,
    /// Asked the client; the id of the question.
    Asks(Option<Value>),
    /// What was promised, and what is due.
    Listens { kinds: BTreeSet<Changed>, due: BTreeSet<Changed> },
}

/// The connection, and what it should be in.
struct Model<'a> {
    server: &'a Server,
    peer: Peer,
    open: BTreeMap<u8, Open>,
    /// Ids of calls that were given up, whose handlers may not have noticed yet.
    lingering: BTreeSet<u8>,
    has_session: bool,
    subscribed: BTreeSet<u8>,
    /// Notices that the session is owed.
    due: BTreeSet<Changed>,
}

fuzz_target!(|input: Input| {
    within(|server| {
        let peer = server.peer(Principal::anonymous(), Scope::Connection);
        if input.shakes_hands {
            shake_hands(server, &peer);
        }
        let mut model = Model {
            server,
            peer,
            open: BTreeMap::new(),
            lingering: BTreeSet::new(),
            has_session: input.shakes_hands,
            subscribed: BTreeSet::new(),
            due: BTreeSet::new(),
        };
        for operation in input.operations.iter().take(64) {
            model.apply(operation);
            model.hear();
        }
        model.finish();
    });
});

impl Model<'_> {
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Call { id, tool, is_modern } => self.call(*id, *tool, *is_modern),
            Operation::Listen { id, tools, prompts } => self.listen(*id, *tools, *prompts),
            Operation::Cancel { id } => {
                let params = json!({ "requestId": id });
                self.notify("notifications/cancelled", params);
                if let Some(mut open) = self.open.remove(id) {
                    self.lingering.insert(*id);
                    let (items, over) = read(&mut open.exchange);
                    assert!(over, "a request that was taken back goes on");
                    if !matches!(open.kind, Kind::Listens { .. }) {
                        assert!(items.is_empty(), "after it was taken back: {items:?}");
                    }
                }
            }
            Operation::Drop { id } => {
                if self.open.remove(id).is_some() {
                    self.lingering.insert(*id);
                }
            }
            Operation::Answer { question, answer } => self.answer(*question, *answer),
            Operation::Subscribe { entry, begins } => {
                let entry = entry % 5;
                let method = if *begins { "resources/subscribe" } else { "resources/unsubscribe" };
                let done = self.at_once(method, json!({ "uri": uri(entry) }));
                assert_eq!(done, self.has_session);
                if done && *begins {
                    self.subscribed.insert(entry);
                } else if done {
                    self.subscribed.remove(&entry);
                    self.due.remove(&Changed::Resource(entry));
                }
            }
            Operation::Change(changed) => self.change(*changed),
            Operation::Wait { seconds } => {
                let time = Duration::from_secs((*seconds).into());
                wait(time);
                if time >= GRACE {
                    self.lingering.clear();
                }
            }
            Operation::Level { level } => {
                let level = ["debug", "error", "emergency", "loud"][usize::from(*level) % 4];
                let done = self.at_once("logging/setLevel", json!({ "level": level }));
                assert_eq!(done, self.has_session && level != "loud");
            }
        }
    }

    fn call(&mut self, id: u8, tool: Tool, is_modern: bool) {
        let (name, arguments) = match tool {
            Tool::Echo => ("echo", json!({ "text": "said" })),
            Tool::Wait => ("wait", json!({})),
            Tool::Tell => ("tell", json!({})),
            Tool::Ask => ("ask", json!({})),
        };
        let params = json!({ "name": name, "arguments": arguments });
        let params = if is_modern { modern(params) } else { params };
        let mut exchange = self.request(id, "tools/call", &params);
        let (items, over) = read(&mut exchange);
        let is_served = is_modern || self.has_session;
        if self.open.contains_key(&id) || !is_served {
            let outcome = self.only_response(id, &items);
            assert!(over && outcome.is_err(), "an id that is taken, or no session: {items:?}");
            return;
        }
        if over && self.lingering.contains(&id) && self.only_response(id, &items).is_err() {
            return;
        }
        match (tool, is_modern) {
            (Tool::Wait, _) => {
                assert!(!over && items.is_empty(), "{items:?}");
                self.open.insert(id, Open { exchange, kind: Kind::Waits });
            }
            (Tool::Ask, false) => {
                let [Outbound::Request(frame)] = &*items else { panic!("no question: {items:?}") };
                let Message::Request(Request { id: question, .. }) = decoded(self.server, frame) else { panic!() };
                let question = json!(question);
                assert!(!over);
                self.open.insert(id, Open { exchange, kind: Kind::Asks(Some(question)) });
            }
            _ => {
                assert!(over);
                let result = self.only_response(id, &items).expect("the call is in order");
                assert_eq!(result.get("inputRequests").is_some(), tool == Tool::Ask, "{result}");
            }
        }
    }

    fn listen(&mut self, id: u8, tools: bool, prompts: bool) {
        let params = modern(json!({ "notifications": { "toolsListChanged": tools, "promptsListChanged": prompts } }));
        let mut exchange = self.request(id, "subscriptions/listen", &params);
        let (items, over) = read(&mut exchange);
        if self.open.contains_key(&id) {
            assert!(over && self.only_response(id, &items).is_err());
            return;
        }
        if over && self.lingering.contains(&id) && self.only_response(id, &items).is_err() {
            return;
        }
        let [Outbound::Notification(granted)] = &*items else { panic!("no acknowledgement: {items:?}") };
        assert!(!over && matches!(decoded(self.server, granted), Message::Notification(_)));
        let wanted = [(tools, Changed::Tools), (prompts, Changed::Prompts)];
        let kinds = wanted.into_iter().filter_map(|(wanted, kind)| wanted.then_some(kind)).collect();
        self.open.insert(id, Open { exchange, kind: Kind::Listens { kinds, due: BTreeSet::new() } });
    }

    fn answer(&mut self, question: u8, given: Given) {
        let asked = self.open.iter_mut().filter_map(|(id, open)| match &mut open.kind {
            Kind::Asks(question) if question.is_some() => Some((*id, question)),
            _ => None,
        });
        let found = asked.collect::<Vec<_>>().into_iter().nth(question.into());
        let (call, asked) = found.map_or((None, json!(u64::from(question) + 1_000_000)), |(id, question)| {
            (Some(id), question.take().expect("only open questions are found"))
        });
        let mut message = json!({ "jsonrpc": "2.0", "id": asked });
        match given {
            Given::Name => message["result"] = json!({ "action": "accept", "content": { "name": "Ann" } }),
            Given::Nonsense => message["result"] = json!({ "action": 7 }),
            Given::Refusal => message["error"] = json!({ "code": -1, "message": "no" }),
        }
        assert!(send(self.server, &self.peer, &message).is_over(), "an answer is not answered");
        let Some(id) = call else { return };
        let mut open = self.open.remove(&id).expect("the call is open");
        let (items, over) = read(&mut open.exchange);
        assert!(over, "an answered call goes on: {items:?}");
        let outcome = self.only_response(id, &items);
        if given == Given::Name {
            let result = outcome.expect("the answer is in order");
            assert_eq!(result["content"][0]["text"], r#"{"name":"Ann"}"#);
        }
    }

    fn change(&mut self, changed: Changed) {
        match changed {
            Changed::Tools => self.server.tools_changed(),
            Changed::Prompts => self.server.prompts_changed(),
            Changed::Resource(entry) => self.server.resource_updated(&uri(entry % 5)),
        }
        let changed = if let Changed::Resource(entry) = changed { Changed::Resource(entry % 5) } else { changed };
        let is_told = match changed {
            Changed::Resource(entry) => self.subscribed.contains(&entry),
            Changed::Tools | Changed::Prompts => true,
        };
        if self.has_session && is_told {
            self.due.insert(changed);
        }
        for open in self.open.values_mut() {
            if let Kind::Listens { kinds, due } = &mut open.kind
                && kinds.contains(&changed)
            {
                due.insert(changed);
            }
        }
    }

    /// Reads everything that is at hand, and compares it with what is due.
    fn hear(&mut self) {
        let mut ended = Vec::new();
        for (id, open) in &mut self.open {
            let (items, over) = read(&mut open.exchange);
            match &mut open.kind {
                Kind::Listens { due, .. } => {
                    assert!(!over, "a subscription ended by itself");
                    let told: BTreeSet<Changed> = items.iter().map(|item| told(self.server, item)).collect();
                    assert_eq!(told.len(), items.len(), "told twice: {items:?}");
                    assert_eq!(told, std::mem::take(due));
                }
                // Only time ends these: a call that takes too long, a question that nobody answers.
                Kind::Waits | Kind::Asks(_) if over => ended.push((*id, items)),
                Kind::Waits | Kind::Asks(_) => assert!(items.is_empty(), "{items:?}"),
            }
        }
        for (id, items) in ended {
            self.open.remove(&id);
            let Some(Outbound::Response(frame, _)) = items.last() else { panic!("no response: {items:?}") };
            let Message::Response(response) = decoded(self.server, frame) else { panic!("no response: {items:?}") };
            let error = response.outcome.expect_err("only time ends it");
            assert_eq!(error.code.0, -32603, "{error:?}");
        }
        let mut heard = BTreeSet::new();
        if let Some(session) = self.peer.session() {
            while let Poll::Ready(Some(frame)) = poll(std::future::poll_fn(|context| session.poll_notice(context))) {
                let changed = told(self.server, &Outbound::Notification(frame));
                assert!(heard.insert(changed), "told twice: {changed:?}");
            }
        }
        assert_eq!(heard, std::mem::take(&mut self.due));
    }

    /// Takes everything back; afterwards every id is free.
    fn finish(&mut self) {
        let ids: Vec<u8> = std::mem::take(&mut self.open).into_keys().collect();
        wait(GRACE);
        for id in ids.into_iter().chain(std::mem::take(&mut self.lingering)) {
            let params = modern(json!({ "name": "echo", "arguments": {} }));
            let exchange = self.request(id, "tools/call", &params);
            assert!(answer(self.server, exchange).outcome.is_ok(), "the id {id} is still taken");
        }
    }

    fn request(&self, id: u8, method: &str, params: &Value) -> Exchange {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        send(self.server, &self.peer, &request)
    }

    /// A request that is answered at once: whether by a result.
    fn at_once(&self, method: &str, params: Value) -> bool {
        let request = json!({ "jsonrpc": "2.0", "id": "at once", "method": method, "params": params });
        answer(self.server, send(self.server, &self.peer, &request)).outcome.is_ok()
    }

    fn notify(&self, method: &str, params: Value) {
        let notification = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        assert!(send(self.server, &self.peer, &notification).is_over());
    }

    /// The outcome in the one response, which notices may precede.
    fn only_response(&self, id: u8, items: &[Outbound]) -> Result<Value, i64> {
        let Some((Outbound::Response(frame, _), before)) = items.split_last() else { panic!("no response: {items:?}") };
        assert!(before.iter().all(|item| matches!(item, Outbound::Notification(_))), "{items:?}");
        let response = response(self.server, frame);
        assert_eq!(response.id.map(|id| id.to_string()), Some(id.to_string()));
        match response.outcome {
            Ok(result) => Ok(result.parse().expect("a result is JSON")),
            Err(error) => Err(error.code.0),
        }
    }
}

fn uri(entry: u8) -> String {
    format!("test://entry-{entry}")
}

/// What a notice tells of.
fn told(server: &Server, item: &Outbound) -> Changed {
    let Outbound::Notification(frame) = item else { panic!("no notice: {item:?}") };
    let Message::Notification(notice) = decoded(server, frame) else { panic!("no notice: {frame:?}") };
    match notice.method.as_str() {
        "notifications/tools/list_changed" => Changed::Tools,
        "notifications/prompts/list_changed" => Changed::Prompts,
        "notifications/resources/updated" => {
            let params: Value = notice.params.raw().expect("it says which").parse().expect("parameters are JSON");
            let uri = params["uri"].as_str().expect("an address is text");
            Changed::Resource(
                uri.strip_prefix("test://entry-").and_then(|entry| entry.parse().ok()).expect("one of ours"),
            )
        }
        other => panic!("a notice of {other}"),
    }
}
