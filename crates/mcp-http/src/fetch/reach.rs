//! Who can be reached at an address of the network: everybody, some, or only this machine.
//!
//! Why here: a name leads anywhere its owner likes, so it is the address behind it that is judged.
//! Invariants: pure; what is in no list counts as reserved; an address that stands for another is judged as that one.
//! Spec: 2026-07-28 basic/authorization, "Communication Security"; RFC 6890, RFC 4291 2.4, RFC 6052 2.1

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the one machine in the world that has it.
    Public,
    /// To this machine.
    Loopback,
    /// To a machine of the network around, such as 10.0.0.1.
    Private,
    /// To a neighbour on the wire, among them the services by which clouds give away their secrets.
    LinkLocal,
    /// To many, to nobody, or to what an address of another kind says.
    Reserved,
}

impl Reach {
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_four(address),
            IpAddr::V6(address) => Self::of_six(address),
        }
    }

    const fn of_four(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Self::Loopback,
            // The second is what carriers give to their customers.
            [10, ..] | [100, 64..=127, ..] | [172, 16..=31, ..] | [192, 168, ..] => Self::Private,
            [169, 254, ..] => Self::LinkLocal,
            // This network, protocols, examples, relays to IPv6, benchmarks, groups, and what is not given out.
            [0 | 224..=255, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 18..=19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _] => Self::Reserved,
            _ => Self::Public,
        }
    }

    fn of_six(address: Ipv6Addr) -> Self {
        let inner = |high: u16, low: u16| {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Self::of_four(Ipv4Addr::new(a, b, c, d))
        };
        match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => Self::Loopback,
            // Addresses of IPv4: as sockets write them, and as translators do.
            [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
            [0xfc00..=0xfdff, ..] => Self::Private,
            [0xfe80..=0xfebf, ..] => Self::LinkLocal,
            // Protocols and tunnels, examples.
            [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002 | 0x3fff, ..] => Self::Reserved,
            [0x2000..=0x3fff, ..] => Self::Public,
            _ => Self::Reserved,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_lead_where_their_registries_say() {
        use Reach::{LinkLocal, Loopback, Private, Public, Reserved};
        for (expected, addresses) in [
            (
                Public,
                &["1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.0.1", "100.128.0.1", "172.15.0.1", "172.32.0.1"][..],
            ),
            (Public, &["192.0.1.1", "192.167.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255"]),
            (
                Public,
                &["2606:4700::1111", "2a00::1", "2001:200::1", "2001:db9::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"],
            ),
            (Loopback, &["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1"]),
            (Private, &["10.0.0.1", "100.64.0.1", "100.127.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1"]),
            (Private, &["fc00::1", "fd12:3456::1", "::ffff:10.0.0.1", "64:ff9b::c0a8:101"]),
            (LinkLocal, &["169.254.169.254", "fe80::1", "febf::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]),
            (
                Reserved,
                &["0.0.0.0", "0.1.2.3", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255"],
            ),
            (Reserved, &["198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"]),
            (Reserved, &["::", "::2", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::1", "100::1", "2001::1"]),
            (Reserved, &["2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "3fff::1", "4000::1", "fec0::1", "ff02::1"]),
        ] {
            for address in addresses {
                assert_eq!(Reach::of(address.parse().unwrap()), expected, "{address}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_spelling_of_an_address_makes_it_public(bits in any::<u32>()) {
            let four = Ipv4Addr::from(bits);
            let translated = Ipv6Addr::from(0x0064_ff9b_u128 << 96 | u128::from(bits));
            for six in [four.to_ipv6_mapped(), translated] {
                prop_assert_eq!(Reach::of(six.into()), Reach::of(four.into()));
            }
            let is_ours = four.is_loopback() || four.is_private() || four.is_link_local() || four.is_multicast();
            if is_ours || four.is_unspecified() || four.is_broadcast() || four.is_documentation() {
                prop_assert_ne!(Reach::of(four.into()), Reach::Public);
            }
        }
    }
}
