//! Which addresses may be reached: those of the public internet, and what is allowed beside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// What is not on the public internet, by IANA's registries of special addresses.
const CLOSED_V4: [(Ipv4Addr, u8); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved and broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Within the one block of IPv6 from which public addresses are given out.
const CLOSED_V6: [(Ipv6Addr, u8); 3] = [
    // For protocols, Teredo among them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Addresses given out to the public.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Which addresses may be reached; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    allowed: Arc<[IpNet]>,
}

impl Reach {
    /// The public internet and these networks.
    pub fn new(allowed: Vec<IpNet>) -> Self {
        Self {
            allowed: allowed.into(),
        }
    }

    /// Whether this address may be connected to.
    pub fn permits(&self, address: IpAddr) -> bool {
        let real = undressed(address);
        let is_allowed = |address| self.allowed.iter().any(|net| net.contains(&address));
        is_allowed(address) || is_allowed(real) || is_public(real)
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !CLOSED_V4
            .iter()
            .any(|&(net, length)| holds_v4(net, length, address)),
        IpAddr::V6(address) => {
            let (public, length) = PUBLIC_V6;
            holds_v6(public, length, address)
                && !CLOSED_V6
                    .iter()
                    .any(|&(net, length)| holds_v6(net, length, address))
        }
    }
}

fn holds_v4(net: Ipv4Addr, length: u8, address: Ipv4Addr) -> bool {
    Ipv4Net::new(net, length).is_ok_and(|net| net.contains(&address))
}

fn holds_v6(net: Ipv6Addr, length: u8, address: Ipv6Addr) -> bool {
    Ipv6Net::new(net, length).is_ok_and(|net| net.contains(&address))
}

/// The IPv4 address that an IPv6 one leads to, where it does: it is that which must be permitted.
fn undressed(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match v6.segments() {
        // Mapped, compatible, translated (RFC 2765) and through a translator (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => of(high, low),
        // 6to4.
        [0x2002, high, low, ..] => of(high, low),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(reach: &Reach, address: &str) -> bool {
        reach.permits(address.parse().unwrap())
    }

    #[test]
    fn what_is_not_public_is_refused_whatever_it_is_written_as() {
        let reach = Reach::default();
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.254",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "100::1",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "5f00::1",
            "64:ff9b:1::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "2002:c0a8:101::1",
        ] {
            assert!(!permits(&reach, address), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(permits(&reach, address), "{address}");
        }
    }

    #[test]
    fn what_is_allowed_is_so_in_every_dress_and_nothing_beside_it() {
        let reach = Reach::new(vec![
            "10.1.0.0/16".parse().unwrap(),
            "fd00:1::/32".parse().unwrap(),
        ]);
        for address in [
            "10.1.2.3",
            "::ffff:10.1.2.3",
            "64:ff9b::a01:203",
            "fd00:1::7",
        ] {
            assert!(permits(&reach, address), "{address}");
        }
        for address in ["10.2.0.1", "::ffff:10.2.0.1", "127.0.0.1", "fd00:2::7"] {
            assert!(!permits(&reach, address), "{address}");
        }
    }
}
