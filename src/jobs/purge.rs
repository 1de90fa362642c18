//! The purge: forgets generations that closed long ago. Off unless somebody says how long to keep.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Job;
use crate::store::{Store, StoreError};

/// Events that one transaction takes on, more or less: generations go whole.
const BATCH: i32 = 10_000;

/// What one run of the purge did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// False where another instance was purging.
    pub ran: bool,
    pub generations: i64,
    pub events: i64,
    pub blocks: i64,
}

/// The job.
#[derive(Debug, Clone)]
pub struct Purge {
    store: Store,
    older_than: Duration,
}

impl Purge {
    /// Keeps what closed less than `older_than` ago, by the database's clock.
    pub fn new(store: Store, older_than: Duration) -> Self {
        Self { store, older_than }
    }

    /// Batch after batch, until nothing more is due, another purge is at work or `stop` is asked for.
    ///
    /// # Errors
    /// Where a batch failed; the earlier ones stand.
    pub async fn run_once(&self, stop: &CancellationToken) -> Result<Purged, StoreError> {
        let mut purged = Purged::default();
        while !stop.is_cancelled() {
            let batch = self.store.purge(self.older_than, BATCH).await?;
            purged.ran |= batch.ran;
            purged.generations += i64::from(batch.generations_purged);
            purged.events += i64::from(batch.events_purged);
            purged.blocks += i64::from(batch.blocks_purged);
            if !batch.ran || batch.finished {
                break;
            }
        }
        Ok(purged)
    }
}

impl Job for Purge {
    const NAME: &'static str = "purge";

    async fn step(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        let purged = self.run_once(stop).await?;
        if purged.generations > 0 {
            tracing::info!(
                generations = purged.generations,
                events = purged.events,
                blocks = purged.blocks,
                "purged"
            );
        }
        Ok(())
    }
}
