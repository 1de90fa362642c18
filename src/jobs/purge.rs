//! The purge: forgets sessions that ended long ago. Off unless somebody says how long to keep.

use tokio_util::sync::CancellationToken;

use super::Job;
use crate::domain::Retention;
use crate::store::{Store, StoreError};

/// Events that one transaction looks at.
const BATCH: i32 = 10_000;

/// What one run of the purge did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// False where another instance was purging.
    pub ran: bool,
    /// Lifetimes that went.
    pub generations: i64,
    /// Their events.
    pub events: i64,
    /// Blocks that had ended.
    pub blocks: i64,
}

/// The job.
#[derive(Debug, Clone)]
pub struct Purge {
    store: Store,
    kept: Retention,
}

impl Purge {
    /// Keeps for so long, by the database's clock.
    pub fn new(store: Store, kept: Retention) -> Self {
        Self { store, kept }
    }

    /// Batch after batch, until nothing more is due, another purge is at work or `stop` is asked for.
    ///
    /// # Errors
    /// Where a batch failed; the earlier ones stand.
    pub async fn run_once(&self, stop: &CancellationToken) -> Result<Purged, StoreError> {
        let mut purged = Purged::default();
        while !stop.is_cancelled() {
            let batch = self.store.purge(self.kept, BATCH).await?;
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
        if purged.events > 0 {
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
