//! How requests are gathered into calls of the database.

use std::time::Duration;

use clap::Args;

use super::value::whole;
use crate::coalesce;

/// How requests are gathered.
#[derive(Debug, Clone, Args)]
pub struct CoalesceArgs {
    /// The most batches of one kind under way at once: beyond the first where that one is slow
    #[arg(long, env = "LEASEHOLD_COALESCE_LANES", default_value = "4",
          value_parser = whole::<usize>("LEASEHOLD_COALESCE_LANES", 1..=256))]
    pub coalesce_lanes: usize,

    /// The most requests that one call of the database answers; 1 switches coalescing off
    #[arg(long, env = "LEASEHOLD_COALESCE_MAX_BATCH", default_value = "500",
          value_parser = whole::<usize>("LEASEHOLD_COALESCE_MAX_BATCH", 1..=10_000))]
    pub coalesce_max_batch: usize,

    /// Requests of one kind that may wait before the next is refused with 503
    #[arg(long, env = "LEASEHOLD_COALESCE_QUEUE", default_value = "10000",
          value_parser = whole::<usize>("LEASEHOLD_COALESCE_QUEUE", 1..=1_000_000))]
    pub coalesce_queue: usize,
}

impl CoalesceArgs {
    /// With the longest that a caller waits.
    pub fn settings(&self, timeout: Duration) -> coalesce::Settings {
        coalesce::Settings {
            lanes: self.coalesce_lanes,
            max_batch: self.coalesce_max_batch,
            queue: self.coalesce_queue,
            timeout,
        }
    }
}
