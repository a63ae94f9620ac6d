//! Where a request came from, when proxies that are trusted say so.
//!
//! Why here: the one place that decides whether a header is believed about its sender.
//! Invariants: pure; without a trusted peer no header is looked at; of what is listed, only what a trusted proxy wrote is
//! believed; what cannot be read to the letter counts as not sent.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Security Warning"

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Most proxies between a client and this one. Beyond: none of them is believed.
const MAX_HOPS: usize = 32;

/// The proxies that are believed when they say for whom they ask. Default: none.
///
/// A proxy that is listed must write the header that is read, for every request: what it passes on of its clients' is taken
/// for its own.
#[derive(Clone, Debug, Default)]
#[must_use = "it does nothing until a configuration uses it"]
pub struct TrustedProxies {
    nets: Vec<IpNet>,
    unnamed: bool,
    standard: bool,
}

/// What is no address and no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no address such as 10.0.0.7 and no range such as 10.0.0.0/8")]
pub struct NoNetwork(String);

impl TrustedProxies {
    /// Proxies at these addresses, and in these ranges (`10.0.0.0/8`, `fd00::/8`), by what they add to `X-Forwarded-For`.
    ///
    /// # Errors
    /// The first text that is neither.
    pub fn at<T: AsRef<str>>(proxies: impl IntoIterator<Item = T>) -> Result<Self, NoNetwork> {
        let nets = proxies.into_iter().map(|proxy| network(proxy.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self { nets, unnamed: false, standard: false })
    }

    /// Also whoever connects without an address: over the unix socket of a [`Listener`](crate::server::Listener), which the
    /// permissions of its path guard. In a router of one's own that tells no addresses it is everyone.
    pub fn and_peers_without_address(mut self) -> Self {
        self.unnamed = true;
        self
    }

    /// Reads `Forwarded` (RFC 7239) and not `X-Forwarded-For`: one of them, since the other may be the client's.
    pub fn by_forwarded(mut self) -> Self {
        self.standard = true;
        self
    }

    fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.nets.iter().any(|net| net.contains(&address))
    }

    /// The client of a request that came from `peer`: the last address, from the right, that no trusted proxy has. That is
    /// the peer itself unless it is trusted, and where the header is absent, malformed or longer than 32 addresses. The port
    /// is 0 where none was told.
    #[must_use]
    pub fn client(&self, peer: Option<SocketAddr>, headers: &HeaderMap) -> Option<SocketAddr> {
        let is_trusted = peer.map_or(self.unnamed, |peer| self.trusts(peer.ip()));
        if !is_trusted {
            return peer;
        }
        let told = if self.standard { self.said_in_forwarded(headers) } else { self.said_in_x_forwarded_for(headers) };
        told.or(peer)
    }

    fn said_in_x_forwarded_for(&self, headers: &HeaderMap) -> Option<SocketAddr> {
        let mut hops = Vec::new();
        for value in headers.get_all(X_FORWARDED_FOR) {
            hops.extend(value.to_str().ok()?.split(','));
        }
        self.first_stranger(hops.iter().rev().map(|hop| node(hop.trim())))
    }

    fn said_in_forwarded(&self, headers: &HeaderMap) -> Option<SocketAddr> {
        let mut hops = Vec::new();
        for value in headers.get_all(FORWARDED) {
            hops.extend(elements(value.to_str().ok()?)?);
        }
        self.first_stranger(hops.iter().rev().map(|hop| hop.as_deref().and_then(node)))
    }

    /// The first of these addresses that is not trusted, or else the last. Whatever comes after it may be anybody's.
    fn first_stranger(&self, hops: impl ExactSizeIterator<Item = Option<SocketAddr>>) -> Option<SocketAddr> {
        if hops.len() > MAX_HOPS {
            return None;
        }
        let mut nearest = None;
        for hop in hops {
            let hop = hop?;
            nearest = Some(hop);
            if !self.trusts(hop.ip()) {
                break;
            }
        }
        nearest
    }
}

impl fmt::Display for TrustedProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = if self.standard { FORWARDED } else { X_FORWARDED_FOR };
        write!(f, "{header} of {} networks", self.nets.len())
    }
}

fn network(text: &str) -> Result<IpNet, NoNetwork> {
    let net = IpNet::from_str(text).or_else(|_| text.parse::<IpAddr>().map(|address| address.to_canonical().into()));
    net.map_err(|_| NoNetwork(text.chars().take(64).collect()))
}

