//! The envelope around `requestState`: what the server must remember between two rounds, kept by the client, unreadable
//! and unchangeable for it.
//!
//! Why here: a modern server stores nothing between requests, and any copy of it may get the retry.
//! Invariants: a state opens only for the principal, method, target and arguments it was sealed for, before its expiry,
//! under a key of the ring; every failure looks the same from outside.
//! Spec: 2026-07-28 basic/patterns/mrtr, "Request State"

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::answers::Remembered;
use super::digest::Digest;
use crate::OwnerKey;

/// A secret that seals request states.
#[derive(Clone)]
pub struct StateKey {
    id: [u8; 4],
    cipher: XChaCha20Poly1305,
}

impl StateKey {
    /// A key from 32 secret bytes. Copies of a server that share it open each other's states.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Self {
        let digest = Sha256::digest(secret);
        let mut id = [0; 4];
        id.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        Self { id, cipher: XChaCha20Poly1305::new(&secret.into()) }
    }

    /// A key that nobody else has, from the operating system's randomness. States do not outlive the process.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self::new(secret))
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The key that seals, and older or coming ones that only open.
///
/// To rotate without refusing a call that is under way: first let every copy accept the new key, then seal with it and
/// accept the old one, and drop the old one when [`Limits::state_lifetime`](crate::Limits::state_lifetime) has passed.
#[derive(Clone, Debug)]
pub struct KeyRing {
    sealing: StateKey,
    accepted: Vec<StateKey>,
}

impl KeyRing {
    /// A ring that seals and opens with one key.
    #[must_use]
    pub fn new(sealing: StateKey) -> Self {
        Self { sealing, accepted: Vec::new() }
    }

    /// The same ring, which also opens what `key` sealed.
    #[must_use]
    pub fn accepting(mut self, key: StateKey) -> Self {
        self.accepted.push(key);
        self
    }

    fn with_id(&self, id: &[u8]) -> impl Iterator<Item = &StateKey> {
        std::iter::once(&self.sealing).chain(&self.accepted).filter(move |key| key.id == id)
    }
}

/// What a state is bound to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) owner: OwnerKey,
    pub(crate) method: &'a str,
    /// The tool, prompt or URI that the request names.
    pub(crate) target: &'a str,
    pub(crate) arguments: Digest,
}

impl Binding<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut hash = Sha256::new();
        hash.update([VERSION]);
        hash.update(self.owner.as_bytes());
        for part in [self.method, self.target] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.update(self.arguments);
        hash.finalize().to_vec()
    }
}

/// The sealed content.
#[derive(Serialize, Deserialize)]
struct Content {
    /// Milliseconds since the Unix epoch.
    #[serde(rename = "x")]
    expires: u64,
    #[serde(rename = "m")]
    remembered: Remembered,
}

/// A state that does not open, for whatever reason: tampered, expired, foreign, sealed by an unknown key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unopened;

const VERSION: u8 = 1;
const KEY_ID: usize = 4;
const NONCE: usize = 24;

/// Seals what is to be remembered until `expires` (milliseconds since the epoch). `None` when the operating system has
/// no randomness or the content cannot be encoded.
pub(crate) fn seal(ring: &KeyRing, binding: Binding<'_>, remembered: &Remembered, expires: u64) -> Option<String> {
    #[derive(Serialize)]
    struct Borrowed<'a> {
        #[serde(rename = "x")]
        expires: u64,
        #[serde(rename = "m")]
        remembered: &'a Remembered,
    }

    let content = serde_json::to_vec(&Borrowed { expires, remembered }).ok()?;
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).ok()?;
    let payload = Payload { msg: &content, aad: &binding.bytes() };
    let sealed = ring.sealing.cipher.encrypt(&XNonce::from(nonce), payload).ok()?;
    let mut token = Vec::with_capacity(1 + KEY_ID + NONCE + sealed.len());
    token.push(VERSION);
    token.extend_from_slice(&ring.sealing.id);
    token.extend_from_slice(&nonce);
    token.extend_from_slice(&sealed);
    Some(URL_SAFE_NO_PAD.encode(token))
}

