//! Every provider before every kind of credential: who is let in, and what the others are told.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method, Uri};
use mcp_auth::{
    Anonymous, ApiKeyTable, ApiKeys, AuthError, AuthProvider, AuthRequest, Basic, BasicUsers, Bearer, BearerChallenge,
    Chain, Introspection, IssuerKeys, Jwks, JwtAlgorithm, JwtVerifier, Pepper, ProtectedResource, StaticBearer,
};
use mcp_core::Principal;
use serde_json::{Value, json};

use crate::support::{
    AUDIENCE, Endpoint, ISSUER, Log, NOW, Reply, Signer, ask, claims, clock, encode, headers, key_set,
};

const NONE: &str = "Bearer realm=\"mcp\", scope=\"read\", \
    resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\"";
const INVALID: &str = "Bearer realm=\"mcp\", error=\"invalid_token\", \
    error_description=\"the credentials are not valid\", scope=\"read\", \
    resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\"";
const MALFORMED: &str = "Bearer realm=\"mcp\", error=\"invalid_request\", \
    error_description=\"the credentials are malformed or repeated\", \
    resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\"";
const API_KEY: &str = "ApiKey realm=\"mcp\", header=\"x-api-key\"";
const BASIC: &str = "Basic realm=\"mcp\", charset=\"UTF-8\"";

use AuthError::{Expired, InvalidCredentials, InvalidToken, Malformed, Missing, NotRecognised, Unavailable};

fn challenge() -> BearerChallenge {
    let resource = ProtectedResource::new(AUDIENCE, [ISSUER]).and_then(|resource| resource.with_scopes(["read"]));
    BearerChallenge::for_resource(&resource.unwrap()).unwrap()
}

/// One row: what is sent, and whom it lets in or why not.
type Row = (&'static str, HeaderMap, Result<&'static str, AuthError>);

/// Holds the provider to the rows, in both of its halves, and its refusals to their words.
async fn hold(name: &str, provider: &dyn AuthProvider, rows: Vec<Row>, says: fn(&AuthError) -> Option<&'static str>) {
    for (case, headers, expected) in rows {
        let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
        let waited = provider.authenticate(AuthRequest::new(&method, &uri, &headers)).await;
        let outcome = ask(provider, &headers).await;
        assert_eq!(outcome, waited, "{name}, {case}: both halves agree");
        let subject = outcome.as_ref().map(Principal::subject).map_err(Clone::clone);
        assert_eq!(subject, expected, "{name}, {case}");
        if let Err(error) = outcome {
            let challenge = provider.challenge(&error);
            assert_eq!(challenge.status, error.status(), "{name}, {case}");
            let header = challenge.www_authenticate.as_ref().map(|header| header.to_str().unwrap());
            assert_eq!(header, says(&error), "{name}, {case}");
        }
    }
}

fn bearer_words(error: &AuthError) -> Option<&'static str> {
    match error {
        Missing => Some(NONE),
        Malformed => Some(MALFORMED),
        Unavailable => None,
        _ => Some(INVALID),
    }
}

fn token(token: &str) -> HeaderMap {
    headers(&[("authorization", &format!("Bearer {token}"))])
}

/// What every provider of bearer tokens says to what is no token.
fn shapeless() -> Vec<Row> {
    vec![
        ("none", HeaderMap::new(), Err(Missing)),
        ("another scheme", headers(&[("authorization", "Basic YTpi")]), Err(Missing)),
        ("the scheme alone", headers(&[("authorization", "Bearer")]), Err(Malformed)),
        ("malformed", headers(&[("authorization", "Bearer a b")]), Err(Malformed)),
        ("twice", headers(&[("authorization", "Bearer a"), ("authorization", "Bearer a")]), Err(Malformed)),
        ("in the body's place", headers(&[("access_token", "a")]), Err(Missing)),
    ]
}

