//! Providers for measurements of what they cost, each with one caller.
//!
//! Why here: `cargo xtask bench --auth` starts the server with each of them and shows the credentials of that caller, which
//! stand in `xtask/src/bench/auth.rs`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use mcp_auth::{
    ApiKeyTable, ApiKeys, Basic, BasicUsers, Bearer, Fetch, FetchError, FetchRequest, FetchResponse, Introspection,
    IssuerKeys, Jwks, JwtVerifier, Pepper, StaticBearer,
};
use mcp_core::Principal;
use mcp_http::server::HttpConfig;

use crate::Outcome;

/// A public key; nobody has the other half any more.
const KEYS: &str = r#"{"keys":[{"kty":"EC","kid":"bench","crv":"P-256","alg":"ES256",
    "x":"gbNFE7b48-kPKPezcbyHmruXI287wvoEBjrHrbQeO9Y",
    "y":"OnV75ZGNrmoXu-9rQH8w4ZVc9JqjDCXtnR_goyVhnDY"}]}"#;

/// What an authorization server says of the caller's token.
const ACTIVE: &str = r#"{"active":true,"iss":"https://login.example","aud":"https://bench.example/mcp","sub":"bench",
    "exp":4102444800,"scope":"read write","client_id":"bench","token_type":"Bearer"}"#;

const ISSUER: &str = "https://login.example";
const AUDIENCE: &str = "https://bench.example/mcp";

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
        "jwt" => of_issuer(IssuerKeys::fixed(KEYS)?)?,
        "jwks" => of_issuer(IssuerKeys::fetched(Jwks::new("https://login.example/jwks", Arc::new(Said(KEYS)))?))?,
        "introspection" => introspecting(Duration::ZERO)?,
        "remembered" => introspecting(Duration::from_secs(60))?,
        _ => return Err(format!("AUTH names no provider: {name}").into()),
    })
}

fn of_issuer(keys: IssuerKeys) -> Outcome<HttpConfig> {
    Ok(HttpConfig::new(Bearer::new(JwtVerifier::new([AUDIENCE])?.and_issuer(ISSUER, keys)?)))
}

/// Asks a function about each token, so that no network is in the figures.
fn introspecting(remembered: Duration) -> Outcome<HttpConfig> {
    let endpoint = "https://login.example/introspect";
    let introspection = Introspection::new(ISSUER, endpoint, [AUDIENCE], Arc::new(Said(ACTIVE)))?;
    Ok(HttpConfig::new(Bearer::new(introspection.with_client("bench", "secret")?.with_cache(remembered)?)))
}

/// Always answers the same.
struct Said(&'static str);

#[async_trait]
impl Fetch for Said {
    async fn fetch(&self, _request: FetchRequest) -> Result<FetchResponse, FetchError> {
        Ok(FetchResponse::new(StatusCode::OK, self.0.as_bytes().to_vec()))
    }
}
