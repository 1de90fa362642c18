//! Who is counted as one client.

use std::net::{IpAddr, Ipv6Addr};

use crate::domain::UserId;

/// Whoever shares what one client may have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Client {
    /// The holders of server keys.
    Server,
    /// The holders of tokens for this subject.
    Subject(UserId),
    /// Those without a credential at this address, as far as it is known.
    Address(Option<IpAddr>),
}

impl Client {
    /// Whoever is at this address. One of IPv6 stands for its /64, as each host has all of them.
    pub fn at(address: Option<IpAddr>) -> Self {
        Self::Address(address.map(|address| match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address @ IpAddr::V4(_) => address,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_one_host_has_are_one_client() {
        let at = |address: &str| Client::at(Some(address.parse().unwrap()));
        assert_eq!(at("2001:db8:1:2::1"), at("2001:db8:1:2:ffff::9"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }
}
