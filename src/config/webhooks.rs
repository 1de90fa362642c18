//! Webhooks: which there are from the start, where they may lead, and how patient the service is with them.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;

use super::value::{duration, millis, network, whole};
use super::{AGES, InvalidSetting, ServeArgs};
use crate::webhooks::{Reach, WebhookSettings};

/// How changes are delivered to others.
#[derive(Debug, Clone, Args)]
pub struct WebhookArgs {
    /// A file with webhooks that are made, or changed, at the start: {"webhooks": [{"name", "url", "secret", …}]}
    #[arg(long, env = "LEASEHOLD_WEBHOOKS_FILE")]
    pub webhooks_file: Option<PathBuf>,

    /// Where webhooks may lead beside the public internet.
    #[command(flatten)]
    pub reach: ReachArgs,

    /// How long an endpoint has for its whole answer
    #[arg(long = "webhooks-timeout-ms", env = "LEASEHOLD_WEBHOOKS_TIMEOUT_MS", default_value = "15s",
          value_parser = millis("LEASEHOLD_WEBHOOKS_TIMEOUT_MS", 100..=300_000))]
    pub webhooks_timeout: Duration,

    /// The most deliveries to one endpoint at a time, each of another room
    #[arg(long, env = "LEASEHOLD_WEBHOOKS_CONCURRENCY", default_value = "8",
          value_parser = whole::<usize>("LEASEHOLD_WEBHOOKS_CONCURRENCY", 1..=256))]
    pub webhooks_concurrency: usize,

    /// How long an instance that says nothing keeps the endpoints that it serves; at least twice the time-out
    #[arg(long = "webhooks-lease-ms", env = "LEASEHOLD_WEBHOOKS_LEASE_MS", default_value = "30s",
          value_parser = millis("LEASEHOLD_WEBHOOKS_LEASE_MS", 1_000..=600_000))]
    pub webhooks_lease: Duration,

    /// How long a delivery may fail until its endpoint is given up
    #[arg(long, env = "LEASEHOLD_WEBHOOKS_GIVE_UP", default_value = "3d",
          value_parser = duration("LEASEHOLD_WEBHOOKS_GIVE_UP", AGES))]
    pub webhooks_give_up: Duration,
}

/// Where webhooks may lead.
#[derive(Debug, Clone, Args)]
pub struct ReachArgs {
    /// Networks that webhooks may lead to beside the public internet, like 10.1.0.0/16, separated by commas
    #[arg(long, env = "LEASEHOLD_WEBHOOKS_ALLOW", value_delimiter = ',',
          value_parser = network("LEASEHOLD_WEBHOOKS_ALLOW", "10.1.0.0/16, 192.168.1.7 or fd00::/8"))]
    pub webhooks_allow: Vec<Option<IpNet>>,
}

impl ReachArgs {
    /// As it is asked for each address.
    pub fn reach(&self) -> Reach {
        Reach::new(self.webhooks_allow.iter().flatten().copied().collect())
    }
}

impl ServeArgs {
    /// How changes are delivered.
    ///
    /// # Errors
    /// [`InvalidSetting`]
    pub fn webhook_settings(&self) -> Result<WebhookSettings, InvalidSetting> {
        let webhooks = &self.webhooks;
        if webhooks.webhooks_lease < 2 * webhooks.webhooks_timeout {
            return Err(InvalidSetting::new(
                "LEASEHOLD_WEBHOOKS_LEASE_MS",
                webhooks.webhooks_lease,
                "at least twice LEASEHOLD_WEBHOOKS_TIMEOUT_MS",
            ));
        }
        Ok(WebhookSettings {
            reach: webhooks.reach.reach(),
            timeout: webhooks.webhooks_timeout,
            concurrency: webhooks.webhooks_concurrency,
            lease: webhooks.webhooks_lease,
            give_up: webhooks.webhooks_give_up,
            poll: self.live.poll,
        })
    }
}
