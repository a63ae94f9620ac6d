//! The W3C trace context that a request belongs to: validated and bounded when it is received, handed on as it came.
//!
//! Why here: the one place that decides which texts of a peer may reach logs, traces and other peers.
//! Invariants: pure; what breaks the format is as good as absent; without a valid `traceparent` there is no `tracestate`.
//! Spec: 2026-07-28 basic/index, "General fields"

use std::borrow::Cow;

use mcp_wire::RawJson;
use mcp_wire::params::Params;
use serde::Serialize;

use crate::protocol::admit::Carrier;

/// Bytes of a `traceparent` of the only version there is.
const PARENT_BYTES: usize = 55;
/// Bytes of one of a version to come.
const MAX_PARENT_BYTES: usize = 128;
/// What every recipient of a `tracestate` has to hand on.
const MAX_STATE_BYTES: usize = 512;
const MAX_STATE_MEMBERS: usize = 32;
/// What every recipient of `baggage` has to hand on.
const MAX_BAGGAGE_BYTES: usize = 8192;
const MAX_BAGGAGE_MEMBERS: usize = 64;

/// The W3C trace context that came with a request, to be handed on.
///
/// It is the sender's word and proves nothing. `baggage` may hold whatever the sender's programs put there; the engine
/// records it nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TraceContext(Parts);

/// Most requests have none of it.
type Parts = Option<Box<Headers>>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Headers {
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baggage: Option<String>,
}

impl TraceContext {
    /// What of these is valid and within bounds: a `tracestate` of 512 bytes and 32 members, `baggage` of 8,192 bytes and
    /// 64 members. Without a valid `traceparent` there is no `tracestate`; `baggage` stands by itself.
    #[must_use]
    pub fn new(traceparent: Option<&str>, tracestate: Option<&str>, baggage: Option<&str>) -> Self {
        let traceparent = traceparent.map(str::trim).filter(|text| is_parent(text));
        let tracestate = tracestate.map(str::trim).filter(|text| traceparent.is_some() && is_state(text));
        let baggage = baggage.map(str::trim).filter(|text| is_baggage(text));
        Self::of(traceparent, tracestate, baggage)
    }

    /// Of texts that are valid.
    fn of(traceparent: Option<&str>, tracestate: Option<&str>, baggage: Option<&str>) -> Self {
        if traceparent.is_none() && baggage.is_none() {
            return Self::default();
        }
        let owned = |text: Option<&str>| text.map(ToOwned::to_owned);
        let (traceparent, tracestate, baggage) = (owned(traceparent), owned(tracestate), owned(baggage));
        Self(Some(Box::new(Headers { traceparent, tracestate, baggage })))
    }

    /// As the message says in its `_meta`; what it does not say there, as its carrier does.
    pub(crate) fn received(params: &Params, carrier: &dyn Carrier) -> Self {
        let text = |member: &Option<RawJson>| member.as_ref().and_then(RawJson::text).map(Cow::into_owned);
        let keys = &params.keys;
        if keys.traceparent.is_none() && keys.baggage.is_none() {
            return carrier.trace();
        }
        let (parent, state, baggage) = (text(&keys.traceparent), text(&keys.tracestate), text(&keys.baggage));
        let said = Self::new(parent.as_deref(), state.as_deref(), baggage.as_deref());
        if said.traceparent().is_some() && said.baggage().is_some() {
            return said;
        }
        let carried = carrier.trace();
        let parent = if said.traceparent().is_some() { &said } else { &carried };
        Self::of(parent.traceparent(), parent.tracestate(), said.baggage().or_else(|| carried.baggage()))
    }

    /// `traceparent`: version, trace, span and flags of the sender.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.0.as_ref()?.traceparent.as_deref()
    }

    /// `tracestate`: what tracing systems add, theirs to understand.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.0.as_ref()?.tracestate.as_deref()
    }

    /// `baggage`: properties that the sender's programs hand on.
    #[must_use]
    pub fn baggage(&self) -> Option<&str> {
        self.0.as_ref()?.baggage.as_deref()
    }

    /// The trace: 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent()?.get(3..35)
    }

    /// The sender's span: 16 lower-case hexadecimal digits.
    #[must_use]
    pub fn parent_id(&self) -> Option<&str> {
        self.traceparent()?.get(36..52)
    }

    /// Whether the sender may have recorded its span.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        let flags = self.traceparent().and_then(|parent| parent.get(53..55));
        flags.and_then(|flags| u8::from_str_radix(flags, 16).ok()).is_some_and(|flags| flags & 1 == 1)
    }

    /// Whether the request belongs to no trace and has no baggage.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

fn is_parent(text: &str) -> bool {
    let bytes = text.as_bytes();
    let hexadecimal = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let (Some(head), Some(rest)) = (bytes.get(..PARENT_BYTES), bytes.get(PARENT_BYTES..)) else { return false };
    let [v1, v2, b'-', ids @ .., b'-', f1, f2] = head else { return false };
    let (Some(trace), Some(b'-'), Some(span)) = (ids.get(..32), ids.get(32), ids.get(33..)) else { return false };
    let fits = match (&[*v1, *v2], rest) {
        (b"ff", _) => false,
        (_, []) => true,
        (b"00", _) => false,
        // A version to come may add members.
        (_, more) => bytes.len() <= MAX_PARENT_BYTES && more.starts_with(b"-") && more.iter().all(u8::is_ascii_graphic),
    };
    let is_zero = |part: &[u8]| part.iter().all(|byte| *byte == b'0');
    fits && hexadecimal(&[*v1, *v2, *f1, *f2])
        && [trace, span].into_iter().all(|part| hexadecimal(part) && !is_zero(part))
}

