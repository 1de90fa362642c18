//! Settings of forgetting: how long the history of a session is kept after its end, and how often the old is purged.

use std::time::Duration;

use clap::Args;

use super::{AGES, duration};
use crate::domain::Retention;

/// The schedule of the purge.
#[derive(Debug, Clone, Args)]
pub struct PurgeArgs {
    /// How long the history of a session is kept after its end, like 30d or 12h; for ever if left out
    #[arg(long = "purge-older-than", env = "LEASEHOLD_PURGE_OLDER_THAN",
          value_parser = duration("LEASEHOLD_PURGE_OLDER_THAN", AGES))]
    pub older_than: Option<Duration>,

    /// How often older history is looked for, like 1h
    #[arg(long = "purge-interval", env = "LEASEHOLD_PURGE_INTERVAL", default_value = "1h",
          value_parser = duration("LEASEHOLD_PURGE_INTERVAL", AGES))]
    pub interval: Duration,

    /// How much longer history is kept where a webhook has yet to deliver it, like 7d; 0 for no longer
    #[arg(long = "purge-webhooks-wait", env = "LEASEHOLD_PURGE_WEBHOOKS_WAIT", default_value = "7d",
          value_parser = duration("LEASEHOLD_PURGE_WEBHOOKS_WAIT", Duration::ZERO..=*AGES.end()))]
    pub webhooks_wait: Duration,
}

impl PurgeArgs {
    /// For how long history is kept; `None` is for ever.
    pub fn kept(&self) -> Option<Retention> {
        self.older_than.map(|older_than| Retention {
            older_than,
            webhooks_wait: self.webhooks_wait,
        })
    }
}
