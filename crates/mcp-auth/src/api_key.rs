//! API keys, each standing for one principal.
//!
//! Why here: the usual credential of programs where there is no authorization server.
//! Invariants: a key is stored as an HMAC under a pepper, so that a stolen store lets nobody in; every check computes one
//! HMAC per pepper, whoever asks; a replaced table counts from the next request on. Neither keys nor HMACs are printed.
//! Spec: none; 2026-07-28 basic/authorization leaves other schemes to servers

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use hmac::{Hmac, KeyInit, Mac};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use mcp_core::Principal;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::credential::{api_key, is_api_key};
use crate::{AuthError, AuthProvider, AuthRequest, BearerChallenge, Challenge, InvalidChallenge, InvalidOption};

/// A secret that stored keys are useless without. Keep it apart from them; at least 32 random bytes.
///
/// `Debug` prints nothing of it, and it is wiped from memory when dropped.
pub struct Pepper(Zeroizing<Vec<u8>>);

const PROVIDER: &str = "api key";
/// What a stored key begins with.
const FORM: &str = "hmac-sha256$";
const MINIMUM_KEY: usize = 16;

impl Pepper {
    /// Takes at least 32 bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for fewer.
    pub fn new(secret: &[u8]) -> Result<Self, InvalidOption> {
        if secret.len() < 32 {
            return Err(InvalidOption::new(PROVIDER, "pepper", "must have at least 32 bytes"));
        }
        Ok(Self(Zeroizing::new(secret.to_vec())))
    }

    /// What to store of `key`: `hmac-sha256$` and 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] unless the key has 16 to 512 visible ASCII characters. It also has to be random;
    /// `openssl rand -base64 32` makes a good one.
    pub fn stored_form(&self, key: &str) -> Result<String, InvalidOption> {
        if key.len() < MINIMUM_KEY || !is_api_key(key.as_bytes()) {
            return Err(InvalidOption::new(PROVIDER, "key", "must have 16 to 512 visible ASCII characters"));
        }
        let digits =
            self.digest(key.as_bytes()).iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"));
        Ok(format!("{FORM}{digits}"))
    }

    fn digest(&self, key: &[u8]) -> [u8; 32] {
        // An HMAC takes a key of any length, so the other arm cannot be reached; zeros would match no entry.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return [0; 32] };
        mac.update(key);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pepper")
    }
}

/// Which stored keys stand for whom.
#[derive(Default, Clone)]
pub struct ApiKeyTable(HashMap<[u8; 32], Principal>);

impl ApiKeyTable {
    /// An empty table, with which nobody is let in.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in who presents the key that `stored` was made of, as `principal`. Several keys may stand for one
    /// principal, so that an old one goes on working until its successor is everywhere.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] unless `stored` is what [`Pepper::stored_form`] makes, for the same key twice, and for a
    /// principal that expires: no clock is read here.
    pub fn and(mut self, stored: &str, principal: Principal) -> Result<Self, InvalidOption> {
        let digest =
            parse(stored).ok_or(InvalidOption::new(PROVIDER, "stored key", "is no hmac-sha256$ and 64 digits"))?;
        if principal.expires_at().is_some() {
            return Err(InvalidOption::new(PROVIDER, "principal", "must not expire"));
        }
        if self.0.insert(digest, principal).is_some() {
            return Err(InvalidOption::new(PROVIDER, "stored key", "was given before"));
        }
        Ok(self)
    }
}

impl fmt::Debug for ApiKeyTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ApiKeyTable").field("keys", &self.0.len()).finish_non_exhaustive()
    }
}

/// Lets in who presents a known key, in the header `x-api-key` or as `Authorization: ApiKey <key>`.
///
/// Cheap to clone; clones share the table, so one of them stays behind to [replace](Self::replace) it.
///
/// ```
/// use mcp_auth::{ApiKeyTable, ApiKeys, Pepper};
/// use mcp_core::Principal;
///
/// let pepper = Pepper::new(&[7; 32])?;
/// // Done once for each key; this is what a store keeps.
/// let stored = pepper.stored_form("kJ3vQ0rUuY7nM2xW")?;
/// let table = ApiKeyTable::new().and(&stored, Principal::new("api key", "", "build-server"))?;
/// let provider = ApiKeys::new(pepper, table);
/// # Ok::<(), mcp_auth::InvalidOption>(())
/// ```
#[derive(Debug, Clone)]
pub struct ApiKeys {
    peppers: Arc<Vec<Pepper>>,
    table: Arc<RwLock<Arc<ApiKeyTable>>>,
    header: [HeaderName; 2],
    challenge: BearerChallenge,
}

