//! What proxies say of their clients: nobody is believed who is not trusted, whatever a client sends before its proxy speaks
//! gives at most the proxy's own address, and what honest proxies write is found however they write it.
#![no_main]

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use arbitrary::Arbitrary;
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use mcp_http::server::TrustedProxies;

/// As many addresses as are believed.
const MOST: usize = 32;
/// About what a head may have.
const HEAD: usize = 120 * 1024;

#[derive(Arbitrary, Debug)]
struct Input {
    by_forwarded: bool,
    /// The values that the client sends of itself.
    sent: Vec<Sent>,
    /// Whether the client sends the last of them until no more fits into a head.
    fills_a_head: u8,
    /// Its address, as the first proxy sees it.
    client: Address,
    /// The proxies between the first one and the peer, each told by the next.
    between: Vec<(u8, Style)>,
    style: Style,
    stranger: Address,
}

#[derive(Arbitrary, Debug)]
enum Sent {
    Bytes(Vec<u8>),
    /// Elements that are in order, of addresses that may be a trusted proxy's.
    Listed(Vec<(Address, Style)>),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Address {
    V4([u8; 4], u16),
    V6([u8; 16], u16),
    /// A trusted one.
    Inside(u8),
    /// An IPv4 address in the clothes of an IPv6 one.
    Mapped([u8; 4]),
}

/// How an address is written down.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Style {
    /// In a line of its own.
    apart: bool,
    spaced: bool,
    quoted: bool,
    escaped: bool,
    /// Parameters around `for`.
    before: bool,
    behind: bool,
}

fuzz_target!(|input: Input| {
    let listed = TrustedProxies::at(["10.0.0.0/8", "fd00::/8"]).expect("these are networks");
    let (proxies, name) =
        if input.by_forwarded { (listed.by_forwarded(), "forwarded") } else { (listed, "x-forwarded-for") };

    let mut headers = HeaderMap::new();
    let mut sent: Vec<String> = Vec::new();
    let mut is_in_order = true;
    for value in &input.sent {
        let value = match value {
            Sent::Bytes(bytes) => {
                let Ok(value) = HeaderValue::from_bytes(bytes) else { return };
                is_in_order = false;
                value
            }
            Sent::Listed(addresses) => {
                let mut value = String::new();
                for (address, style) in addresses {
                    sent.push(address.of().ip().to_canonical().to_string());
                    append(&mut value, &written(address.of(), *style, input.by_forwarded), style.spaced);
                }
                is_in_order &= !addresses.is_empty();
                HeaderValue::from_str(&value).expect("what is written is a header")
            }
        };
        headers.append(name, value);
    }
    if input.fills_a_head > 250
        && let Some(last) = headers.get_all(name).iter().next_back().cloned()
    {
        is_in_order = false;
        for _ in 0..HEAD / (last.len() + name.len() + 4).max(64) {
            headers.append(name, last.clone());
        }
    }

    // Without a trusted peer no header is looked at.
    let stranger = input.stranger.of();
    if !is_trusted(stranger.ip()) {
        assert_eq!(proxies.client(Some(stranger), &headers), Some(stranger));
    }
    assert_eq!(proxies.client(None, &headers), None);

    // What the peer says without having added anything is all the client's, and is one of its words or nothing.
    let peer: SocketAddr = "10.0.0.1:4000".parse().expect("an address");
    let word = proxies.client(Some(peer), &headers).expect("who has a peer has a client");
    if is_in_order && word != peer {
        assert!(sent.contains(&word.ip().to_string()), "{word} is nobody's word");
    }
    if let Some(expected) = (!input.by_forwarded).then(|| read_by_commas(&headers, name)).flatten() {
        assert_eq!(word.ip(), expected.unwrap_or(peer.ip()), "{headers:?}");
    }

    // Now the proxies speak: the first of the client, each other one of the one before it.
    let client = input.client.of();
    if is_trusted(client.ip()) {
        return;
    }
    let chain = input.between.iter().map(|(last, style)| (Address::Inside(*last).of(), *style));
    let chain: Vec<_> = [(client, input.style)].into_iter().chain(chain).collect();
    for (address, style) in &chain {
        say(&mut headers, name, &written(*address, *style, input.by_forwarded), *style);
    }
    let found = proxies.client(Some(peer), &headers).expect("who has a peer has a client");
    let expected = SocketAddr::new(client.ip().to_canonical(), client.port());
    assert!(found == expected || found == peer, "{found} was chosen by the client: {headers:?}");
    let is_readable = if input.by_forwarded {
        is_in_order && sent.len() + chain.len() <= MOST
    } else {
        // Whatever stands to the left of who is not trusted matters no more, but for how much it is.
        let count = |value: &HeaderValue| value.to_str().ok().map(|text| text.split(',').count());
        headers.get_all(name).iter().map(count).sum::<Option<usize>>().is_some_and(|count| count <= MOST)
    };
    if is_readable {
        assert_eq!(found, expected, "{headers:?}");
    }
    if chain.len() > MOST {
        assert_eq!(found, peer, "so many are not believed");
    }
});

