//! Settings of forgetting: how long the history of a session is kept after its end, and how often the old is purged.

use std::time::Duration;

use clap::Args;

use super::{AGES, duration};

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
}
