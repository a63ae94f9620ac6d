//! From which web origins, and under which host names, the server may be called.
//!
//! Why here: a page that points its own name at this machine (DNS rebinding) is stopped by these two headers alone.
//! Invariants: origins compare by scheme, host and port, never as text; what does not parse is refused; a check
//! costs no allocation.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Security & Endpoint"

use std::net::{Ipv4Addr, Ipv6Addr};

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::mirror::is_repeated;

/// Why a request's `Origin` or `Host` is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The header was sent several times.
    #[error("the header is repeated")]
    Repeated,
    /// The header is not an origin, or not a host with an optional port.
    #[error("the header is malformed")]
    Malformed,
    /// The origin or the host is not among the allowed ones.
    #[error("the header's value is not allowed")]
    NotAllowed,
}

/// An entry of a configured list that is neither an origin nor a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` is not {expected}")]
pub struct InvalidEntry {
    entry: Box<str>,
    expected: &'static str,
}

/// The web origins whose pages may call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedOrigins {
    any: bool,
    loopback: bool,
    null: bool,
    listed: Vec<Origin<Box<str>>>,
}

impl AllowedOrigins {
    /// `http` and `https` on `localhost`, `127.0.0.1` and `[::1]`, at any port.
    #[must_use]
    pub fn loopback() -> Self {
        Self { loopback: true, ..Self::default() }
    }

    /// Every origin, also `null` and malformed ones.
    #[must_use]
    pub fn any() -> Self {
        Self { any: true, ..Self::default() }
    }

    /// No origin: browsers are refused, other clients send none. Add to it with [`Self::and`].
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Allows one origin more, such as `https://app.example.com` or `http://10.0.0.7:3000`; without a port it is the
    /// scheme's own. The entry `null` stands for pages without an origin, which anybody can make.
    ///
    /// # Errors
    ///
    /// [`InvalidEntry`] for anything but scheme, host and optional port.
    pub fn and(mut self, origin: &str) -> Result<Self, InvalidEntry> {
        match Origin::parse(origin) {
            _ if origin == NULL => self.null = true,
            Some(origin) => self.listed.push(origin.to_owned()),
            None => {
                return Err(InvalidEntry { entry: origin.into(), expected: "an origin like `https://example.com`" });
            }
        }
        Ok(self)
    }

    /// The request's origin if it has an allowed one, `None` if it has none: whether that is enough is the caller's
    /// to decide.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the origin is repeated, malformed or not allowed.
    pub fn check<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a HeaderValue>, Refused> {
        let Some(value) = sole(headers, &ORIGIN)? else { return Ok(None) };
        if self.any {
            return Ok(Some(value));
        }
        let text = value.to_str().map_err(|_| Refused::Malformed)?;
        let allowed =
            if text == NULL { self.null } else { self.allows(Origin::parse(text).ok_or(Refused::Malformed)?) };
        if allowed { Ok(Some(value)) } else { Err(Refused::NotAllowed) }
    }

    fn allows(&self, origin: Origin<&str>) -> bool {
        let web = origin.scheme.eq_ignore_ascii_case("http") || origin.scheme.eq_ignore_ascii_case("https");
        (self.loopback && web && origin.host.is_loopback()) || self.listed.iter().any(|listed| listed.is(origin))
    }
}

/// The host names under which the server may be called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedHosts {
    any: bool,
    loopback: bool,
    listed: Vec<(Host<Box<str>>, Option<u16>)>,
}

impl AllowedHosts {
    /// `localhost`, `127.0.0.1` and `[::1]`, at any port.
    #[must_use]
    pub fn loopback() -> Self {
        Self { loopback: true, ..Self::default() }
    }

    /// Every well-formed host. Right where authentication protects the server, or a proxy checks.
    #[must_use]
    pub fn any() -> Self {
        Self { any: true, ..Self::default() }
    }

    /// No host. Add to it with [`Self::and`].
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Allows one host more: `mcp.example.com` at any port, `mcp.example.com:8443` only where that port is named.
    ///
    /// # Errors
    ///
    /// [`InvalidEntry`] for anything but a host with an optional port.
    pub fn and(mut self, host: &str) -> Result<Self, InvalidEntry> {
        let Some((host, port)) = authority(host) else {
            return Err(InvalidEntry {
                entry: host.into(),
                expected: "a host like `example.com` or `example.com:8443`",
            });
        };
        self.listed.push((host.to_owned(), port));
        Ok(self)
    }