/// Tokens before a verifier that knows `signer` as `k1`. `stranger` is the reason for a key that is not in the set.
fn jwts(signer: &Signer) -> Vec<Row> {
    let other = match signer {
        Signer::Ed(_) => Signer::ed(),
        Signer::Ec(_) => Signer::ec(),
        Signer::Rsa(_) => Signer::rsa(),
        Signer::Secret(_) => Signer::Secret(vec![9; 32]),
    };
    let changed = |changes: Value| token(&signer.token("k1", &changes));
    let headed = |header: Value| token(&signer.sign(&header, &claims(&json!({}))));
    let algorithm = signer.algorithm();
    let good = signer.token("k1", &json!({}));
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = signed.split_once('.').unwrap();
    let plain = |algorithm: &str| {
        let header = json!({ "alg": algorithm, "kid": "k1", "typ": "at+jwt" });
        token(&format!("{}.{}.", encode(header.to_string()), encode(claims(&json!({})).to_string())))
    };
    // The confusion of algorithms: what everybody may know, used as a secret.
    let public = Signer::Secret(signer.jwk("k1").to_string().into_bytes());
    let confused: HeaderMap = match signer {
        Signer::Secret(_) => token(&Signer::ed().token("k1", &json!({}))),
        _ => token(&public.token("k1", &json!({}))),
    };
    let forged = format!("{header}.{}.{signature}", encode(claims(&json!({ "sub": "root" })).to_string()));
    let own_key = other.sign(
        &json!({ "alg": algorithm, "jwk": other.jwk("k1"), "jku": "https://evil.example", "typ": "at+jwt" }),
        &claims(&json!({})),
    );
    let mut rows = shapeless();
    rows.extend([
        ("right", token(&good), Ok("ann")),
        ("right, for several", changed(json!({ "aud": ["https://other.example", AUDIENCE] })), Ok("ann")),
        ("right, without a key's name", headed(json!({ "alg": algorithm })), Ok("ann")),
        ("opaque", token("2f0a9c51d3e84b7f"), Err(NotRecognised)),
        ("unknown, three parts", token("a.b.c"), Err(NotRecognised)),
        ("expired", changed(json!({ "exp": NOW - 61 })), Err(Expired)),
        ("expired within the skew", changed(json!({ "exp": NOW - 59 })), Ok("ann")),
        ("without an end", changed(json!({ "exp": null })), Err(InvalidToken)),
        ("its end as a text", changed(json!({ "exp": "1900000000" })), Err(InvalidToken)),
        ("not valid yet", changed(json!({ "nbf": NOW + 61 })), Err(InvalidToken)),
        ("wrong audience", changed(json!({ "aud": "https://other.example/mcp" })), Err(InvalidToken)),
        ("audience of the origin", changed(json!({ "aud": "https://tools.example" })), Err(InvalidToken)),
        ("no audience", changed(json!({ "aud": null })), Err(InvalidToken)),
        ("wrong issuer", changed(json!({ "iss": "https://login.example/" })), Err(NotRecognised)),
        ("no issuer", changed(json!({ "iss": null })), Err(NotRecognised)),
        ("no subject", changed(json!({ "sub": null })), Err(InvalidToken)),
        ("bound to a key", changed(json!({ "cnf": { "jkt": "x" } })), Err(InvalidToken)),
        ("wrong algorithm", confused, Err(InvalidToken)),
        ("alg: none", plain("none"), Err(InvalidToken)),
        ("alg: None", plain("None"), Err(InvalidToken)),
        ("no signature", plain(algorithm), Err(InvalidToken)),
        ("signed by another", token(&other.token("k1", &json!({}))), Err(InvalidToken)),
        ("brings its own key", token(&own_key), Err(InvalidToken)),
        ("changed after it was signed", token(&forged), Err(InvalidToken)),
        ("of another use", headed(json!({ "alg": algorithm, "typ": "logout+jwt" })), Err(InvalidToken)),
        ("with an extension", headed(json!({ "alg": algorithm, "crit": ["b64"], "b64": false })), Err(InvalidToken)),
    ]);
    rows
}

