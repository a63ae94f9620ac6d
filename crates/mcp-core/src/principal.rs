//! Who a request comes from, as the owner of sessions, tasks and sealed states.
//!
//! Why here: the engine compares owners in every look-up, whichever transport or provider named them.
//! Invariants: two principals are equal exactly when provider, issuer and subject are; scopes, claims and expiry
//! change with every token and never count. `Debug` prints no claims. The anonymous principal costs no allocation.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Who authenticated, or the anonymous caller.
///
/// Cheap to clone. Equality and hash look at provider, issuer and subject only, so a caller stays the same principal
/// over a token refresh.
#[derive(Clone, Default)]
pub struct Principal(Option<Arc<Identity>>);

#[derive(Clone)]
struct Identity {
    key: OwnerKey,
    provider: Box<str>,
    issuer: Box<str>,
    subject: Box<str>,
    scopes: Box<[Box<str>]>,
    claims: Option<Map<String, Value>>,
    expires_at: Option<SystemTime>,
}

/// What the stores keep of a [`Principal`]: a digest of provider, issuer and subject, equal exactly when they are.
///
/// It is no secret and proves nothing; it only tells owners apart. Its text form is 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerKey([u8; 32]);

impl Principal {
    /// The caller of a server that asks nobody who they are. All anonymous callers are equal.
    #[must_use]
    pub const fn anonymous() -> Self {
        Self(None)
    }

    /// The caller whom `provider` knows as `subject`, a name that `issuer` gave out.
    ///
    /// `issuer` is empty where the provider has only one. Never equal to [`Self::anonymous`], whatever the texts are.
    #[must_use]
    pub fn new(provider: &str, issuer: &str, subject: &str) -> Self {
        Self(Some(Arc::new(Identity {
            key: OwnerKey::of([provider, issuer, subject]),
            provider: provider.into(),
            issuer: issuer.into(),
            subject: subject.into(),
            scopes: Box::default(),
            claims: None,
            expires_at: None,
        })))
    }

    /// Replaces the scopes that were granted. Default: none.
    #[must_use]
    pub fn with_scopes<S: Into<Box<str>>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.identity_mut().scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Replaces what else the provider learned about the caller. Default: nothing.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        self.identity_mut().claims = Some(claims);
        self
    }

    /// Sets when the proof of identity ends. Default: never. Nobody is refused by this value, which the provider checks with
    /// every request; transports end by it the streams that are open then. A provider that allows for clocks that differ
    /// sets the moment from which it refuses.
    #[must_use]
    pub fn with_expiry(mut self, expires_at: SystemTime) -> Self {
        self.identity_mut().expires_at = Some(expires_at);
        self
    }

    /// The caller's name; unique only together with [`Self::issuer`] and [`Self::provider`]. `anonymous` for the
    /// anonymous caller.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.0.as_deref().map_or(ANONYMOUS, |identity| &identity.subject)
    }

    /// Who gave out the subject's name; empty for the anonymous caller.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.0.as_deref().map_or("", |identity| &identity.issuer)
    }

    /// The provider that authenticated the caller; `anonymous` for the anonymous caller.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.0.as_deref().map_or(ANONYMOUS, |identity| &identity.provider)
    }

    /// The granted scopes, in the order they were given.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|identity| identity.scopes.iter().map(AsRef::as_ref))
    }

    /// Whether `scope` was granted, to the letter: no scope implies another.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes().any(|granted| granted == scope)
    }

    /// What else the provider learned about the caller, if it told.
    #[must_use]
    pub fn claims(&self) -> Option<&Map<String, Value>> {
        self.0.as_deref()?.claims.as_ref()
    }

    /// When the proof of identity ends; `None` if it does not end by itself.
    #[must_use]
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.0.as_deref()?.expires_at
    }

    /// Whether nobody was authenticated.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.key() == OwnerKey::ANONYMOUS
    }

    /// The key under which what this caller owns is stored.
    #[must_use]
    pub fn key(&self) -> OwnerKey {
        self.0.as_deref().map_or(OwnerKey::ANONYMOUS, |identity| identity.key)
    }

    /// The anonymous caller gets an identity of its own only when something is attached to it; its key stays.
    fn identity_mut(&mut self) -> &mut Identity {
        Arc::make_mut(self.0.get_or_insert_with(|| {
            Arc::new(Identity {
                key: OwnerKey::ANONYMOUS,
                provider: ANONYMOUS.into(),
                issuer: Box::default(),
                subject: ANONYMOUS.into(),
                scopes: Box::default(),
                claims: None,
                expires_at: None,
            })
        }))
    }
}

const ANONYMOUS: &str = "anonymous";

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Principal")
            .field("provider", &self.provider())
            .field("issuer", &self.issuer())
            .field("subject", &self.subject())
            .finish_non_exhaustive()
    }
}

impl OwnerKey {
    /// No digest is all zeros, as far as anybody can tell.
    const ANONYMOUS: Self = Self([0; 32]);

    /// The digest's 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The owner of what a session brings about whose caller nobody knows; equal to the key of no principal, and no way
    /// back to the id.
    pub(crate) fn of_session(id: &str) -> Self {
        let mut digest = Sha256::new();
        // Longer than any length that a principal's digest begins with.
        digest.update([0xff; 8]);
        digest.update(id.as_bytes());
        Self(digest.finalize().into())
    }

