//! What `leasehold healthcheck` asks, and for how long.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;

use super::serve::bind;
use super::value::millis;
use crate::http::HealthQuestion;

/// What to ask the service on this machine that the same settings describe.
#[derive(Debug, Clone, Args)]
pub struct HealthcheckArgs {
    /// Address and port that the service listens on
    #[arg(long, env = "LEASEHOLD_BIND", default_value = "127.0.0.1:3000", value_parser = listening)]
    bind: SocketAddr,

    /// Ask only whether the process lives (/healthz), not whether it is ready (/readyz)
    #[arg(long)]
    live: bool,

    /// The longest that the answer may take
    #[arg(long = "timeout", env = "LEASEHOLD_HEALTHCHECK_TIMEOUT", default_value = "5s",
          value_parser = millis("LEASEHOLD_HEALTHCHECK_TIMEOUT", 100..=60_000))]
    timeout: Duration,
}

impl HealthcheckArgs {
    /// Of the service on this machine.
    pub fn question(&self) -> HealthQuestion {
        HealthQuestion {
            address: SocketAddr::new(reachable(self.bind.ip()), self.bind.port()),
            is_of_life: self.live,
            timeout: self.timeout,
        }
    }
}

/// Whoever listens on every address is asked on the one of this machine.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Port 0 says nothing about where a service listens that has started already.
fn listening(text: &str) -> Result<SocketAddr, String> {
    let address = bind(text)?;
    match address.port() {
        0 => {
            Err("port 0 is a port that the service chooses; name the one that its log says".into())
        }
        _ => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_every_address_is_asked_on_this_machine() {
        for (bind, asked) in [
            ("0.0.0.0:3000", "127.0.0.1:3000"),
            ("[::]:3001", "[::1]:3001"),
            ("10.1.2.3:80", "10.1.2.3:80"),
        ] {
            let bind: SocketAddr = bind.parse().unwrap();
            let address = SocketAddr::new(reachable(bind.ip()), bind.port());
            assert_eq!(address, asked.parse().unwrap());
        }
    }
}
