//! Origins of pages, and which of them an operator names.

use std::net::IpAddr;
use std::str::FromStr;

/// What `LEASEHOLD_CORS_ORIGINS` may name.
const FORMS: &str = "LEASEHOLD_CORS_ORIGINS must be origins like https://app.example.com, without a path, \
                     https://*.example.com for every name below it, http://localhost:* for every port, \
                     null, or * for all";

/// An origin whose pages may ask, or a pattern of some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginPattern {
    /// `*`: every origin.
    Any,
    /// `null`: pages from files and in sandboxes, of which nobody knows whose they are.
    Opaque,
    /// `https://app.example.com`, `https://*.example.com` or `http://localhost:*`.
    Site {
        /// Without `://`, in small letters.
        scheme: String,
        /// With `.` in front: every name below it, and not it itself.
        host: String,
        /// `None` for every port.
        port: Option<u16>,
    },
}

impl FromStr for OriginPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "*" => return Ok(Self::Any),
            "null" => return Ok(Self::Opaque),
            _ => {}
        }
        let (text, every_port) = match text.strip_suffix(":*") {
            Some(text) => (text, true),
            None => (text.as_str(), false),
        };
        let origin = Origin::parse(text).ok_or(FORMS)?;
        if every_port && origin.authority.port.is_some() {
            return Err(FORMS);
        }
        let host = origin.authority.host;
        let below = host.strip_prefix("*.");
        let name = below.unwrap_or(host);
        let is_name = name.parse::<IpAddr>().is_ok()
            || name.split('.').all(|label| {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                !label.is_empty() && label.bytes().all(is_plain)
            });
        if !is_name || below.is_some() && name.parse::<IpAddr>().is_ok() {
            return Err(FORMS);
        }
        Ok(Self::Site {
            scheme: origin.scheme.to_owned(),
            host: below.map_or(host.to_owned(), |name| format!(".{name}")),
            port: match every_port {
                true => None,
                false => Some(origin.port()),
            },
        })
    }
}

impl OriginPattern {
    /// Whether an `Origin` header is of it.
    pub(crate) fn matches(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Opaque => origin == "null",
            Self::Site { scheme, host, port } => Origin::parse(origin).is_some_and(|origin| {
                origin.scheme.eq_ignore_ascii_case(scheme)
                    && port.is_none_or(|port| origin.port() == port)
                    && is_of(origin.authority.host, host)
            }),
        }
    }
}

/// Whether the host is this one, or below it where it begins with a dot.
fn is_of(host: &str, named: &str) -> bool {
    if !named.starts_with('.') {
        return host.eq_ignore_ascii_case(named);
    }
    let end = host.len().checked_sub(named.len());
    end.is_some_and(|end| end > 0 && host.as_bytes()[end..].eq_ignore_ascii_case(named.as_bytes()))
}

/// The scheme, host and port of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin<'a> {
    scheme: &'a str,
    authority: Authority<'a>,
}

impl<'a> Origin<'a> {
    /// `None` for what is no origin, and for `null`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let is_plain = !scheme.is_empty() && scheme.bytes().all(is_scheme);
        let authority = Authority::parse(authority)?;
        is_plain.then_some(Self { scheme, authority })
    }

    /// That of the scheme where none is named; 0 for a scheme that has none.
    fn port(&self) -> u16 {
        self.authority.port.unwrap_or(match self.scheme {
            scheme if scheme.eq_ignore_ascii_case("https") => 443,
            scheme if scheme.eq_ignore_ascii_case("http") => 80,
            _ => 0,
        })
    }

    /// Whether its pages are served at this address. A proxy may have taken the encryption off, so the
    /// schemes need not be the same; without a port the address is at that of the page's scheme.
    pub(crate) fn is_at(&self, address: Authority<'_>) -> bool {
        let is_web = ["http", "https"]
            .iter()
            .any(|web| self.scheme.eq_ignore_ascii_case(web));
        let is_port = match address.port {
            Some(port) => self.port() == port,
            None => [80, 443].contains(&self.port()),
        };
        is_web && is_port && self.authority.host.eq_ignore_ascii_case(address.host)
    }
}

