//! Providers for measurements of what they cost, each with one caller.
//!
//! Why here: `cargo xtask bench --auth` starts the server with each of them and shows the credentials of that caller, which
//! stand in `xtask/src/bench/auth.rs`.

use mcp_auth::{ApiKeyTable, ApiKeys, Basic, BasicUsers, Bearer, IssuerKeys, JwtVerifier, Pepper, StaticBearer};
use mcp_core::Principal;
use mcp_http::server::HttpConfig;

use crate::Outcome;

/// A public key; nobody has the other half any more.
const KEYS: &str = r#"{"keys":[{"kty":"EC","kid":"bench","crv":"P-256","alg":"ES256",
    "x":"gbNFE7b48-kPKPezcbyHmruXI287wvoEBjrHrbQeO9Y",
    "y":"OnV75ZGNrmoXu-9rQH8w4ZVc9JqjDCXtnR_goyVhnDY"}]}"#;

/// An endpoint with the provider of this name.
pub(crate) fn config(name: &str) -> Outcome<HttpConfig> {
    let caller = || Principal::new(name, "", "bench");
    Ok(match name {
        "bearer" => HttpConfig::new(StaticBearer::new("2f0a9c51d3e84b7f", caller())?),
        "api-key" => {
            let pepper = Pepper::new(&[7; 32])?;
            let stored = pepper.stored_form("kJ3vQ0rUuY7nM2xW")?;
            HttpConfig::new(ApiKeys::new(pepper, ApiKeyTable::new().and(&stored, caller())?))
        }
        "basic" => {
            let hash = BasicUsers::hash("secret")?;
            HttpConfig::new(Basic::new(BasicUsers::new().and("bench", &hash, caller())?)?)
        }
        "jwt" => {
            let verifier = JwtVerifier::new(["https://bench.example/mcp"])?;
            HttpConfig::new(Bearer::new(verifier.and_issuer("https://login.example", IssuerKeys::fixed(KEYS)?)?))
        }
        _ => return Err(format!("AUTH names no provider: {name}").into()),
    })
}
