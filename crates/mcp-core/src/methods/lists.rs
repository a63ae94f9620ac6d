//! The four lists: tools, resources, templates, prompts.
//!
//! Why here: they differ in nothing but what they list.
//! Invariants: entries are encoded once per revision and copied from then on; the order is that of registration; each
//! caller finds what it sees and nothing else.
//! Spec: 2026-07-28 server/utilities/pagination; server/tools, "Listing Tools"

use super::Incoming;
use crate::access::Item;
use crate::engine::exchange::Exchange;
use crate::protocol::finish::{Dress, frame_of};
use crate::protocol::page::{self, ListKind};
use crate::protocol::rejection::Hint;
use crate::registry::{Entry, Table};

pub(super) fn tools(request: &Incoming) -> Exchange {
    list(request, "tools", ListKind::Tools, &request.server.registry().tools, |key| Item::Tool(key))
}

pub(super) fn resources(request: &Incoming) -> Exchange {
    list(request, "resources", ListKind::Resources, &request.server.registry().resources, |key| Item::Resource(key))
}

pub(super) fn templates(request: &Incoming) -> Exchange {
    list(request, "resourceTemplates", ListKind::Templates, &request.server.registry().templates, |key| {
        Item::Template(key)
    })
}

pub(super) fn prompts(request: &Incoming) -> Exchange {
    list(request, "prompts", ListKind::Prompts, &request.server.registry().prompts, |key| Item::Prompt(key))
}

fn list<E: Entry>(
    request: &Incoming,
    member: &str,
    kind: ListKind,
    table: &Table<E>,
    item: impl for<'a> Fn(&'a str) -> Item<'a>,
) -> Exchange {
    let after = match page::start(kind, request.params.cursor.as_ref()) {
        Ok(after) => after,
        Err(error) => return request.fail(error),
    };
    let (entries, last) = table.page(after, request.server.limits().page.max(1), |key| request.sees(item(key)));
    let mut rendered: Vec<&[u8]> = Vec::with_capacity(entries.len());
    let texts = entries.iter().map(|entry| entry.rendered().of(request.revision, || entry.render(request.revision)));
    rendered.extend(texts.filter(|text| !text.is_empty()));
    let dress = Dress { hints: Some(request.server.list_hints()), ..request.dress() };
    let frame = frame_of(&request.id, &dress, rendered.iter().map(|text| text.len() + 1).sum(), |out| {
        out.push(b'"');
        out.extend_from_slice(member.as_bytes());
        out.extend_from_slice(b"\":[");
        for (index, text) in rendered.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(text);
        }
        out.push(b']');
        if let Some(last) = last {
            // A cursor is letters and digits: nothing to escape.
            out.extend_from_slice(b",\"nextCursor\":\"");
            out.extend_from_slice(page::cursor(kind, last).as_bytes());
            out.push(b'"');
        }
    });
    Exchange::ready(frame, Hint::Ok)
}
