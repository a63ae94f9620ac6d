//! Claims made of words that mean something and of whatever else comes, and what they have to come to.
//!
//! Why here: JWTs and answers of introspection are held to the same rules, so their targets have one oracle.
//! Invariants: the oracle looks at the texts of values and shares no code with what it judges.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use arbitrary::Arbitrary;
use mcp_auth::AuthError;
use mcp_core::Principal;
use serde_json::{Map, Value, json};

/// What the clock of the targets says, in seconds since the epoch.
pub const NOW: u64 = 1_800_000_000;

/// Who makes the tokens that hold.
pub const ISSUER: &str = "https://login.example";

/// Whom those are for.
pub const AUDIENCE: &str = "https://tools.example/mcp";

/// A set with the public half of a key; nobody has the other half any more.
pub const PUBLIC_KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256",
    "x":"gbNFE7b48-kPKPezcbyHmruXI287wvoEBjrHrbQeO9Y","y":"OnV75ZGNrmoXu-9rQH8w4ZVc9JqjDCXtnR_goyVhnDY"}]}"#;

/// By how much clocks may differ.
const SKEW: u64 = 60;

/// The clock of the targets.
#[must_use]
pub fn clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW)
}

/// Changes to an object that is in order.
#[derive(Arbitrary, Debug, Default)]
pub struct Changes(Vec<(u8, Change)>);

#[derive(Arbitrary, Debug)]
enum Change {
    Removed,
    Known(u8),
    Odd(Odd),
}

/// Whatever JSON there is, but for objects of any size.
#[derive(Arbitrary, Debug)]
pub enum Odd {
    /// No value.
    Null,
    /// A truth.
    Flag(bool),
    /// A number from 0.
    Whole(u64),
    /// A number that is not far from now.
    Near(i16),
    /// Any number.
    Number(f64),
    /// Any text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// Any of these.
    List(Vec<Odd>),
    /// An object.
    Object,
}

impl Odd {
    /// The value itself.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Flag(flag) => json!(flag),
            Self::Whole(number) => json!(number),
            Self::Near(distance) => json!(NOW.saturating_add_signed((*distance).into())),
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
            Self::Texts(texts) => json!(texts),
            Self::List(list) => list.iter().map(Self::value).collect(),
            Self::Object => json!({ "jkt": "x" }),
        }
    }
}

impl Changes {
    /// Changes members of these names to these values, or to odd ones.
    pub fn apply(&self, object: &mut Map<String, Value>, names: &[&str], values: &[Value]) {
        for (name, change) in &self.0 {
            let name = names[usize::from(*name) % names.len()];
            let value = match change {
                Change::Removed => {
                    object.remove(name);
                    continue;
                }
                Change::Known(which) => values[usize::from(*which) % values.len()].clone(),
                Change::Odd(odd) => odd.value(),
            };
            object.insert(name.to_owned(), value);
        }
    }
}

/// Claims that hold, but for these changes.
#[must_use]
pub fn claims(changes: &Changes) -> Map<String, Value> {
    let good = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 60, "scope": "read write" });
    let Value::Object(mut claims) = good else { unreachable!("an object was written") };
    let names = ["iss", "aud", "sub", "exp", "nbf", "scope", "cnf", "active", "token_type", "client_id"];
    let values = [
        json!(ISSUER),
        json!(AUDIENCE),
        json!("https://other.example"),
        json!(["https://other.example", AUDIENCE]),
        json!([AUDIENCE, 1]),
        json!("ben"),
        json!(NOW - SKEW),
        json!(NOW - SKEW + 1),
        json!(NOW + SKEW),
        json!(NOW + SKEW + 1),
        json!(u64::MAX),
        json!(" read\twrite  read "),
        json!("Bearer"),
        json!("access_token"),
        json!(true),
        json!(false),
    ];
    claims.insert("active".to_owned(), json!(true));
    changes.apply(&mut claims, &names, &values);
    claims
}

/// What claims have to come to; `exp` may be missing only if `endless` is set.
///
/// # Errors
/// That the token has expired, or that it does not hold for another reason.
pub fn judged(claims: &Map<String, Value>, endless: bool) -> Result<(), AuthError> {
    let seconds = |name: &str| -> Result<Option<u128>, AuthError> {
        let Some(value) = claims.get(name) else { return Ok(None) };
        let text = value.to_string();
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
        Ok(Some(text.parse().ok().filter(|_| is_whole).ok_or(AuthError::InvalidToken)?))
    };
    let (now, skew) = (u128::from(NOW), u128::from(SKEW));
    match seconds("exp")? {
        Some(expires) if now >= expires + skew => return Err(AuthError::Expired),
        // No clock goes as far as that.
        Some(expires) if expires > u64::MAX as u128 / 2 - skew => return Err(AuthError::InvalidToken),
        None if !endless => return Err(AuthError::InvalidToken),
        _ => {}
    }
    let is_early = seconds("nbf")?.is_some_and(|begins| begins > now + skew);
    let is_ours = |value: &Value| value.to_string() == format!("{AUDIENCE:?}");
    let is_for_us = match &claims.get("aud") {
        Some(Value::Array(list)) => list.iter().all(|one| one.to_string().starts_with('"')) && list.iter().any(is_ours),
        Some(one) => is_ours(one),
        None => false,
    };
    let has_subject = claims.get("sub").is_some_and(|subject| subject.is_string() && subject != "");
    if is_early || !is_for_us || !has_subject || claims.contains_key("cnf") {
        return Err(AuthError::InvalidToken);
    }
    Ok(())
}

/// Holds whom claims led to against them.
///
/// # Panics
/// When they name somebody else, or grant other scopes.
pub fn check(principal: &Principal, provider: &str, claims: &Map<String, Value>) {
    assert_eq!((principal.provider(), principal.issuer()), (provider, ISSUER));
    assert_eq!(Some(principal.subject()), claims.get("sub").and_then(Value::as_str));
    assert_eq!(principal.claims(), Some(claims));
    let expires = claims.get("exp").and_then(Value::as_u64).map(|expires| Duration::from_secs(expires + SKEW));
    assert_eq!(principal.expires_at(), expires.map(|expires| SystemTime::UNIX_EPOCH + expires));
    let granted: BTreeSet<&str> = principal.scopes().collect();
    let named: BTreeSet<&str> = match claims.get("scope") {
        Some(Value::String(text)) => {
            text.split([' ', '\t', '\n', '\x0c', '\r']).filter(|scope| !scope.is_empty()).collect()
        }
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => BTreeSet::new(),
    };
    assert_eq!(granted, named);
}
