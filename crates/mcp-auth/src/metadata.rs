//! What a protected resource says about itself: its name and who gives out tokens for it.
//!
//! Why here: the document, the places it is served at and the address in challenges follow from one public address.
//! Invariants: the address comes from configuration, never from a request; the document is rendered once.
//! Spec: 2026-07-28 basic/authorization, "Protected Resource Metadata Discovery Requirements"; RFC 9728 2, 3

use http::Uri;
use serde_json::{Map, Value};

use crate::address::is_private_address;
use crate::challenge::is_scope;
use crate::{BearerChallenge, InvalidChallenge, InvalidOption};

/// The metadata document of a protected resource (RFC 9728), to be served to everyone with
/// [`Self::CONTENT_TYPE`], before any check of origin or caller.
///
/// ```
/// use mcp_auth::{BearerChallenge, ProtectedResource};
///
/// let resource = ProtectedResource::new("https://tools.example/mcp", ["https://login.example"])?
///     .with_scopes(["files:read"])?;
/// assert_eq!(resource.path(), "/.well-known/oauth-protected-resource/mcp");
/// assert_eq!(resource.url(), "https://tools.example/.well-known/oauth-protected-resource/mcp");
/// let challenge = BearerChallenge::for_resource(&resource)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedResource {
    members: Map<String, Value>,
    resource: Box<str>,
    origin: Box<str>,
    path: Box<str>,
    document: Box<str>,
}

const ROOT: &str = "/.well-known/oauth-protected-resource";

impl ProtectedResource {
    /// The type the document is served as.
    pub const CONTENT_TYPE: &'static str = "application/json";

    /// The metadata of the server that the world knows as `resource`, for which `authorization_servers`, named by
    /// their issuers, give out tokens.
    ///
    /// `resource` is the endpoint's public address in canonical form: `https` (or `http` on a loopback host), lower-case
    /// scheme and host, no user, query or fragment. It is also the audience that tokens have to name.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for another form, or without authorization servers.
    pub fn new<S: Into<String>>(
        resource: &str,
        authorization_servers: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidOption> {
        let Some((origin, path)) = split(resource) else {
            return Err(refusal("resource", "is not a canonical https address without query and fragment"));
        };
        let servers: Vec<Value> =
            authorization_servers.into_iter().map(|issuer| Value::String(issuer.into())).collect();
        if servers.is_empty() {
            return Err(refusal("authorization servers", "must not be empty"));
        }
        if !servers.iter().filter_map(Value::as_str).all(is_private_address) {
            return Err(refusal("authorization servers", "have to be https addresses"));
        }
        let path = format!("{ROOT}{}", if path == "/" { "" } else { path });
        let members = Map::from_iter([
            ("resource".to_owned(), Value::from(resource)),
            ("authorization_servers".to_owned(), Value::Array(servers)),
            ("bearer_methods_supported".to_owned(), Value::from(vec!["header"])),
        ]);
        let new = Self {
            members,
            resource: resource.into(),
            origin: origin.into(),
            path: path.into(),
            document: Box::default(),
        };
        Ok(new.rendered())
    }

    /// Also says which scopes there are to ask for.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for no scopes, one that a token could not hold, or `offline_access`, which is between a client
    /// and its authorization server.
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Result<Self, InvalidOption> {
        let scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        if scopes.is_empty() || !scopes.iter().all(|scope| is_scope(scope)) {
            return Err(refusal("scopes", "are empty or hold a character that is not allowed in a scope"));
        }
        if scopes.iter().any(|scope| scope == "offline_access") {
            return Err(refusal("scopes", "must not name offline_access"));
        }
        self.members.insert("scopes_supported".to_owned(), Value::from(scopes));
        Ok(self.rendered())
    }

    /// Adds any other member that RFC 9728 knows, such as `resource_name`.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for a member that has a method of its own here.
    pub fn with_member(mut self, name: &str, value: Value) -> Result<Self, InvalidOption> {
        if matches!(name, "resource" | "authorization_servers" | "bearer_methods_supported" | "scopes_supported") {
            return Err(refusal("members", "must not replace those that are written already"));
        }
        self.members.insert(name.to_owned(), value);
        Ok(self.rendered())
    }

    /// The resource's own address: the audience of its tokens.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The document, as JSON.
    #[must_use]
    pub fn document(&self) -> &str {
        &self.document
    }

    /// The path the document is served at, on the public host: the well-known place with the endpoint's path behind it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where clients look if the first place has nothing. The document is served here as well; of several protected
    /// resources on one host at most one can have this place.
    #[must_use]
    pub const fn root_path() -> &'static str {
        ROOT
    }

    /// The document's public address, which challenges name.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    fn rendered(mut self) -> Self {
        self.document = Value::Object(self.members.clone()).to_string().into();
        self
    }
}

