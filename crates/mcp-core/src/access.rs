//! Who sees and may use what: one policy over everything that is registered.
//!
//! Why here: lists, look-ups and calls ask the same policy, so that what is hidden in one place shows in no other.
//! Invariants: what a caller does not see looks as if it were not registered, on every method; a policy that panics hides
//! and denies; lists keep their order, and pages neither skip nor repeat what is visible on both sides of a change.
//! Spec: 2026-07-28 basic/authorization, "Scope Challenge Handling"

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::Principal;
use crate::engine::worker::panic_text;

/// Decides what each caller sees and may use: [`ServerBuilder::access`](crate::ServerBuilder::access).
///
/// Both methods are called often (once per entry of a list) and on the way of every request, so that they look at what is
/// at hand: the caller's scopes and claims, the item's name. What takes a look elsewhere belongs into the provider that
/// authenticates, which puts what it finds into the claims.
///
/// ```
/// use mcp_core::{AccessPolicy, Action, Denied, Item, Principal};
///
/// struct Staff;
///
/// impl AccessPolicy for Staff {
///     fn sees(&self, caller: &Principal, item: Item<'_>) -> bool {
///         !matches!(item, Item::Tool("shutdown")) || caller.has_scope("staff")
///     }
///
///     fn permits(&self, caller: &Principal, action: Action, _item: Item<'_>) -> Result<(), Denied> {
///         match action {
///             Action::Subscribe if !caller.has_scope("watch") => Err(Denied::needing(["watch"])),
///             _ => Ok(()),
///         }
///     }
/// }
/// ```
pub trait AccessPolicy: Send + Sync + 'static {
    /// Whether the caller sees an item. One that is not seen is in no list, and every method answers as if it were not
    /// there. A panic counts as no.
    fn sees(&self, caller: &Principal, item: Item<'_>) -> bool;

    /// Whether the caller may do this with an item that it sees. Default: yes. A panic counts as a no without scopes.
    ///
    /// # Errors
    /// What the caller lacks: over HTTP a 403 whose challenge names the scopes, where the status is still open.
    fn permits(&self, caller: &Principal, action: Action, item: Item<'_>) -> Result<(), Denied> {
        let _ = (caller, action, item);
        Ok(())
    }
}

/// Something that is registered, or an address that is read or subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A tool, by its name.
    Tool(&'a str),
    /// A prompt, by its name.
    Prompt(&'a str),
    /// An address, its scheme in lower case: of a resource, or of what a template stands for.
    Resource(&'a str),
    /// A template, as it was registered. Whoever reads through one has to see both the template and the address.
    Template(&'a str),
}

/// What is to be done with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// `tools/call`
    Call,
    /// `prompts/get`
    Fill,
    /// `resources/read`
    Read,
    /// `resources/subscribe`, or an address in the filter of `subscriptions/listen`, which is left out where it is denied.
    Subscribe,
    /// `completion/complete`
    Complete,
}

/// A refusal, with the scopes that would help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// Scopes the caller needs; empty where none would help.
    pub scopes: Vec<String>,
}

impl Denied {
    /// A refusal that no scope would change.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A refusal that these scopes, all of them, would change.
    #[must_use]
    pub fn needing<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Self {
        Self { scopes: scopes.into_iter().map(Into::into).collect() }
    }
}

/// The policy of a server, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Access(Option<Arc<dyn AccessPolicy>>);

impl Access {
    pub(crate) fn of(policy: Arc<dyn AccessPolicy>) -> Self {
        Self(Some(policy))
    }

    /// Whether callers may differ in what they see.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn sees(&self, caller: &Principal, item: Item<'_>) -> bool {
        let Some(policy) = &self.0 else { return true };
        catch_unwind(AssertUnwindSafe(|| policy.sees(caller, item))).unwrap_or_else(|payload| {
            tracing::error!(panic = panic_text(&*payload), "the access policy panicked; the item stays hidden");
            false
        })
    }

    pub(crate) fn permits(&self, caller: &Principal, action: Action, item: Item<'_>) -> Result<(), Denied> {
        let Some(policy) = &self.0 else { return Ok(()) };
        catch_unwind(AssertUnwindSafe(|| policy.permits(caller, action, item))).unwrap_or_else(|payload| {
            tracing::error!(panic = panic_text(&*payload), "the access policy panicked; the action is denied");
            Err(Denied::new())
        })
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Access").field(&self.is_set()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken;

    impl AccessPolicy for Broken {
        fn sees(&self, _caller: &Principal, item: Item<'_>) -> bool {
            panic!("no idea about {item:?}")
        }

        fn permits(&self, _caller: &Principal, action: Action, _item: Item<'_>) -> Result<(), Denied> {
            panic!("no idea about {action:?}")
        }
    }

    #[test]
    fn a_policy_that_panics_hides_and_denies() {
        let access = Access::of(Arc::new(Broken));
        let caller = Principal::anonymous();
        assert!(!access.sees(&caller, Item::Tool("t")));
        assert_eq!(access.permits(&caller, Action::Call, Item::Tool("t")), Err(Denied::new()));
    }

    #[test]
    fn without_a_policy_everything_is_seen_and_permitted() {
        let (access, caller) = (Access::default(), Principal::anonymous());
        assert!(access.sees(&caller, Item::Resource("x:y")));
        assert_eq!(access.permits(&caller, Action::Read, Item::Resource("x:y")), Ok(()));
    }
}