/// An address with or without a port; IPv6 with a port has brackets, and may have them without one.
fn node(text: &str) -> Option<SocketAddr> {
    let named = |address: IpAddr| SocketAddr::new(address.to_canonical(), 0);
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(named(address));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(SocketAddr::new(address.ip().to_canonical(), address.port()));
    }
    let bare = text.strip_prefix('[')?.strip_suffix(']')?;
    bare.parse::<std::net::Ipv6Addr>().ok().map(|address| named(address.into()))
}

/// The `for` of each element of a `Forwarded` header; `None` if it breaks the grammar anywhere. Strictness is what keeps a
/// client from hiding in its own quotes what a proxy adds behind them.
fn elements(text: &str) -> Option<Vec<Option<String>>> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let mut named = None;
        loop {
            let (name, value, after) = pair(rest)?;
            if name.eq_ignore_ascii_case("for") && named.replace(value).is_some() {
                return None;
            }
            rest = after;
            match rest.strip_prefix(';') {
                Some(more) => rest = more.trim_start_matches([' ', '\t']),
                None => break,
            }
        }
        found.push(named);
        rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            return Some(found);
        }
        rest = rest.strip_prefix(',')?.trim_start_matches([' ', '\t']);
    }
}

/// A name, its value and what follows.
fn pair(text: &str) -> Option<(&str, String, &str)> {
    let token_end = |text: &str| {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        text.bytes().position(|byte| !is_token(byte)).unwrap_or(text.len())
    };
    let (name, rest) = text.split_at(token_end(text));
    let rest = rest.strip_prefix('=').filter(|_| !name.is_empty())?;
    let Some(mut quoted) = rest.strip_prefix('"') else {
        // Some proxies write addresses with ports without the quotes they need.
        let end = rest.find([';', ',', ' ', '\t', '"']).unwrap_or(rest.len());
        let (value, rest) = rest.split_at(end);
        return (!value.is_empty()).then(|| (name, value.to_owned(), rest));
    };
    let mut value = String::new();
    loop {
        let mut characters = quoted.chars();
        let character = match characters.next()? {
            '"' => return Some((name, value, characters.as_str())),
            '\\' => characters.next()?,
            character => character,
        };
        value.push(character);
        quoted = characters.as_str();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| (HeaderName::from_static(name), value.parse().unwrap()));
        values.collect()
    }

    /// Who asks, according to a proxy at 10.0.0.1 among trusted ones.
    fn told(name: &'static str, values: &[&str]) -> String {
        let proxies = TrustedProxies::at(["10.0.0.0/8", "fd00::1"]).unwrap();
        let proxies = if name == "forwarded" { proxies.by_forwarded() } else { proxies };
        let client = proxies.client(Some("10.0.0.1:4000".parse().unwrap()), &headers(name, values)).unwrap();
        if client.port() == 0 { client.ip().to_string() } else { client.to_string() }
    }

    #[test]
    fn the_rightmost_stranger_is_the_client() {
        for (values, expected) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["192.0.2.1, 10.0.0.2"], "192.0.2.1"),
            (&["203.0.113.9, 192.0.2.1"], "192.0.2.1"),
            (&["203.0.113.9, 192.0.2.1 ,10.0.0.3, fd00::1"], "192.0.2.1"),
            (&["203.0.113.9", "192.0.2.1", "10.0.0.3"], "192.0.2.1"),
            (&["not an address, 192.0.2.1"], "192.0.2.1"),
            (&["10.0.0.9, 10.0.0.3"], "10.0.0.9"),
            (&["192.0.2.1:5555"], "192.0.2.1:5555"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["[2001:db8::1]:443"], "[2001:db8::1]:443"),
            (&["::ffff:192.0.2.1"], "192.0.2.1"),
            (&["192.0.2.1, ::ffff:10.0.0.2"], "192.0.2.1"),
        ] {
            assert_eq!(told("x-forwarded-for", values), expected, "{values:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_leaves_the_peer() {
        let long = vec!["10.0.0.2"; MAX_HOPS + 1].join(",");
        for values in [
            &[][..],
            &[""],
            &["unknown"],
            &["192.0.2.1, unknown"],
            &["192.0.2.1,"],
            &["192.0.2.1, , 10.0.0.2"],
            &["192.0.2.1", ""],
            &["192.0.2"],
            &["192.0.2.1:99999"],
            &["[2001:db8::1"],
            &["[192.0.2.1]"],
            &["192.0.2.1;10.0.0.2"],
            &[&long],
        ] {
            assert_eq!(told("x-forwarded-for", values), "10.0.0.1:4000", "{values:?}");
        }
    }

    #[test]
    fn the_standard_header_is_read_to_the_letter() {
        for (values, expected) in [
            (&["for=192.0.2.60;proto=http;by=203.0.113.43"][..], "192.0.2.60"),
            (&["For=\"[2001:db8:cafe::17]:4711\""], "[2001:db8:cafe::17]:4711"),
            (&["proto=https;FOR=192.0.2.1, for=10.0.0.2"], "192.0.2.1"),
            (&["for=203.0.113.9, for=\"192.0.2.1\"", "for=10.0.0.2"], "192.0.2.1"),
            (&["for=192.0.2.1:80"], "192.0.2.1:80"),
            (&["for=_hidden, for=192.0.2.1"], "192.0.2.1"),
            (&["for=\"192\\.0.2.1\""], "192.0.2.1"),
        ] {
            assert_eq!(told("forwarded", values), expected, "{values:?}");
        }
        for values in [
            &["192.0.2.1"][..],
            &["for="],
            &["for=unknown"],
            &["for=_hidden"],
            &["proto=https"],
            &["for=192.0.2.1;for=192.0.2.2"],
            &["for=192.0.2.1;"],
            &["for=192.0.2.1,"],
            &["for=\"192.0.2.1"],
            // A client that wants the proxy's word inside its own.
            &["for=198.51.100.1;x=\", for=192.0.2.1"],
            &["for=198.51.100.1;x=\", for=\"[2001:db8::1]\""],
            &["for=198.51.100.1;x=\"\\, for=\"[2001:db8::1]\""],
            &["for=198.51.100.1;x=\"", "for=192.0.2.1"],
        ] {
            assert_eq!(told("forwarded", values), "10.0.0.1:4000", "{values:?}");
        }
    }

    #[test]
    fn nobody_is_believed_who_is_not_listed() {
        let forged = headers("x-forwarded-for", &["192.0.2.1"]);
        let stranger: SocketAddr = "198.51.100.7:1".parse().unwrap();
        let listed = TrustedProxies::at(["10.0.0.1"]).unwrap();
        for proxies in [TrustedProxies::default(), listed.clone(), listed.clone().by_forwarded()] {
            assert_eq!(proxies.client(Some(stranger), &forged), Some(stranger));
            assert_eq!(proxies.client(None, &forged), None);
        }
        let unnamed = TrustedProxies::default().and_peers_without_address();
        assert_eq!(unnamed.client(None, &forged), Some("192.0.2.1:0".parse().unwrap()));
        assert_eq!(unnamed.client(Some(stranger), &forged), Some(stranger));
        // Each header is one proxy's way; the other one is left to whoever sends it.
        assert_eq!(
            listed
                .client(Some("10.0.0.1:1".parse().unwrap()), &headers("forwarded", &["for=192.0.2.1"]))
                .unwrap()
                .port(),
            1
        );
        for bad in ["", "10.0.0.0/33", "proxy.example", "10.0.0", "10.0.0.1:80"] {
            assert_eq!(TrustedProxies::at([bad]).unwrap_err(), NoNetwork(bad.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn what_a_client_sends_before_its_proxy_speaks_changes_nothing(
            sent in "[ -~]{0,60}|((for=)?[0-9.:\\[\\]\"]{0,20}[,;] ?){0,4}",
            standard in any::<bool>(),
        ) {
            let proxies = TrustedProxies::at(["10.0.0.0/8"]).unwrap();
            let (proxies, name, said) = match standard {
                true => (proxies.by_forwarded(), "forwarded", "for=192.0.2.1"),
                false => (proxies, "x-forwarded-for", "192.0.2.1"),
            };
            let peer = Some("10.0.0.1:4000".parse().unwrap());
            let (appended, beside) = (format!("{sent}, {said}"), [sent.as_str(), said]);
            for values in [&[appended.as_str()][..], &beside] {
                let client = proxies.client(peer, &headers(name, values));
                prop_assert!(client == peer || client == Some("192.0.2.1:0".parse().unwrap()), "{:?}", client);
            }
        }
    }
}