impl BearerChallenge {
    /// Challenges of realm `mcp` that say where the metadata of `resource` are, and which scopes to ask for: those that
    /// the document names.
    ///
    /// # Errors
    ///
    /// [`InvalidChallenge`] if the address holds a character that cannot stand in a header.
    pub fn for_resource(resource: &ProtectedResource) -> Result<Self, InvalidChallenge> {
        let scopes = resource.members.get("scopes_supported").and_then(Value::as_array);
        let scopes = scopes.into_iter().flatten().filter_map(Value::as_str);
        Self::default().with_resource_metadata(&resource.url())?.with_scopes(scopes)
    }
}

/// Origin and path of a canonical address.
fn split(resource: &str) -> Option<(&str, &str)> {
    // It stands between quotes in challenges.
    let plain = resource.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'?'));
    if !plain || !is_private_address(resource) {
        return None;
    }
    let uri: Uri = resource.parse().ok()?;
    let authority = uri.authority()?.as_str();
    let origin_length = uri.scheme_str()?.len() + "://".len() + authority.len();
    let (origin, path) = resource.split_at_checked(origin_length)?;
    (!origin.bytes().any(|byte| byte.is_ascii_uppercase())).then_some((origin, path))
}

const fn refusal(option: &'static str, reason: &'static str) -> InvalidOption {
    InvalidOption::new("protected resource", option, reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::AuthError;

    const SERVERS: [&str; 1] = ["https://login.example"];

    #[test]
    fn the_document_is_served_at_the_well_known_place_before_the_path() {
        for (resource, url) in [
            ("https://h/mcp", "https://h/.well-known/oauth-protected-resource/mcp"),
            ("https://h:8443/a/mcp", "https://h:8443/.well-known/oauth-protected-resource/a/mcp"),
            ("https://h", "https://h/.well-known/oauth-protected-resource"),
            ("https://h/", "https://h/.well-known/oauth-protected-resource"),
            ("https://h/mcp/", "https://h/.well-known/oauth-protected-resource/mcp/"),
            ("http://127.0.0.1:3000/mcp", "http://127.0.0.1:3000/.well-known/oauth-protected-resource/mcp"),
        ] {
            let metadata = ProtectedResource::new(resource, SERVERS).unwrap();
            assert_eq!(metadata.url(), url);
            assert!(url.ends_with(metadata.path()), "{resource}");
            assert_eq!(metadata.resource(), resource);
        }
    }

    #[test]
    fn the_document_holds_what_was_configured() {
        let metadata = ProtectedResource::new("https://h/mcp", ["https://a", "https://b/t1"])
            .and_then(|metadata| metadata.with_scopes(["files:read", "files:write"]))
            .and_then(|metadata| metadata.with_member("resource_name", Value::from("Files")))
            .unwrap();
        let document: Value = serde_json::from_str(metadata.document()).unwrap();
        let expected = serde_json::json!({
            "resource": "https://h/mcp",
            "authorization_servers": ["https://a", "https://b/t1"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["files:read", "files:write"],
            "resource_name": "Files",
        });
        assert_eq!(document, expected);
    }

    #[test]
    fn challenges_lead_to_the_document() {
        let metadata = ProtectedResource::new("https://h/mcp", SERVERS)
            .and_then(|metadata| metadata.with_scopes(["files:read"]))
            .unwrap();
        let answer = BearerChallenge::for_resource(&metadata).unwrap().answer(&AuthError::Missing);
        assert_eq!(
            answer.www_authenticate.unwrap(),
            "Bearer realm=\"mcp\", scope=\"files:read\", \
             resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\""
        );
    }

    #[test]
    fn what_is_no_canonical_address_or_would_mislead_clients_is_refused() {
        for resource in [
            "",
            "/mcp",
            "mcp",
            "http://h/mcp",
            "https://H/mcp",
            "HTTPS://h/mcp",
            "https://h/mcp?x=y",
            "https://h/mcp#a",
            "https://ann@h/mcp",
            "https://h/a\"b",
            "https://h/a\\b",
        ] {
            let refused = ProtectedResource::new(resource, SERVERS).unwrap_err();
            assert_eq!(refused.option(), "resource", "{resource}");
        }
        let refused = |servers: &[&str]| ProtectedResource::new("https://h", servers.to_vec()).unwrap_err();
        assert_eq!(refused(&[]).option(), "authorization servers");
        assert_eq!(refused(&["https://a", "http://b"]).option(), "authorization servers");
        let metadata = ProtectedResource::new("https://h", SERVERS).unwrap();
        for scopes in [&[][..], &["offline_access"], &["a b"]] {
            assert_eq!(metadata.clone().with_scopes(scopes.to_vec()).unwrap_err().option(), "scopes", "{scopes:?}");
        }
        assert_eq!(metadata.with_member("resource", Value::Null).unwrap_err().option(), "members");
    }

    proptest! {
        #[test]
        fn no_address_panics_and_every_accepted_one_is_kept(address in "(https://)?[ -~]{0,30}") {
            if let Ok(metadata) = ProtectedResource::new(&address, SERVERS) {
                prop_assert_eq!(metadata.resource(), &address);
                prop_assert!(metadata.url().starts_with(&*metadata.origin));
                prop_assert!(metadata.path().starts_with(ROOT));
            }
        }
    }
}
