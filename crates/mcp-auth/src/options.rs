//! Why a provider cannot be built from its options.
//!
//! Why here: all providers refuse in one form, so that whoever reads it knows which provider and which option.
//! Invariants: all texts are fixed, so none holds a secret.

/// An option that a provider refused at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {option} {reason}")]
pub struct InvalidOption {
    provider: &'static str,
    option: &'static str,
    reason: &'static str,
}

impl InvalidOption {
    pub(crate) const fn new(provider: &'static str, option: &'static str, reason: &'static str) -> Self {
        Self { provider, option, reason }
    }

    /// Which provider refused, such as `jwt`.
    #[must_use]
    pub const fn provider(&self) -> &'static str {
        self.provider
    }

    /// What it refused, such as `audience`.
    #[must_use]
    pub const fn option(&self) -> &'static str {
        self.option
    }

    /// Why, as the rest of a sentence that begins with the option.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_a_sentence() {
        let refusal = InvalidOption::new("jwt", "audience", "must not be empty");
        assert_eq!(refusal.to_string(), "jwt: audience must not be empty");
        assert_eq!((refusal.provider(), refusal.option(), refusal.reason()), ("jwt", "audience", "must not be empty"));
    }
}