impl ApiKeys {
    /// Lets in whom `table` knows, whose keys are stored under `pepper`. Challenges name the realm `mcp`.
    #[must_use]
    pub fn new(pepper: Pepper, table: ApiKeyTable) -> Self {
        Self {
            peppers: Arc::new(vec![pepper]),
            table: Arc::new(RwLock::new(Arc::new(table))),
            header: [HeaderName::from_static("x-api-key"), AUTHORIZATION],
            challenge: BearerChallenge::default(),
        }
    }

    /// Also accepts keys that are stored under other peppers, such as the last one. A check costs an HMAC for each.
    #[must_use]
    pub fn with_other_peppers(mut self, peppers: impl IntoIterator<Item = Pepper>) -> Self {
        if let Some(known) = Arc::get_mut(&mut self.peppers) {
            known.extend(peppers);
        }
        self
    }

    /// Replaces the header that keys come in. Default: `x-api-key`.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName) -> Self {
        self.header[0] = name;
        self
    }

    /// Replaces the realm that challenges name.
    ///
    /// # Errors
    ///
    /// As for [`BearerChallenge::new`].
    pub fn with_realm(mut self, realm: &str) -> Result<Self, InvalidChallenge> {
        self.challenge = BearerChallenge::new(realm)?;
        Ok(self)
    }

    /// Replaces the whole table, in all clones: a key that is not in the new one is refused from the next request on.
    pub fn replace(&self, table: ApiKeyTable) {
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
    }

    fn check(&self, headers: &HeaderMap) -> Result<Principal, AuthError> {
        let key = api_key(headers, &self.header[0])?;
        let table = Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner));
        // A map tells by its timing how much of a digest is right. Nobody without the pepper can make use of that.
        let mut found = None;
        for pepper in &*self.peppers {
            found = table.0.get(&pepper.digest(key)).or(found);
        }
        found.cloned().ok_or(AuthError::NotRecognised)
    }
}