/// Opens a state that has not expired at `now`.
pub(crate) fn open(ring: &KeyRing, binding: Binding<'_>, token: &str, now: u64) -> Result<Remembered, Unopened> {
    let token = URL_SAFE_NO_PAD.decode(token).map_err(|_| Unopened)?;
    let (&version, token) = token.split_first().ok_or(Unopened)?;
    let (id, token) = token.split_at_checked(KEY_ID).ok_or(Unopened)?;
    let (nonce, sealed) = token.split_at_checked(NONCE).ok_or(Unopened)?;
    let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| Unopened)?;
    if version != VERSION {
        return Err(Unopened);
    }
    let bound = binding.bytes();
    let content = ring
        .with_id(id)
        .find_map(|key| key.cipher.decrypt(&XNonce::from(nonce), Payload { msg: sealed, aad: &bound }).ok())
        .ok_or(Unopened)?;
    let content: Content = serde_json::from_slice(&content).map_err(|_| Unopened)?;
    if content.expires <= now {
        return Err(Unopened);
    }
    Ok(content.remembered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Principal;

    fn ring() -> KeyRing {
        KeyRing::new(StateKey::new([7; 32]))
    }

    fn binding(principal: &Principal) -> Binding<'_> {
        Binding { owner: principal.key(), method: "tools/call", target: "t", arguments: [1; 32] }
    }

    fn remembered() -> Remembered {
        Remembered { round: 3, ..Remembered::default() }
    }

    #[test]
    fn a_state_opens_for_the_very_request_it_was_sealed_for() {
        let anna = Principal::new("p", "i", "anna");
        let token = seal(&ring(), binding(&anna), &remembered(), 1_000).unwrap();
        assert_eq!(open(&ring(), binding(&anna), &token, 999).unwrap().round, 3);
        assert_ne!(token, seal(&ring(), binding(&anna), &remembered(), 1_000).unwrap(), "nonces differ");
    }

    #[test]
    fn a_state_does_not_open_for_anything_else() {
        let (anna, nobody) = (Principal::new("p", "i", "anna"), Principal::anonymous());
        let token = seal(&ring(), binding(&anna), &remembered(), 1_000).unwrap();
        let right = binding(&anna);
        let others = [
            Binding { owner: nobody.key(), ..right },
            Binding { owner: Principal::new("p", "i", "bert").key(), ..right },
            Binding { method: "prompts/get", ..right },
            Binding { target: "u", ..right },
            Binding { arguments: [2; 32], ..right },
        ];
        for other in others {
            assert_eq!(open(&ring(), other, &token, 0), Err(Unopened), "{other:?}");
        }
        assert_eq!(open(&ring(), right, &token, 1_000), Err(Unopened), "expired");
        for tampered in
            [format!("{token}x"), format!("{token}AAAA"), String::new(), "AQ".to_owned(), token.to_lowercase()]
        {
            assert_eq!(open(&ring(), right, &tampered, 0), Err(Unopened), "{tampered}");
        }
    }

    #[test]
    fn every_single_changed_byte_is_noticed() {
        let anna = Principal::new("p", "i", "anna");
        let token = URL_SAFE_NO_PAD.decode(seal(&ring(), binding(&anna), &remembered(), 1_000).unwrap()).unwrap();
        for index in 0..token.len() {
            let mut changed = token.clone();
            changed[index] ^= 1;
            assert_eq!(open(&ring(), binding(&anna), &URL_SAFE_NO_PAD.encode(changed), 0), Err(Unopened), "{index}");
        }
    }

    #[test]
    fn a_ring_opens_old_states_until_their_key_is_dropped() {
        let (old, new) = (StateKey::new([1; 32]), StateKey::new([2; 32]));
        let anna = Principal::new("p", "i", "anna");
        let token = seal(&KeyRing::new(old.clone()), binding(&anna), &remembered(), 10).unwrap();
        assert!(open(&KeyRing::new(new.clone()).accepting(old), binding(&anna), &token, 0).is_ok());
        assert_eq!(open(&KeyRing::new(new), binding(&anna), &token, 0), Err(Unopened));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_opening_panic(token in "[A-Za-z0-9_-]{0,200}") {
            proptest::prop_assert_eq!(open(&ring(), binding(&Principal::anonymous()), &token, 0), Err(Unopened));
        }
    }
}