/// A host and perhaps a port, as after `://` and in `Host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Authority<'a> {
    /// An IPv6 address without its brackets.
    host: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                (
                    host,
                    rest.strip_prefix(':').or(rest.is_empty().then_some("")),
                )
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, Some("")),
            },
        };
        let port = match port? {
            "" => None,
            port => Some(port.parse().ok()?),
        };
        let is_host = !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"/\\@?#[]".contains(&byte));
        is_host.then_some(Self { host, port })
    }

    /// Whether it names the machine that asks, in whatever way: no name that somebody else can give away.
    pub(crate) fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => is_of(self.host, "localhost") || is_of(self.host, ".localhost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_what_it_names_and_no_more() {
        for (pattern, matches, others) in [
            (
                "https://app.example.com",
                &["https://app.example.com", "https://APP.example.com:443"][..],
                &[
                    "http://app.example.com",
                    "https://app.example.com:8443",
                    "https://example.com",
                    "https://app.example.com.evil.net",
                    "https://evilapp.example.com",
                    "null",
                    "",
                ][..],
            ),
            (
                "https://*.example.com",
                &["https://a.example.com", "https://a.b.example.com"],
                &[
                    "https://example.com",
                    "https://evilexample.com",
                    "https://.example.com.evil.net",
                    "https://a.example.com:8443",
                    "http://a.example.com",
                    "https://a.example.com@evil.net",
                    "https://evil.net/.example.com",
                    "https://evil.net#.example.com",
                    "https://.example.com",
                ],
            ),
            (
                "http://localhost:*",
                &[
                    "http://localhost",
                    "http://localhost:5173",
                    "http://LocalHost:80",
                ],
                &[
                    "https://localhost:5173",
                    "http://localhost.evil.net:80",
                    "http://localhost:99999",
                    "http://127.0.0.1:5173",
                ],
            ),
            (
                "http://[::1]:8080",
                &["http://[::1]:8080"],
                &["http://[::1]", "http://[::2]:8080"],
            ),
            (
                "capacitor://localhost",
                &["capacitor://localhost"],
                &["http://localhost"],
            ),
            (
                "https://*.example.com:*",
                &["https://a.example.com:1"],
                &["https://example.com:1"],
            ),
            ("null", &["null"], &["https://null", ""]),
            ("*", &["null", "https://a.example"], &[]),
        ] {
            let read: OriginPattern = pattern.parse().unwrap();
            for origin in matches {
                assert!(read.matches(origin), "{pattern} {origin}");
            }
            for origin in others {
                assert!(!read.matches(origin), "{pattern} {origin}");
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for wrong in [
            "",
            "example.com",
            "*.example.com",
            "https://",
            "https://*",
            "https://a*.example.com",
            "https://*.*.example.com",
            "https://a.*.com",
            "https://*.",
            "https://example.com/",
            "https://example.com/path",
            "https://user@example.com",
            "https://a b.example",
            "http://localhost:5173:*",
            "http://localhost:x",
            "*://localhost",
            "https://*.10.0.0.1",
            "https://bücher.example",
            "https:/example.com",
            "https://[::1",
            "**",
        ] {
            let refused = wrong.parse::<OriginPattern>();
            assert!(refused.is_err(), "{wrong:?} {refused:?}");
        }
    }

    #[test]
    fn a_page_is_at_home_where_its_host_and_port_are_those_that_it_asks() {
        for (origin, host, is_home) in [
            ("http://127.0.0.1:3000", "127.0.0.1:3000", true),
            ("http://LOCALHOST:3000", "localhost:3000", true),
            ("http://[::1]:3000", "[::1]:3000", true),
            ("https://rooms.example", "rooms.example", true),
            ("http://rooms.example", "rooms.example:80", true),
            ("https://rooms.example", "rooms.example:443", true),
            ("https://rooms.example:8443", "rooms.example:8443", true),
            ("http://localhost:5173", "localhost:3000", false),
            ("http://127.0.0.1:3000", "localhost:3000", false),
            ("https://rooms.example:8443", "rooms.example", false),
            ("https://rooms.example", "rooms.example:80", false),
            ("https://evil.example", "rooms.example", false),
            ("capacitor://localhost", "localhost", false),
            ("http://[::1]:3000", "[::2]:3000", false),
        ] {
            let at = Authority::parse(host).unwrap();
            assert_eq!(
                Origin::parse(origin).unwrap().is_at(at),
                is_home,
                "{origin} {host}"
            );
        }
        assert_eq!(Origin::parse("null"), None);
    }

    #[test]
    fn loopback_names_are_those_that_nobody_else_can_have() {
        let is_loopback =
            |host: &str| Authority::parse(host).is_some_and(|host| host.is_loopback());
        for host in [
            "localhost",
            "LOCALHOST:3000",
            "app.localhost",
            "127.0.0.1:3000",
            "127.255.0.9",
            "[::1]",
            "[::1]:3000",
            "[::ffff:127.0.0.1]:80",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "notlocalhost",
            ".localhost",
            "10.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::2]",
            "127.0.0.1.example.com",
            "localhost:3000:1",
            "[::1]x",
            "localhost/",
            "a@localhost",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
