//! The sweep: expires leases and deletes empty rooms. Reads never depend on it.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Job;
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

/// Expired members that one transaction takes on.
const BATCH: i32 = 1000;

/// What one run of the sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// False where another instance was sweeping.
    pub ran: bool,
    /// Sessions that ended.
    pub members_expired: i64,
    /// Rooms that this left empty.
    pub rooms_closed: i64,
}

/// The scheduled job.
#[derive(Debug, Clone)]
pub struct Sweep {
    store: Store,
    metrics: Metrics,
}

impl Sweep {
    /// Counts what it does in `metrics`.
    pub fn new(store: Store, metrics: Metrics) -> Self {
        Self { store, metrics }
    }

    /// Batch after batch, until nothing more is due, another sweep is at work or `stop` is asked for.
    ///
    /// # Errors
    /// Where a batch failed; the earlier ones stand.
    pub async fn run_once(&self, stop: &CancellationToken) -> Result<Swept, StoreError> {
        let started = Instant::now();
        let mut swept = Swept::default();
        while !stop.is_cancelled() {
            let batch = self.store.sweep(BATCH).await?;
            swept.ran |= batch.ran;
            swept.members_expired += i64::from(batch.members_expired);
            swept.rooms_closed += i64::from(batch.rooms_closed);
            // A batch that found only rooms that others hold would find them again at once.
            if !batch.ran || batch.finished || batch.members_expired == 0 {
                break;
            }
        }
        if swept.ran {
            self.metrics.presence.sweep_took(started.elapsed());
        }
        Ok(swept)
    }
}

impl Job for Sweep {
    const NAME: &'static str = "sweep";

    async fn step(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        let swept = self.run_once(stop).await?;
        if swept.members_expired > 0 {
            tracing::info!(
                members_expired = swept.members_expired,
                rooms_closed = swept.rooms_closed,
                "swept"
            );
        }
        Ok(())
    }
}