fn verifier(keys: IssuerKeys) -> Bearer {
    let verifier = JwtVerifier::new([AUDIENCE]).and_then(|verifier| verifier.and_issuer(ISSUER, keys)).unwrap();
    Bearer::new(verifier.with_clock(clock())).with_challenge(challenge())
}

#[tokio::test(start_paused = true)]
async fn jwts_with_fixed_keys() {
    for signer in [Signer::ed(), Signer::ec(), Signer::rsa()] {
        let set = json!({ "keys": [signer.jwk("k1")] }).to_string();
        let mut rows = jwts(&signer);
        rows.push(("key not in the set", token(&signer.token("k2", &json!({}))), Err(InvalidToken)));
        hold(signer.algorithm(), &verifier(IssuerKeys::fixed(&set).unwrap()), rows, bearer_words).await;
    }
}

#[tokio::test(start_paused = true)]
async fn jwts_with_a_shared_secret() {
    let signer = Signer::Secret(vec![7; 32]);
    let rows = jwts(&signer);
    hold("shared secret", &verifier(IssuerKeys::shared_secret(&[7; 32]).unwrap()), rows, bearer_words).await;
}

#[tokio::test(start_paused = true)]
async fn jwts_with_a_set_at_an_address() {
    let signer = Signer::ec();
    let endpoint = Endpoint::new(Reply::Body(200, key_set(&[signer.jwk("k1")])));
    let set = Jwks::new("https://login.example/jwks", endpoint).unwrap();
    let mut rows = jwts(&signer);
    rows.push(("key not in the set", token(&signer.token("k2", &json!({}))), Err(InvalidToken)));
    hold("jwks", &verifier(IssuerKeys::fetched(set)), rows, bearer_words).await;
}

#[tokio::test(start_paused = true)]
async fn an_algorithm_that_is_not_on_the_list_is_refused_although_the_key_fits() {
    let signer = Signer::rsa();
    let keys = IssuerKeys::fixed(&json!({ "keys": [signer.jwk("k1")] }).to_string()).unwrap();
    let provider = verifier(keys.with_algorithms([JwtAlgorithm::Ps256, JwtAlgorithm::Es256]).unwrap());
    let rows = vec![("RS256", token(&signer.token("k1", &json!({}))), Err(InvalidToken))];
    hold("list", &provider, rows, bearer_words).await;
}

#[tokio::test(start_paused = true)]
async fn each_issuer_vouches_with_its_own_keys_only_and_equal_subjects_stay_apart() {
    let (first, second) = (Signer::ed(), Signer::ed());
    let keys = |signer: &Signer| IssuerKeys::fixed(&json!({ "keys": [signer.jwk("k1")] }).to_string()).unwrap();
    let verifier = JwtVerifier::new([AUDIENCE])
        .and_then(|verifier| verifier.and_issuer("https://one.example", keys(&first)))
        .and_then(|verifier| verifier.and_issuer("https://two.example", keys(&second)))
        .unwrap();
    let provider = Bearer::new(verifier.with_clock(clock()));
    let of = |signer: &Signer, issuer: &str, end: u64| {
        token(&signer.token("k1", &json!({ "iss": issuer, "exp": NOW + end, "scope": end.to_string() })))
    };
    let one = ask(&provider, &of(&first, "https://one.example", 300)).await.unwrap();
    let again = ask(&provider, &of(&first, "https://one.example", 600)).await.unwrap();
    let two = ask(&provider, &of(&second, "https://two.example", 300)).await.unwrap();
    assert_eq!(one, again, "a refreshed token is the same owner");
    assert!(again.has_scope("600") && !one.has_scope("600"));
    assert_ne!(one, two, "ann of one issuer is not ann of another");
    assert_eq!(ask(&provider, &of(&first, "https://two.example", 300)).await, Err(InvalidToken));
}

