//! Classifying and admitting: whatever message comes, under whatever version header, a request gets one response with its
//! id, in the words of its era, and anything else gets none.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcp_core::{Outbound, Principal, Scope, Split};
use mcp_fuzz::{decoded, read, response, shake_hands, within};
use mcp_wire::{Frame, Message, Revision};

const DECLARED: [Option<&str>; 6] =
    [None, Some("2026-07-28"), Some("2025-11-25"), Some("2024-11-05"), Some("2099-01-01"), Some("")];

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let declared = DECLARED[usize::from(*choice) % DECLARED.len()];
    let frame = Bytes::copy_from_slice(text);
    within(|server| {
        let Frame::One(message) = Frame::decode(&frame, server.limits().decode()) else { return };
        let owed = match &message {
            Message::Request(request) => Some(request.id.clone()),
            Message::Notification(_) | Message::Response(_) => None,
        };
        let classified = server.classify(message.clone(), declared);
        let split = server.classify(message, declared).split();
        if let Split::Refused(rejection) = &split {
            assert!(owed.is_none() || rejection.id == owed, "refused as another request: {rejection:?}");
        }
        let is_modern = matches!(split, Split::Modern(_));

        let scope = match choice % 3 {
            0 => Scope::Connection,
            1 => Scope::Stateless(Revision::V2025_06_18),
            _ => Scope::Single,
        };
        let is_connection = matches!(scope, Scope::Connection);
        let peer = server.peer(Principal::anonymous(), scope);
        if is_connection && choice & 128 != 0 {
            shake_hands(server, &peer);
        }
        let mut exchange = peer.receive(classified);
        let Some(id) = owed else {
            let (items, over) = read(&mut exchange);
            let is_refused = matches!(split, Split::Refused(_));
            assert!(over && (items.is_empty() || is_refused), "an answer to what asks nothing: {items:?}");
            return;
        };
        let (items, over) = read(&mut exchange);
        let mut responses = 0;
        for (position, item) in items.iter().enumerate() {
            match item {
                Outbound::Response(frame, _) => {
                    responses += 1;
                    assert_eq!(position + 1, items.len(), "something follows the response");
                    let response = response(server, frame);
                    assert_eq!(response.id.as_ref(), Some(&id));
                    if let Ok(result) = response.outcome {
                        let value: serde_json::Value = result.parse().expect("a result is JSON");
                        assert_eq!(value.get("resultType").is_some(), is_modern, "{value}");
                    }
                }
                Outbound::Notification(frame) => assert!(matches!(decoded(server, frame), Message::Notification(_))),
                Outbound::Request(frame) => {
                    assert!(!is_modern && matches!(decoded(server, frame), Message::Request(_)));
                }
                _ => {}
            }
        }
        assert_eq!(responses, usize::from(over), "{items:?}");
    });
});
