//! Where a request comes from: its connection's other end, or whom a trusted proxy there speaks for.

use std::net::{IpAddr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, X_FORWARDED_FOR};
use ipnet::IpNet;

/// The networks of proxies that tell whom they speak for.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(pub Vec<IpNet>);

/// The address that limits and the log go by; `None` where the connection has none any more.
pub(crate) fn client_address(request: &HttpRequest) -> Option<IpAddr> {
    let peer = request.peer_addr()?.ip().to_canonical();
    match request.app_data::<TrustedProxies>() {
        Some(proxies) => Some(proxies.client(peer, request.headers())),
        None => Some(peer),
    }
}

impl TrustedProxies {
    /// The last address of `X-Forwarded-For` that is no trusted proxy's: what is before it the client can
    /// have written itself. That of the peer where it is not trusted, or says something else.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let lines = headers.get_all(X_FORWARDED_FOR);
        let lines = lines.map(|line| line.to_str().unwrap_or_default());
        let said: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
        let mut client = peer;
        for said in said.into_iter().rev() {
            let Some(address) = address(said.trim()) else {
                return peer;
            };
            client = address;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Some proxies add the port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse::<IpAddr>();
    let address = address.or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn client(peer: &str, lines: &[&str]) -> String {
        let networks = ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"];
        let networks = networks.iter().map(|network| network.parse().unwrap());
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_str(line).unwrap());
        }
        let proxies = TrustedProxies(networks.collect());
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_and_only_what_it_added() {
        for (peer, said, expected) in [
            ("192.0.2.9", &["203.0.113.1"][..], "192.0.2.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1", &["198.51.100.7, 203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1", &["198.51.100.7", "203.0.113.1"], "203.0.113.1"),
            (
                "10.0.0.1",
                &["10.9.9.9,203.0.113.1 , 10.0.0.2"],
                "203.0.113.1",
            ),
            ("10.0.0.1", &["203.0.113.1:4711"], "203.0.113.1"),
            ("fd00::1", &["2001:db8::7"], "2001:db8::7"),
            ("fd00::1", &["[2001:db8::7]"], "2001:db8::7"),
            ("fd00::1", &["[2001:db8::7]:443"], "2001:db8::7"),
            ("10.0.0.1", &["::ffff:203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", &["garbage, 203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1", &["203.0.113.1, garbage"], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.1, garbage, 10.0.0.2"], "10.0.0.1"),
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("10.0.0.1", &["unknown"], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.1,"], "10.0.0.1"),
            ("10.0.0.1", &["[203.0.113.1"], "10.0.0.1"),
        ] {
            assert_eq!(client(peer, said), expected, "{peer} {said:?}");
        }
    }
}