#[tokio::test(start_paused = true)]
async fn introspected_tokens() {
    let says = json!({
        "right": { "active": true, "sub": "ann", "aud": AUDIENCE, "iss": ISSUER, "exp": NOW + 60, "token_type": "Bearer" },
        "endless": { "active": true, "sub": "ann", "aud": [AUDIENCE] },
        "inactive": { "active": false },
        "expired": { "active": true, "sub": "ann", "aud": AUDIENCE, "exp": NOW - 61 },
        "early": { "active": true, "sub": "ann", "aud": AUDIENCE, "nbf": NOW + 61 },
        "audience": { "active": true, "sub": "ann", "aud": "https://other.example/mcp" },
        "no-audience": { "active": true, "sub": "ann" },
        "issuer": { "active": true, "sub": "ann", "aud": AUDIENCE, "iss": "https://other.example" },
        "no-subject": { "active": true, "aud": AUDIENCE },
        "dpop": { "active": true, "sub": "ann", "aud": AUDIENCE, "token_type": "DPoP" },
        "bound": { "active": true, "sub": "ann", "aud": AUDIENCE, "cnf": { "jkt": "x" } },
        "yes-as-text": { "active": "true", "sub": "ann", "aud": AUDIENCE },
        "error": { "error": "invalid_client" },
    });
    let endpoint = Endpoint::new(Reply::Down);
    endpoint.follows(move |request| {
        let form = request.form().unwrap();
        let token = form.strip_prefix("token=").unwrap().split('&').next().unwrap().replace("%2D", "-");
        says.get(&token).map_or(Reply::Down, |answer| Reply::Body(200, answer.to_string().into_bytes()))
    });
    let introspection = Introspection::new(ISSUER, "https://login.example/introspect", [AUDIENCE], endpoint).unwrap();
    let provider = Bearer::new(introspection.with_clock(clock())).with_challenge(challenge());
    let mut rows = shapeless();
    rows.extend([
        ("right", token("right"), Ok("ann")),
        ("right, without an end", token("endless"), Ok("ann")),
        ("unknown or revoked", token("inactive"), Err(InvalidToken)),
        ("expired", token("expired"), Err(Expired)),
        ("not valid yet", token("early"), Err(InvalidToken)),
        ("wrong audience", token("audience"), Err(InvalidToken)),
        ("no audience", token("no-audience"), Err(InvalidToken)),
        ("wrong issuer", token("issuer"), Err(InvalidToken)),
        ("no subject", token("no-subject"), Err(InvalidToken)),
        ("of another type", token("dpop"), Err(InvalidToken)),
        ("bound to a key", token("bound"), Err(InvalidToken)),
        ("an answer that is none", token("yes-as-text"), Err(Unavailable)),
        ("an error for an answer", token("error"), Err(Unavailable)),
        ("nobody to ask", token("down"), Err(Unavailable)),
    ]);
    hold("introspection", &provider, rows, bearer_words).await;
}

#[tokio::test]
async fn fixed_tokens() {
    let provider = StaticBearer::new("2f0a9c51d3e84b7f", Principal::new("static", "", "ann")).unwrap();
    let mut rows = shapeless();
    rows.extend([
        ("right", token("2f0a9c51d3e84b7f"), Ok("ann")),
        ("unknown", token("b81c5e6f90a2d347"), Err(NotRecognised)),
    ]);
    hold("static", &provider.with_challenge(challenge()), rows, bearer_words).await;
}

