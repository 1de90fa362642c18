//! Settings of the edge: which pages may ask, how often, and how slowly.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;

use super::value::{millis, network, whole};
use crate::http::OriginPattern;
use crate::http::auth::RateSettings;

/// How requests come in.
#[derive(Debug, Clone, Args)]
pub struct EdgeArgs {
    /// Origins whose pages may use the service beside its own, separated by commas, like `https://app.example.com`, `https://*.example.com` or `http://localhost:*`; * for all
    #[arg(long, env = "LEASEHOLD_CORS_ORIGINS", value_delimiter = ',', value_parser = origin)]
    pub cors_origins: Vec<Option<OriginPattern>>,

    /// Addresses and networks of proxies whose X-Forwarded-For tells the client's address, like 10.0.0.0/8, separated by commas
    #[arg(long, env = "LEASEHOLD_TRUSTED_PROXIES", value_delimiter = ',',
          value_parser = network("LEASEHOLD_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.1 or fd00::/8"))]
    pub trusted_proxies: Vec<Option<IpNet>>,

    /// Requests a second that one client may make; unlimited if left out
    #[arg(long, env = "LEASEHOLD_RATE_LIMIT",
          value_parser = whole::<u32>("LEASEHOLD_RATE_LIMIT", 1..=1_000_000))]
    pub rate_limit: Option<u32>,

    /// Requests that one client may make at once after a pause; twice the rate if left out
    #[arg(long, env = "LEASEHOLD_RATE_BURST",
          value_parser = whole::<u32>("LEASEHOLD_RATE_BURST", 1..=1_000_000))]
    pub rate_burst: Option<u32>,

    /// How long to go on serving after SIGTERM, unready and ending streams one by one; 0 stops at once
    #[arg(long, env = "LEASEHOLD_DRAIN", default_value = "0s",
          value_parser = millis("LEASEHOLD_DRAIN", 0..=600_000))]
    pub drain: Duration,

    /// How long a connection without a request is kept open; longer than the pauses between heartbeats
    #[arg(long, env = "LEASEHOLD_IDLE_TIMEOUT", default_value = "75s",
          value_parser = millis("LEASEHOLD_IDLE_TIMEOUT", 1_000..=3_600_000))]
    pub idle_timeout: Duration,

    /// How long a client may take nothing of what it is sent, or be silent on the network, before it is cut off
    #[arg(long, env = "LEASEHOLD_STALL_TIMEOUT", default_value = "30s",
          value_parser = millis("LEASEHOLD_STALL_TIMEOUT", 100..=600_000))]
    pub stall_timeout: Duration,

    /// The longest that a request's head, and then its body, may take to arrive
    #[arg(long = "request-timeout-ms", env = "LEASEHOLD_REQUEST_TIMEOUT_MS", default_value = "5s",
          value_parser = millis("LEASEHOLD_REQUEST_TIMEOUT_MS", 100..=600_000))]
    pub request_timeout: Duration,
}

/// `None` for what an empty variable leaves.
fn origin(text: &str) -> Result<Option<OriginPattern>, &'static str> {
    match text.trim() {
        "" => Ok(None),
        origin => origin.parse().map(Some),
    }
}

impl EdgeArgs {
    /// `None` where there is no limit.
    pub fn rate(&self) -> Option<RateSettings> {
        let per_second = NonZeroU32::new(self.rate_limit?)?;
        let burst = self
            .rate_burst
            .and_then(NonZeroU32::new)
            .unwrap_or(per_second.saturating_mul(NonZeroU32::MIN.saturating_add(1)));
        Some(RateSettings { per_second, burst })
    }

    /// Those that are named; none where pages elsewhere may not ask.
    pub fn origins(&self) -> Vec<OriginPattern> {
        self.cors_origins.iter().flatten().cloned().collect()
    }
}
