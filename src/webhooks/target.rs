//! Where deliveries are sent: an address that was read and may be reached as far as it says.

use std::net::IpAddr;

use http::Uri;
use url::{Host, Url};

use super::Reach;

/// Why deliveries cannot be sent there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// It is no address of a web server.
    #[error("url must be an address like https://example.com/hook, without a user or a fragment")]
    NotHttp,
    /// It leads inside.
    #[error(
        "url leads to {0}, which is not on the public internet; LEASEHOLD_WEBHOOKS_ALLOW can allow its network"
    )]
    Refused(IpAddr),
}

/// Where deliveries are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    uri: Uri,
}

impl Target {
    /// Reads it as a browser would: `http://0x7f.1` is 127.0.0.1. What a name leads to is looked at
    /// with each connection.
    ///
    /// # Errors
    /// [`InvalidTarget`]
    pub fn parse(text: &str, reach: &Reach) -> Result<Self, InvalidTarget> {
        let url = Url::parse(text).map_err(|_| InvalidTarget::NotHttp)?;
        let has_user = !url.username().is_empty() || url.password().is_some();
        if !matches!(url.scheme(), "http" | "https") || has_user || url.fragment().is_some() {
            return Err(InvalidTarget::NotHttp);
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) => None,
            None => return Err(InvalidTarget::NotHttp),
        };
        if let Some(address) = literal.filter(|address| !reach.permits(*address)) {
            return Err(InvalidTarget::Refused(address));
        }
        let uri = url.as_str().parse().map_err(|_| InvalidTarget::NotHttp)?;
        Ok(Self { uri })
    }

    pub(super) fn uri(&self) -> Uri {
        self.uri.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_leads_inside_is_seen_through_however_it_is_written() {
        let reach = Reach::default();
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://0x7f.0.0.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://0/",
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://１２７.0.0.1/",
        ] {
            let refused = Target::parse(text, &reach);
            assert!(
                matches!(refused, Err(InvalidTarget::Refused(_))),
                "{text}: {refused:?}"
            );
        }
    }

    #[test]
    fn only_addresses_of_web_servers_are_read() {
        let reach = Reach::default();
        for text in [
            "",
            "example.com",
            "/hook",
            "ftp://example.com/",
            "file:///etc/passwd",
            "http://user:password@example.com/",
            "http://user@example.com/",
            "https://example.com/#fragment",
            "http://",
            "gopher://example.com/",
        ] {
            assert_eq!(
                Target::parse(text, &reach),
                Err(InvalidTarget::NotHttp),
                "{text}"
            );
        }
        for text in ["https://example.com/hook?a=b", "http://8.8.8.8:8080/ä b"] {
            assert!(Target::parse(text, &reach).is_ok(), "{text}");
        }
    }
}