impl Address {
    /// Never without a port, where 0 is the absence of one.
    fn of(self) -> SocketAddr {
        match self {
            Self::V4(octets, port) => SocketAddr::new(Ipv4Addr::from(octets).into(), port),
            Self::V6(octets, port) => SocketAddr::new(Ipv6Addr::from(octets).into(), port),
            Self::Inside(last) => SocketAddr::new(Ipv4Addr::new(10, 0, 1, last).into(), 0),
            Self::Mapped(octets) => SocketAddr::new(Ipv4Addr::from(octets).to_ipv6_mapped().into(), 0),
        }
    }
}

fn is_trusted(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets()[0] == 10,
        IpAddr::V6(address) => address.octets()[0] == 0xfd,
    }
}

/// An element of the header.
fn written(address: SocketAddr, style: Style, by_forwarded: bool) -> String {
    let text = match (address.port(), address.ip()) {
        (0, IpAddr::V6(ip)) if by_forwarded || style.quoted => format!("[{ip}]"),
        (0, ip) => ip.to_string(),
        _ => address.to_string(),
    };
    if !by_forwarded {
        return text;
    }
    let mut element = String::new();
    if style.before {
        element.push_str("proto=https; ");
    }
    element.push_str(if style.spaced { "For=" } else { "for=" });
    if style.quoted || address.is_ipv6() {
        element.push('"');
        for character in text.chars() {
            if style.escaped {
                element.push('\\');
            }
            element.push(character);
        }
        element.push('"');
    } else {
        element.push_str(&text);
    }
    if style.behind {
        element.push_str(";host=\"a, for=192.0.2.9; \\\" b\"");
    }
    element
}

/// What a proxy does: it adds a line, or to the last one.
fn say(headers: &mut HeaderMap, name: &'static str, element: &str, style: Style) {
    let mut values: Vec<HeaderValue> = headers.get_all(name).iter().cloned().collect();
    let last = if style.apart { None } else { values.pop() };
    let mut bytes = last.map_or_else(Vec::new, |last| last.as_bytes().to_vec());
    if !bytes.is_empty() {
        bytes.extend_from_slice(if style.spaced { b" , " } else { b"," });
    }
    bytes.extend_from_slice(element.as_bytes());
    values.push(HeaderValue::from_bytes(&bytes).expect("a header with text behind it is one"));
    headers.remove(name);
    for value in values {
        headers.append(name, value);
    }
}

fn append(value: &mut String, element: &str, spaced: bool) {
    let comma = if spaced { ", " } else { "," };
    let _ = write!(value, "{}{element}", if value.is_empty() { "" } else { comma });
}

/// The other reading of `X-Forwarded-For`: as one text, from the right, for addresses without ports and brackets. `None` if it
/// has any of these.
fn read_by_commas(headers: &HeaderMap, name: &str) -> Option<Option<IpAddr>> {
    let lines: Vec<_> = headers.get_all(name).iter().map(HeaderValue::to_str).collect::<Result<_, _>>().ok()?;
    let mut rest: &str = &lines.join(",");
    if rest.contains('[') || rest.split(',').any(|part| part.contains('.') && part.contains(':')) {
        return None;
    }
    if lines.is_empty() || rest.bytes().filter(|byte| *byte == b',').count() >= MOST {
        return Some(None);
    }
    loop {
        let (before, last) = rest.rsplit_once(',').map_or((None, rest), |(before, last)| (Some(before), last));
        let Ok(address) = last.trim_matches([' ', '\t']).parse::<IpAddr>() else { return Some(None) };
        match before {
            Some(before) if is_trusted(address) => rest = before,
            _ => return Some(Some(address.to_canonical())),
        }
    }
}
