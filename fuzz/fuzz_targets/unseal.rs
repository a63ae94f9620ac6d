//! Sealed states: one that was given out is good for the very call it was given to, and anything else is refused with one
//! text; whatever stands beside it, the server is never at fault.
#![no_main]

use std::cell::RefCell;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mcp_core::{Principal, Scope, Server};
use mcp_fuzz::{answer, modern, send, within};
use mcp_wire::Response;
use serde_json::{Value, json};

#[derive(Arbitrary, Debug)]
struct Input {
    forgery: Forgery,
    other: Other,
    /// Answers as JSON, or else a good one.
    answers: Option<Vec<u8>>,
}

#[derive(Arbitrary, Debug)]
enum Forgery {
    None,
    Anything(String),
    NoText(u8),
    Flip { at: u16, with: u8 },
    Cut(u16),
    Appended(String),
    Halves { of_first: u16 },
}

#[derive(Arbitrary, Debug, PartialEq, Eq, Clone, Copy)]
enum Other {
    None,
    Tool,
    Arguments,
    Caller,
}

thread_local! {
    /// Two states that the server gave out for the same call.
    static STATES: RefCell<Option<[String; 2]>> = const { RefCell::new(None) };
    /// How every refusal reads.
    static REFUSAL: RefCell<Option<String>> = const { RefCell::new(None) };
}

fuzz_target!(|input: Input| {
    within(|server| {
        let states = STATES
            .with(|states| states.borrow_mut().get_or_insert_with(|| [(); 2].map(|()| given_out(server))).clone());
        let state = forge(&input.forgery, &states);
        let is_good = state.as_str().is_some_and(|state| states.iter().any(|given| given == state));
        let good = json!({ "user": { "action": "accept", "content": { "name": "Ann" } } });
        let answers = input.answers.as_ref().and_then(|text| serde_json::from_slice(text).ok());
        let is_answered = answers.is_none();
        let params = json!({ "requestState": state, "inputResponses": answers.unwrap_or(good) });
        let response = call(server, params, input.other);
        match response.outcome {
            Ok(result) => {
                assert!(is_good, "{state} was accepted");
                assert_eq!(input.other, Other::None, "{state} was accepted for another call");
                let result: Value = result.parse().expect("a result is JSON");
                if is_answered {
                    assert_eq!(result["content"][0]["text"], r#"{"name":"Ann"}"#);
                }
            }
            Err(error) => {
                assert_eq!(error.code.0, -32602, "{error:?}");
                if state.is_string() && !is_good {
                    REFUSAL.with(|refusal| {
                        let text = error.message.to_string();
                        assert_eq!(*refusal.borrow_mut().get_or_insert_with(|| text.clone()), text);
                    });
                }
                let is_expected = !is_good || input.other != Other::None || !is_answered;
                assert!(is_expected, "the state that was given out is refused: {error:?}");
            }
        }
    });
});

fn given_out(server: &Server) -> String {
    let response = call(server, json!({}), Other::None);
    let result: Value = response.outcome.expect("the first round asks").parse().expect("a result is JSON");
    result["requestState"].as_str().expect("what asks has a state").to_owned()
}

fn call(server: &Server, mut params: Value, other: Other) -> Response {
    params["name"] = if other == Other::Tool { "sample" } else { "ask" }.into();
    params["arguments"] = if other == Other::Arguments { json!({ "a": 1 }) } else { json!({}) };
    let caller = if other == Other::Caller { "bob" } else { "ann" };
    let peer = server.peer(Principal::new("fuzz", "https://issuer.example", caller), Scope::Single);
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": modern(params) });
    answer(server, send(server, &peer, &request))
}

fn forge(forgery: &Forgery, [state, other]: &[String; 2]) -> Value {
    let place = |at: u16| usize::from(at) % state.len();
    match forgery {
        Forgery::None => state.clone().into(),
        Forgery::Anything(text) => text.clone().into(),
        Forgery::NoText(which) => [json!(1), json!({}), json!([]), json!(true)][usize::from(*which) % 4].clone(),
        Forgery::Flip { at, with } => {
            let mut bytes = state.clone().into_bytes();
            bytes[place(*at)] = b"ABab01-_"[usize::from(*with) % 8];
            String::from_utf8(bytes).expect("a state is ASCII").into()
        }
        Forgery::Cut(at) => state[..place(*at)].into(),
        Forgery::Appended(text) => format!("{state}{text}").into(),
        Forgery::Halves { of_first } => {
            let at = place(*of_first).min(other.len());
            format!("{}{}", &state[..at], &other[at..]).into()
        }
    }
}
