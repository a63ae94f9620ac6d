//! Which addresses secrets may be sent to, and keys be read from.
//!
//! Why here: the metadata of a resource and everything that is fetched follow one rule.
//! Invariants: pure; no address with a name and password inside is allowed.
//! Spec: 2026-07-28 basic/authorization, "Communication Security"

use std::net::IpAddr;

use http::Uri;

/// Whether an address keeps what it carries from others: `https`, or `http` on the machine itself.
pub(crate) fn is_private_address(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority().filter(|authority| !authority.as_str().contains('@')) else { return false };
    match uri.scheme_str() {
        _ if url.contains('#') || authority.host().is_empty() => false,
        Some("https") => true,
        Some("http") => is_loopback(authority.host()),
        _ => false,
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_addresses_that_nobody_can_listen_to_are_private() {
        for url in [
            "https://as.example/jwks",
            "https://as.example:8443/jwks?x=y",
            "http://localhost:3000/jwks",
            "http://127.8.0.1/jwks",
            "http://[::1]:80/jwks",
        ] {
            assert!(is_private_address(url), "{url}");
        }
        for url in [
            "",
            "/jwks",
            "as.example/jwks",
            "http://as.example/jwks",
            "http://localhost.as.example/jwks",
            "http://127.0.0.1.as.example/jwks",
            "http://[::2]/jwks",
            "ftp://localhost/jwks",
            "https://ann:secret@as.example/jwks",
            "https://as.example/jwks#keys",
            "https://as example/jwks",
        ] {
            assert!(!is_private_address(url), "{url}");
        }
    }

    proptest! {
        #[test]
        fn no_text_that_is_taken_for_an_address_lacks_a_scheme(text in "(https?://)?[ -~]{0,30}") {
            if is_private_address(&text) {
                prop_assert!(text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http")));
            }
        }
    }
}