#[async_trait]
impl AuthProvider for ApiKeys {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        self.check(request.headers())
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        self.challenge.answer_in("ApiKey", &format!(r#", header="{}""#, self.header[0]), error)
    }

    fn immediate(&self, request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
        Some(self.check(request.headers()))
    }

    fn headers(&self) -> &[HeaderName] {
        &self.header
    }
}

fn parse(stored: &str) -> Option<[u8; 32]> {
    let digits = stored.strip_prefix(FORM)?.as_bytes();
    if digits.len() != 64 || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::{HeaderValue, Method, Uri};
    use proptest::prelude::*;

    use super::*;

    const ANN: &str = "key-of-ann-000001";
    const BEN: &str = "key-of-ben-000001";

    fn pepper(byte: u8) -> Pepper {
        Pepper::new(&[byte; 32]).unwrap()
    }

    fn table(entries: &[(u8, &str, &str)]) -> ApiKeyTable {
        entries.iter().fold(ApiKeyTable::new(), |table, (byte, key, subject)| {
            let stored = pepper(*byte).stored_form(key).unwrap();
            table.and(&stored, Principal::new("api key", "", subject)).unwrap()
        })
    }

    fn ask(provider: &ApiKeys, name: &'static str, value: &str) -> Result<String, AuthError> {
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())]);
        let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
        let answer = provider.immediate(&AuthRequest::new(&method, &uri, &headers)).unwrap();
        answer.map(|principal| principal.subject().to_owned())
    }

    #[test]
    fn a_key_lets_in_its_principal_by_either_header() {
        let provider = ApiKeys::new(pepper(1), table(&[(1, ANN, "ann"), (1, BEN, "ben")]));
        assert_eq!(ask(&provider, "x-api-key", ANN).unwrap(), "ann");
        assert_eq!(ask(&provider, "authorization", &format!("ApiKey {BEN}")).unwrap(), "ben");
        assert_eq!(ask(&provider, "x-api-key", "key-of-eve-000001"), Err(AuthError::NotRecognised));
        assert_eq!(ask(&provider, "x-api-key", ""), Err(AuthError::Malformed));
        assert_eq!(ask(&provider, "authorization", "Bearer t"), Err(AuthError::Missing));
        let renamed = provider.with_header(HeaderName::from_static("x-key"));
        assert_eq!(ask(&renamed, "x-key", ANN).unwrap(), "ann");
        assert_eq!(ask(&renamed, "x-api-key", ANN), Err(AuthError::Missing));
        assert_eq!(renamed.headers(), [HeaderName::from_static("x-key"), AUTHORIZATION]);
    }

    #[test]
    fn what_is_stored_is_no_key() {
        let stored = pepper(1).stored_form(ANN).unwrap();
        let provider = ApiKeys::new(pepper(1), table(&[(1, ANN, "ann")]));
        assert_eq!(ask(&provider, "x-api-key", &stored), Err(AuthError::NotRecognised));
        assert_ne!(stored, pepper(2).stored_form(ANN).unwrap(), "another pepper makes another form");
        // HMAC-SHA256 of the key under 32 bytes of 0x01: stores are kept, so the form must not change.
        assert_eq!(stored, "hmac-sha256$e8c0d2cbeddc11bbe754b8f8893a3c64f012bd0c2d80f7bb943caa015d251bdf");
    }

    #[test]
    fn keys_and_peppers_rotate_without_locking_anybody_out() {
        let keeper = ApiKeys::new(pepper(2), table(&[(1, ANN, "ann")])).with_other_peppers([pepper(1)]);
        let served = keeper.clone();
        assert_eq!(ask(&served, "x-api-key", ANN).unwrap(), "ann");
        let successor = "key-of-ann-000002";
        keeper.replace(table(&[(1, ANN, "ann"), (2, successor, "ann")]));
        assert_eq!(ask(&served, "x-api-key", ANN).unwrap(), "ann");
        assert_eq!(ask(&served, "x-api-key", successor).unwrap(), "ann");
        keeper.replace(table(&[(2, successor, "ann")]));
        assert_eq!(ask(&served, "x-api-key", ANN), Err(AuthError::NotRecognised));
        assert_eq!(ask(&served, "x-api-key", successor).unwrap(), "ann");
    }

    #[test]
    fn unfit_options_are_refused_at_start() {
        assert_eq!(Pepper::new(&[0; 31]).unwrap_err().to_string(), "api key: pepper must have at least 32 bytes");
        for key in ["", "fifteen-letters", "sixteen letters!", "sixteen-lettersä", &"k".repeat(513)] {
            assert_eq!(pepper(1).stored_form(key).unwrap_err().option(), "key", "{key}");
        }
        let named = || Principal::new("api key", "", "ann");
        let stored = pepper(1).stored_form(ANN).unwrap();
        for wrong in
            ["", ANN, "hmac-sha256$", &stored.to_uppercase(), &stored[..75], &format!("{stored}0"), &stored[12..]]
        {
            assert_eq!(ApiKeyTable::new().and(wrong, named()).unwrap_err().option(), "stored key", "{wrong}");
        }
        let twice = ApiKeyTable::new().and(&stored, named()).and_then(|table| table.and(&stored, named()));
        assert_eq!(twice.unwrap_err().reason(), "was given before");
        let expiring = named().with_expiry(SystemTime::UNIX_EPOCH);
        assert_eq!(ApiKeyTable::new().and(&stored, expiring).unwrap_err().option(), "principal");
    }

    #[test]
    fn debug_output_holds_no_key_no_digest_and_no_pepper() {
        let stored = pepper(1).stored_form(ANN).unwrap();
        let printed = format!("{:?}", ApiKeys::new(pepper(1), table(&[(1, ANN, "ann")])));
        assert!(printed.contains("Pepper") && !printed.contains("1, 1"), "{printed}");
        assert!(!printed.contains(ANN) && !printed.contains(&stored[12..30]), "{printed}");
    }

    #[test]
    fn a_challenge_names_the_scheme_the_realm_and_the_header() {
        let provider = ApiKeys::new(pepper(1), ApiKeyTable::new()).with_realm("docs").unwrap();
        let challenge = provider.challenge(&AuthError::NotRecognised);
        assert_eq!(challenge.www_authenticate.unwrap(), r#"ApiKey realm="docs", header="x-api-key""#);
    }

    proptest! {
        #[test]
        fn only_what_was_stored_is_parsed(text in "(hmac-sha256\\$)?[0-9a-gA-F]{0,66}", key in "[!-~]{16,40}") {
            if let Some(digest) = parse(&text) {
                let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                prop_assert_eq!(text, format!("{FORM}{digits}"));
            }
            let stored = pepper(1).stored_form(&key).unwrap();
            prop_assert_eq!(parse(&stored), Some(pepper(1).digest(key.as_bytes())));
        }
    }
}
