//! Keeps the metrics small where nobody reads them.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Job;
use crate::store::StoreError;
use crate::telemetry::Metrics;

/// The scheduled job.
#[derive(Debug, Clone)]
pub struct Tidy(pub Metrics);

impl Tidy {
    /// Some megabytes are gathered in it by tens of thousands of requests a second.
    pub const INTERVAL: Duration = Duration::from_secs(5);
}

impl Job for Tidy {
    const NAME: &'static str = "tidy";

    async fn step(&self, _: &CancellationToken) -> Result<(), StoreError> {
        self.0.tidy();
        Ok(())
    }
}