    /// Whether the request may be served that came for `host`: the `Host` header's value or an authority.
    ///
    /// # Errors
    ///
    /// [`Refused::Malformed`] and [`Refused::NotAllowed`].
    pub fn check(&self, host: &str) -> Result<(), Refused> {
        let (host, port) = authority(host).ok_or(Refused::Malformed)?;
        let listed = |(listed, at): &(Host<Box<str>>, Option<u16>)| listed.is(host) && (at.is_none() || *at == port);
        if self.any || (self.loopback && host.is_loopback()) || self.listed.iter().any(listed) {
            Ok(())
        } else {
            Err(Refused::NotAllowed)
        }
    }
}

/// The value of the only `Host` header, if there is one, for [`AllowedHosts::check`].
///
/// # Errors
///
/// [`Refused::Repeated`], and [`Refused::Malformed`] for bytes outside ASCII.
pub fn sole_host(headers: &HeaderMap) -> Result<Option<&str>, Refused> {
    sole(headers, &HOST)?.map(|value| value.to_str().map_err(|_| Refused::Malformed)).transpose()
}

const NULL: &str = "null";

fn sole<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Refused> {
    if is_repeated(headers, name) { Err(Refused::Repeated) } else { Ok(headers.get(name)) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Origin<S> {
    scheme: S,
    host: Host<S>,
    /// The scheme's own port where none is written and the scheme has one.
    port: Option<u16>,
}

impl<'a> Origin<&'a str> {
    /// `scheme://host[:port]` and nothing else, as browsers write it.
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.bytes().all(fits) {
            return None;
        }
        let (host, port) = authority(rest)?;
        Some(Self { scheme, host, port: port.or_else(|| default_port(scheme)) })
    }

    fn to_owned(self) -> Origin<Box<str>> {
        Origin { scheme: self.scheme.into(), host: self.host.to_owned(), port: self.port }
    }
}

impl Origin<Box<str>> {
    fn is(&self, other: Origin<&str>) -> bool {
        self.scheme.eq_ignore_ascii_case(other.scheme) && self.host.is(other.host) && self.port == other.port
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => Some(80),
        _ if scheme.eq_ignore_ascii_case("https") => Some(443),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host<S> {
    /// Without a dot at its end.
    Name(S),
    Four(Ipv4Addr),
    Six(Ipv6Addr),
}

impl Host<&str> {
    fn is_loopback(self) -> bool {
        match self {
            Self::Name(name) => name.eq_ignore_ascii_case("localhost"),
            Self::Four(address) => address == Ipv4Addr::LOCALHOST,
            Self::Six(address) => address == Ipv6Addr::LOCALHOST,
        }
    }

    fn to_owned(self) -> Host<Box<str>> {
        match self {
            Self::Name(name) => Host::Name(name.into()),
            Self::Four(address) => Host::Four(address),
            Self::Six(address) => Host::Six(address),
        }
    }
}

impl Host<Box<str>> {
    fn is(&self, other: Host<&str>) -> bool {
        match (self, other) {
            (Self::Name(one), Host::Name(two)) => one.eq_ignore_ascii_case(two),
            (Self::Four(one), Host::Four(two)) => *one == two,
            (Self::Six(one), Host::Six(two)) => *one == two,
            (Self::Name(_) | Self::Four(_) | Self::Six(_), _) => false,
        }
    }
}

/// `host[:port]`, the host a name or an address; user names, paths and escapes make it malformed.
fn authority(text: &str) -> Option<(Host<&str>, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let port = if rest.is_empty() { None } else { Some(port(rest.strip_prefix(':')?)?) };
        return Some((Host::Six(address.parse().ok()?), port));
    }
    // Every request comes by here: short texts are looked through faster than searched, and most servers are called by
    // one of these names.
    let (host, port) = match text.bytes().position(|byte| byte == b':') {
        Some(colon) => (text.get(..colon)?, Some(port(text.get(colon + 1..)?)?)),
        None => (text, None),
    };
    if host == "127.0.0.1" {
        return Some((Host::Four(Ipv4Addr::LOCALHOST), port));
    }
    let may_be_address = host.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    if let Some(address) = may_be_address.then(|| host.parse().ok()).flatten() {
        return Some((Host::Four(address), port));
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let well_formed = (1..=253).contains(&name.len()) && !name.ends_with('.') && name.bytes().all(fits);
    well_formed.then_some((Host::Name(name), port))
}

fn port(digits: &str) -> Option<u16> {
    if !(1..=5).contains(&digits.len()) {
        return None;
    }
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let number = digits.bytes().try_fold(0, |number, byte| Some(number * 10 + digit(byte)?))?;
    u16::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn origin(lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (ORIGIN, HeaderValue::from_bytes(line.as_bytes()).unwrap())).collect()
    }

    fn checked(allowed: &AllowedOrigins, line: &str) -> Result<(), Refused> {
        allowed.check(&origin(&[line])).map(|value| assert_eq!(value.unwrap(), line))
    }

    #[test]
    fn by_default_only_pages_of_this_machine_may_call() {
        let allowed = AllowedOrigins::loopback();
        for line in [
            "http://localhost",
            "http://localhost:3000",
            "https://localhost:8443",
            "HTTP://LocalHost:1",
            "http://localhost.:3000",
            "http://127.0.0.1:65535",
            "https://[::1]",
            "http://[0:0:0:0:0:0:0:1]:80",
        ] {
            assert_eq!(checked(&allowed, line), Ok(()), "{line}");
        }
        for line in [
            "http://evil.example.com",
            "http://localhost.evil.example.com",
            "http://evil-localhost",
            "http://127.0.0.1.evil.example.com",
            "http://127.0.0.2",
            "http://127.1",
            "http://0127.0.0.1",
            "http://2130706433",
            "http://[::ffff:127.0.0.1]",
            "http://[::2]",
            "ftp://localhost",
            "null",
        ] {
            assert_eq!(checked(&allowed, line), Err(Refused::NotAllowed), "{line}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for line in [
            "",
            "localhost",
            "//localhost",
            "://localhost",
            "http:localhost",
            "http://",
            "http://localhost/",
            "http://localhost/path",
            "http://localhost?x",
            "http://localhost#x",
            "http://localhost@evil.example.com",
            "http://user:secret@localhost",
            "http://localhost:",
            "http://localhost:+80",
            "http://localhost:65536",
            "http://localhost:000080",
            "http://localhost:80:80",
            "http://localhost..",
            "http://.",
            "http://[::1",
            "http://[::1]x",
            "http://[::1%25lo]",
            "http://[127.0.0.1]",
            "http://::1",
            "http://loc%61lhost",
            "http://local host",
            " http://localhost",
            "http://localhost, http://localhost",
            "1http://localhost",
            "Null",
        ] {
            assert_eq!(checked(&AllowedOrigins::loopback(), line), Err(Refused::Malformed), "{line}");
        }
        assert_eq!(checked(&AllowedOrigins::loopback(), "http://löcalhost"), Err(Refused::Malformed));
    }

    #[test]
    fn a_request_without_an_origin_is_left_to_the_caller() {
        assert_eq!(AllowedOrigins::none().check(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn a_repeated_origin_is_refused_under_every_policy() {
        let headers = origin(&["http://localhost", "http://localhost"]);
        for allowed in [AllowedOrigins::loopback(), AllowedOrigins::any()] {
            assert_eq!(allowed.check(&headers), Err(Refused::Repeated));
        }
    }

    #[test]
    fn listed_origins_compare_by_structure() {
        let allowed =
            AllowedOrigins::none().and("https://App.Example.com").and_then(|list| list.and("http://[fe80::1]:3000"));
        let allowed = allowed.and_then(|list| list.and("vscode-webview://abc")).unwrap();
        for line in [
            "https://app.example.com",
            "HTTPS://APP.EXAMPLE.COM:443",
            "https://app.example.com.",
            "http://[FE80:0::1]:3000",
            "vscode-webview://abc",
        ] {
            assert_eq!(checked(&allowed, line), Ok(()), "{line}");
        }
        for line in [
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://x.app.example.com",
            "https://example.com",
            "http://[fe80::1]",
            "vscode-webview://abc:1",
            "http://localhost",
            "null",
        ] {
            assert_eq!(checked(&allowed, line), Err(Refused::NotAllowed), "{line}");
        }
    }

    #[test]
    fn loopback_can_be_extended() {
        let allowed = AllowedOrigins::loopback().and("https://app.example.com").unwrap();
        assert_eq!(checked(&allowed, "http://localhost:1"), Ok(()));
        assert_eq!(checked(&allowed, "https://app.example.com"), Ok(()));
    }

    #[test]
    fn null_is_allowed_by_that_entry_alone() {
        assert_eq!(checked(&AllowedOrigins::none().and("null").unwrap(), "null"), Ok(()));
        assert_eq!(checked(&AllowedOrigins::none(), "null"), Err(Refused::NotAllowed));
        assert_eq!(checked(&AllowedOrigins::any(), "null"), Ok(()));
    }

    #[test]
    fn entries_that_mean_nothing_are_refused_at_start() {
        for entry in ["", "*", "app.example.com", "https://app.example.com/", "https://*.example.com"] {
            let refused = AllowedOrigins::none().and(entry).unwrap_err();
            assert_eq!(refused.to_string(), format!("`{entry}` is not an origin like `https://example.com`"));
        }
        for entry in ["", "*", "https://example.com", "a/b", "user@example.com", "example.com:"] {
            assert!(AllowedHosts::none().and(entry).is_err(), "{entry}");
        }
    }

    #[test]
    fn by_default_only_names_of_this_machine_are_served() {
        let allowed = AllowedHosts::loopback();
        for host in ["localhost", "LOCALHOST:3000", "localhost.", "127.0.0.1:80", "[::1]", "[::1]:8080"] {
            assert_eq!(allowed.check(host), Ok(()), "{host}");
        }
        for host in ["evil.example.com", "localhost.evil.example.com:80", "127.0.0.2", "0.0.0.0", "[::]", "127.1"] {
            assert_eq!(allowed.check(host), Err(Refused::NotAllowed), "{host}");
        }
        for host in ["", ":80", "localhost:", "localhost:x", "a@localhost", "localhost/", "[::1", "::1", "a b", "[]"] {
            assert_eq!(allowed.check(host), Err(Refused::Malformed), "{host}");
            assert_eq!(AllowedHosts::any().check(host), Err(Refused::Malformed), "{host}");
        }
    }

    #[test]
    fn a_listed_host_with_a_port_is_served_at_that_port_alone() {
        let allowed =
            AllowedHosts::none().and("a.example.com").and_then(|list| list.and("b.example.com:8443")).unwrap();
        for host in ["a.example.com", "A.example.com.:1", "b.example.com:8443", "b.example.com.:08443"] {
            assert_eq!(allowed.check(host), Ok(()), "{host}");
        }
        for host in ["b.example.com", "b.example.com:443", "localhost", "example.com"] {
            assert_eq!(allowed.check(host), Err(Refused::NotAllowed), "{host}");
        }
        assert_eq!(AllowedHosts::any().check("anything.example:1"), Ok(()));
    }

    #[test]
    fn a_repeated_host_header_is_refused() {
        let mut headers = HeaderMap::new();
        assert_eq!(sole_host(&headers), Ok(None));
        headers.append(HOST, HeaderValue::from_static("localhost"));
        assert_eq!(sole_host(&headers), Ok(Some("localhost")));
        headers.append(HOST, HeaderValue::from_static("localhost"));
        assert_eq!(sole_host(&headers), Err(Refused::Repeated));
        let bytes = HeaderMap::from_iter([(HOST, HeaderValue::from_bytes(b"\xff").unwrap())]);
        assert_eq!(sole_host(&bytes), Err(Refused::Malformed));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_check_panic(text in "(\\PC|[\\[\\]:/.@%]|://|localhost|::1|127\\.0\\.0\\.1){0,8}") {
            let _ = AllowedHosts::loopback().check(&text);
            if let Ok(value) = HeaderValue::from_str(&text) {
                let _ = AllowedOrigins::loopback().check(&HeaderMap::from_iter([(ORIGIN, value)]));
            }
        }

        #[test]
        fn an_origin_allows_itself_in_any_case_and_no_other_port(
            scheme in "https?", host in "[a-z0-9]{1,8}(\\.[a-z]{1,5}){0,3}", port in any::<u16>(), other in any::<u16>(),
        ) {
            let allowed = AllowedOrigins::none().and(&format!("{scheme}://{host}:{port}")).unwrap();
            let (scheme, host) = (scheme.to_uppercase(), host.to_uppercase());
            prop_assert_eq!(checked(&allowed, &format!("{scheme}://{host}:{port}")), Ok(()));
            prop_assert_eq!(checked(&allowed, &format!("{scheme}://{host}:{other}")).is_ok(), port == other);
            prop_assert_eq!(checked(&allowed, &format!("{scheme}://x{host}:{port}")), Err(Refused::NotAllowed));
        }

        #[test]
        fn nothing_but_a_loopback_host_is_taken_for_one(
            host in "(localhost|127|\\.|0|1|\\[|\\]|::1|:|[a-z0-9-]){0,9}",
            port in "(:[0-9]{1,4})?",
        ) {
            if AllowedHosts::loopback().check(&format!("{host}{port}")).is_ok() {
                let name = host.split_once("]:").map_or(&*host, |(address, _)| address);
                let name = if name.starts_with('[') { name } else { name.split(':').next().unwrap() };
                let six = name.trim_matches(['[', ']']).parse::<Ipv6Addr>();
                let known = ["localhost", "localhost.", "127.0.0.1"].contains(&name) || six == Ok(Ipv6Addr::LOCALHOST);
                prop_assert!(known, "{}{}", host, port);
            }
        }
    }
}
