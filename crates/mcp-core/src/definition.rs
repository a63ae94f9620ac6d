//! What tools, resources, templates and prompts say of themselves to lists: one way to write their setters.
//!
//! Why here: the four kinds are registered by different values, and the same words mean the same in each.
//! Invariants: a setter replaces its member and nothing else.

/// Setters of optional members of `self.definition`.
macro_rules! definition_setters {
    ($($(#[$attribute:meta])* $member:ident: $type:ty;)+) => {$(
        $(#[$attribute])*
        pub fn $member(mut self, $member: impl Into<$type>) -> Self {
            self.definition.$member = Some($member.into());
            self
        }
    )+};
}