#[tokio::test]
async fn api_keys() {
    let pepper = Pepper::new(&[7; 32]).unwrap();
    let stored = pepper.stored_form("kJ3vQ0rUuY7nM2xW").unwrap();
    let table = ApiKeyTable::new().and(&stored, Principal::new("api key", "", "ann")).unwrap();
    let provider = ApiKeys::new(pepper, table);
    let rows = || {
        vec![
            ("none", HeaderMap::new(), Err(Missing)),
            ("another scheme", token("kJ3vQ0rUuY7nM2xW"), Err(Missing)),
            ("malformed", headers(&[("x-api-key", "a b")]), Err(Malformed)),
            ("twice", headers(&[("x-api-key", "a"), ("authorization", "ApiKey a")]), Err(Malformed)),
            ("unknown", headers(&[("x-api-key", "kJ3vQ0rUuY7nM2xw")]), Err(NotRecognised)),
            ("what is stored", headers(&[("x-api-key", &stored)]), Err(NotRecognised)),
        ]
    };
    let good = || headers(&[("x-api-key", "kJ3vQ0rUuY7nM2xW")]);
    let mut right = rows();
    right.push(("right", good(), Ok("ann")));
    right.push(("right, by scheme", headers(&[("authorization", "ApiKey kJ3vQ0rUuY7nM2xW")]), Ok("ann")));
    hold("api key", &provider, right, |_| Some(API_KEY)).await;
    provider.clone().replace(ApiKeyTable::new());
    let mut revoked = rows();
    revoked.push(("revoked", good(), Err(NotRecognised)));
    hold("api key", &provider, revoked, |_| Some(API_KEY)).await;
}

#[tokio::test]
async fn names_and_passwords() {
    let provider = Basic::new(users("secret")).unwrap();
    let login = |text: &str| headers(&[("authorization", &format!("Basic {}", STANDARD.encode(text)))]);
    let rows = vec![
        ("none", HeaderMap::new(), Err(Missing)),
        ("another scheme", token("YW5uOnNlY3JldA=="), Err(Missing)),
        ("malformed", headers(&[("authorization", "Basic !")]), Err(Malformed)),
        ("no colon", login("ann"), Err(Malformed)),
        ("right", login("ann:secret"), Ok("ann")),
        ("unknown name", login("eve:secret"), Err(InvalidCredentials)),
        ("wrong password", login("ann:Secret"), Err(InvalidCredentials)),
    ];
    hold("basic", &provider, rows, |_| Some(BASIC)).await;
    provider.clone().replace(users("changed")).unwrap();
    let rows =
        vec![("revoked", login("ann:secret"), Err(InvalidCredentials)), ("right", login("ann:changed"), Ok("ann"))];
    hold("basic", &provider, rows, |_| Some(BASIC)).await;
}