fn is_state(text: &str) -> bool {
    let is_member = |member: &str| {
        let Some((key, value)) = member.split_once('=') else { return false };
        let key_byte = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
        let value_byte = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
        (1..=256).contains(&key.len())
            && key.bytes().all(key_byte)
            && key.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && (1..=256).contains(&value.len())
            && value.bytes().all(value_byte)
    };
    is_list(text, MAX_STATE_BYTES, MAX_STATE_MEMBERS, is_member)
}

fn is_baggage(text: &str) -> bool {
    let token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let value_byte = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\');
    let is_token = |text: &str| !text.is_empty() && text.bytes().all(token_byte);
    let is_pair = |text: &str| match text.split_once('=') {
        Some((key, value)) => is_token(key.trim()) && value.trim().bytes().all(value_byte),
        None => false,
    };
    let is_member = |member: &str| {
        let mut parts = member.split(';');
        parts.next().is_some_and(is_pair) && parts.all(|property| is_token(property.trim()) || is_pair(property))
    };
    is_list(text, MAX_BAGGAGE_BYTES, MAX_BAGGAGE_MEMBERS, is_member)
}

/// Whether this is a list of such members. Empty ones are allowed, and count.
fn is_list(text: &str, bytes: usize, members: usize, is_member: impl Fn(&str) -> bool) -> bool {
    let blank = |member: &str| member.is_empty();
    text.len() <= bytes
        && text.split(',').count() <= members
        && text.split(',').map(str::trim).all(|member| blank(member) || is_member(member))
        && text.split(',').map(str::trim).any(|member| !blank(member))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parent_of(text: &str) -> Option<String> {
        TraceContext::new(Some(text), None, None).traceparent().map(ToOwned::to_owned)
    }

    #[test]
    fn a_parent_is_taken_to_the_letter_or_not_at_all() {
        let trace = TraceContext::new(Some(PARENT), None, None);
        assert_eq!(trace.traceparent(), Some(PARENT));
        assert_eq!(trace.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(trace.parent_id(), Some("00f067aa0ba902b7"));
        assert!(trace.is_sampled());
        assert!(!TraceContext::new(Some(&PARENT.replace("-01", "-fe")), None, None).is_sampled());
        let later = PARENT.replacen("00", "cc", 1);
        for good in [later.clone(), format!("{later}-what.the-future-brings"), format!(" {PARENT} ")] {
            assert_eq!(parent_of(&good).as_deref(), Some(good.trim()), "{good}");
        }
        for bad in [
            String::new(),
            PARENT.to_uppercase(),
            PARENT.replacen("00", "ff", 1),
            PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            PARENT.replace('-', "_"),
            PARENT.replace("736-00", "73-600"),
            PARENT.replace("736", "73é"),
            format!("{PARENT}-more"),
            format!("{later}more"),
            format!("{later}-{}", "x".repeat(MAX_PARENT_BYTES)),
            PARENT.chars().take(54).collect(),
        ] {
            assert_eq!(parent_of(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_state_needs_a_parent_and_its_own_form() {
        let state_of =
            |text: &str| TraceContext::new(Some(PARENT), Some(text), None).tracestate().map(ToOwned::to_owned);
        let many = |count: usize| (0..count).map(|key| format!("k{key}=v")).collect::<Vec<_>>().join(",");
        for good in ["a=1", "rojo=00f0,congo=t61 x", "t@v/*=y", "a=1,,b=2", &many(32)] {
            assert_eq!(state_of(good).as_deref(), Some(good));
        }
        let long = format!("a={}", "x".repeat(511));
        for bad in ["", ",", "a", "=1", "a=", "A=1", "a=b=c", "a=\u{e9}", "a=1\nb=2", &many(33), &long] {
            assert_eq!(state_of(bad), None, "{bad}");
        }
        assert_eq!(TraceContext::new(None, Some("a=1"), None), TraceContext::default());
    }

    #[test]
    fn baggage_stands_by_itself() {
        let baggage_of = |text: &str| TraceContext::new(None, None, Some(text)).baggage().map(ToOwned::to_owned);
        for good in ["a=1", "userId=alice , serverNode=DF%2028;p;q=1", "k="] {
            assert_eq!(baggage_of(good).as_deref(), Some(good));
        }
        let long = format!("a={}", "x".repeat(MAX_BAGGAGE_BYTES));
        for bad in ["", "a", "=1", "a b=1", "a=\"1\"", "a=1\r\nx: y", "a=1;", "a=\u{e9}", &"a=1,".repeat(65), &long] {
            assert_eq!(baggage_of(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_what_is_kept_is_short_and_printable(
            parent in "\\PC{0,80}|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[a-z]{0,9})?",
            state in "([a-z]{1,3}=[ -~]{0,9},?){0,40}|\\PC{0,40}",
            baggage in "([a-z]{1,3}=[ -~]{0,9}[,;]?){0,80}|\\PC{0,40}",
        ) {
            let trace = TraceContext::new(Some(&parent), Some(&state), Some(&baggage));
            let kept = [(trace.traceparent(), MAX_PARENT_BYTES), (trace.tracestate(), MAX_STATE_BYTES), (trace.baggage(), MAX_BAGGAGE_BYTES)];
            for (kept, most) in kept {
                let kept = kept.unwrap_or_default();
                prop_assert!(kept.len() <= most && kept.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            }
            prop_assert!(trace.traceparent().is_some() || (trace.tracestate().is_none() && trace.trace_id().is_none()));
            // What is kept is kept again.
            prop_assert_eq!(&TraceContext::new(trace.traceparent(), trace.tracestate(), trace.baggage()), &trace);
        }
    }
}