    /// Each part goes in behind its length, so that no two triples give the digest the same input.
    fn of(parts: [&str; 3]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        Self(digest.finalize().into())
    }
}

impl fmt::Display for OwnerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for OwnerKey {
    type Err = NoOwnerKey;

    fn from_str(text: &str) -> Result<Self, NoOwnerKey> {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(NoOwnerKey),
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(NoOwnerKey);
        }
        let mut key = [0; 32];
        for (byte, [high, low]) in key.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(key))
    }
}

impl Serialize for OwnerKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OwnerKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The text is no [`OwnerKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of an owner is 64 lower-case hexadecimal digits")]
#[non_exhaustive]
pub struct NoOwnerKey;

impl fmt::Debug for OwnerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OwnerKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn claims() -> Map<String, Value> {
        Map::from_iter([("email".to_owned(), Value::from("secret@example.com"))])
    }

    #[test]
    fn a_refreshed_token_is_still_the_same_owner() {
        let before = Principal::new("jwt", "https://as", "ann").with_scopes(["read"]);
        let after = Principal::new("jwt", "https://as", "ann")
            .with_scopes(["read", "write"])
            .with_claims(claims())
            .with_expiry(SystemTime::UNIX_EPOCH + Duration::from_secs(60));
        assert_eq!(before, after);
        assert_eq!(before.key(), after.key());
        assert_eq!(HashSet::from([before, after]).len(), 1);
    }

    #[test]
    fn moving_a_letter_between_the_parts_makes_another_owner() {
        assert_ne!(Principal::new("p", "a", "bc"), Principal::new("p", "ab", "c"));
        assert_ne!(Principal::new("p", "", "x"), Principal::new("p", "x", ""));
        assert_ne!(Principal::new("px", "", ""), Principal::new("p", "x", ""));
    }

    #[test]
    fn nobody_can_be_named_into_the_anonymous_principal() {
        for triple in [("", "", ""), ("anonymous", "", "anonymous")] {
            let named = Principal::new(triple.0, triple.1, triple.2);
            assert_ne!(named, Principal::anonymous());
            assert!(!named.is_anonymous());
        }
    }

    #[test]
    fn an_anonymous_caller_with_scopes_stays_anonymous() {
        let reader = Principal::anonymous().with_scopes(["read"]);
        assert!(reader.is_anonymous() && reader.has_scope("read"));
        assert_eq!(reader, Principal::anonymous());
        assert_eq!((reader.provider(), reader.issuer(), reader.subject()), ("anonymous", "", "anonymous"));
        assert!(!Principal::anonymous().has_scope("read"));
    }

    #[test]
    fn attaching_scopes_leaves_earlier_clones_as_they_were() {
        let plain = Principal::new("p", "i", "s");
        let scoped = plain.clone().with_scopes(["read"]);
        assert_eq!(plain.scopes().count(), 0);
        assert_eq!(scoped.scopes().collect::<Vec<_>>(), ["read"]);
        assert!(!scoped.has_scope("rea") && !scoped.has_scope("read write"));
    }

    #[test]
    fn debug_output_holds_no_claims() {
        let printed = format!("{:?}", Principal::new("p", "i", "ann").with_claims(claims()));
        assert!(printed.contains("ann") && !printed.contains("secret"), "{printed}");
    }

    #[test]
    fn a_key_prints_as_64_hexadecimal_digits() {
        assert_eq!(Principal::anonymous().key().to_string(), "0".repeat(64));
        assert_eq!(
            Principal::new("provider", "issuer", "subject").key().to_string(),
            "9f4f6f1580fcf3e743183883bb45ecf4215f1c03525b45cf1765d6d0ec3507ed",
            "the key is stored: changing it orphans what callers own"
        );
    }

    #[test]
    fn what_is_no_key_is_not_read_as_one() {
        for text in ["", "0", &"0".repeat(63), &"0".repeat(65), &"0".repeat(66), &"F".repeat(64), &"\u{e9}".repeat(32)]
        {
            assert_eq!(text.parse::<OwnerKey>(), Err(NoOwnerKey), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_key_survives_its_journey_as_text(subject in ".{0,8}") {
            let key = Principal::new("p", "i", &subject).key();
            prop_assert_eq!(key.to_string().parse(), Ok(key));
            let json = serde_json::to_string(&key).unwrap();
            prop_assert_eq!(serde_json::from_str::<OwnerKey>(&json).unwrap(), key);
        }

        #[test]
        fn keys_are_equal_exactly_when_the_triples_are(
            one in ("[ab]{0,3}", "[ab]{0,3}", "[ab]{0,3}"),
            two in ("[ab]{0,3}", "[ab]{0,3}", "[ab]{0,3}"),
        ) {
            let first = Principal::new(&one.0, &one.1, &one.2);
            let second = Principal::new(&two.0, &two.1, &two.2);
            prop_assert_eq!(first.key() == second.key(), one == two);
            prop_assert_eq!(first == second, one == two);
        }
    }
}