/// Ann with a password, whose hash is the cheapest that is accepted.
fn users(password: &str) -> BasicUsers {
    let hash = match password {
        "secret" => "$argon2id$v=19$m=7168,t=1,p=1$c2FsdC1vZi1zZWNyZXQtMA$oGTw5h8GmA6cvFqsdc7h2nct507HwuxbplhRwptZ8g0",
        _ => "$argon2id$v=19$m=7168,t=1,p=1$c2FsdC1vZi1jaGFuZ2VkLTA$Gt4GErrpsXzP66Jgwpifkrp2jRcQmThX4HAPb2Leyos",
    };
    BasicUsers::new().and("ann", hash, Principal::new("basic", "", "ann")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn providers_behind_one_another() {
    let signer = Signer::ed();
    let keys = IssuerKeys::fixed(&json!({ "keys": [signer.jwk("k1")] }).to_string()).unwrap();
    let pepper = Pepper::new(&[7; 32]).unwrap();
    let stored = pepper.stored_form("kJ3vQ0rUuY7nM2xW").unwrap();
    let table = ApiKeyTable::new().and(&stored, Principal::new("api key", "", "ben")).unwrap();
    let fixed = StaticBearer::new("2f0a9c51d3e84b7f", Principal::new("static", "", "cid")).unwrap();
    let chain =
        || Chain::new(verifier(keys_again(&signer))).and(ApiKeys::new(Pepper::new(&[7; 32]).unwrap(), table.clone()));
    let closed =
        Chain::new(verifier(keys)).and(fixed.with_challenge(challenge())).and(ApiKeys::new(pepper, table.clone()));
    let key = headers(&[("x-api-key", "kJ3vQ0rUuY7nM2xW")]);
    let mut rows = vec![
        ("none", HeaderMap::new(), Err(Missing)),
        ("right for the first", token(&signer.token("k1", &json!({}))), Ok("ann")),
        ("right for the second", token("2f0a9c51d3e84b7f"), Ok("cid")),
        ("right for the third", key.clone(), Ok("ben")),
        ("wrong for the first", token(&signer.token("k1", &json!({ "aud": "x" }))), Err(InvalidToken)),
        ("unknown to all", token("b81c5e6f90a2d347"), Err(NotRecognised)),
        ("unknown to the third", headers(&[("x-api-key", "x")]), Err(NotRecognised)),
    ];
    let wrong_and_right = headers(&[
        ("authorization", &format!("Bearer {}", signer.token("k1", &json!({ "exp": NOW - 61 })))),
        ("x-api-key", "kJ3vQ0rUuY7nM2xW"),
    ]);
    rows.push(("wrong for the first, right for the third", wrong_and_right, Err(Expired)));
    for (case, headers, expected) in rows {
        let outcome = ask(&closed, &headers).await;
        assert_eq!(outcome.as_ref().map(Principal::subject).map_err(Clone::clone), expected, "{case}");
    }
    let header = closed.challenge(&Missing).www_authenticate.unwrap();
    assert_eq!(header.to_str().unwrap(), format!("{NONE}, {API_KEY}"));
    let open = Arc::new(chain().and(Anonymous));
    assert!(ask(&*open, &HeaderMap::new()).await.unwrap().is_anonymous());
    assert_eq!(
        ask(&*open, &token("b81c5e6f90a2d347")).await,
        Err(NotRecognised),
        "a wrong token makes nobody anonymous"
    );
    assert_eq!(ask(&*open, &key).await.unwrap().subject(), "ben");
}

fn keys_again(signer: &Signer) -> IssuerKeys {
    IssuerKeys::fixed(&json!({ "keys": [signer.jwk("k1")] }).to_string()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_log_says_why_a_token_was_refused_and_no_error_or_log_holds_a_part_of_it() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let signer = Signer::ec();
    let fixed = verifier(keys_again(&signer));
    let endpoint = Endpoint::new(Reply::Down);
    let introspection =
        Introspection::new(ISSUER, "https://login.example/introspect", [AUDIENCE], endpoint.clone()).unwrap();
    let opaque = Bearer::new(introspection.with_client("tools", "secret-of-ours").unwrap());
    let jwks = verifier(IssuerKeys::fetched(Jwks::new("https://login.example/jwks", endpoint).unwrap()));
    let mut told = String::new();
    for (_, headers, _) in jwts(&signer) {
        for provider in [&fixed, &opaque, &jwks] {
            if let Err(error) = ask(provider, &headers).await {
                told.push_str(&format!("{error} {error:?} {:?}", provider.challenge(&error)));
            }
        }
        told.push_str(&log.text());
        let sent = headers.get("authorization").map(|value| value.to_str().unwrap()).unwrap_or_default();
        for part in sent.trim_start_matches("Bearer ").split('.').filter(|part| part.len() > 8) {
            assert!(!told.contains(part), "{part} in {told}");
        }
    }
    assert!(!told.contains("secret-of-ours"));
    for reason in ["another audience", "has expired", "no key of the issuer", "another algorithm", "was not renewed"] {
        assert!(told.contains(reason), "{reason}");
    }
}

#[tokio::test]
async fn a_server_that_is_open_lets_everybody_in() {
    for headers in [HeaderMap::new(), token("a"), headers(&[("authorization", "Bearer a b")])] {
        assert!(ask(&Anonymous, &headers).await.unwrap().is_anonymous());
    }
}
