//! Telling other instances that rooms changed, and hearing it from them.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Wakes;
use crate::store::{Hints, StoreError};
use crate::telemetry::Metrics;

/// Between two transactions with hints: what changes meanwhile is sent with the next.
const GATHER: Duration = Duration::from_millis(5);

/// After a failure. The poll of the watchers makes up for it.
const RETRY: Duration = Duration::from_secs(1);

/// Both directions.
#[derive(Clone)]
pub struct Hinting {
    hints: Hints,
    wakes: Wakes,
    metrics: Metrics,
}

impl Hinting {
    /// Nothing is sent or heard before [`Hinting::run`].
    pub fn new(hints: Hints, wakes: Wakes, metrics: Metrics) -> Self {
        Self {
            hints,
            wakes,
            metrics,
        }
    }

    /// Sends and listens until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        self.wakes.gather_hints();
        stop.run_until_cancelled(async { tokio::join!(self.send(), self.listen()) })
            .await;
        self.hints.close().await;
    }

    async fn send(&self) {
        loop {
            let rooms = self.wakes.hints().await;
            let pause = match self.hints.send(rooms).await {
                Ok(()) => {
                    self.metrics.streams.hints_sent();
                    GATHER
                }
                Err(error) => {
                    tracing::warn!(%error, "other instances were not told of changes and will see them at their next poll");
                    RETRY
                }
            };
            sleep(pause).await;
        }
    }

    async fn listen(&self) {
        loop {
            let Err(error) = self.hear().await;
            tracing::warn!(%error, "cannot hear of changes of other instances; they are seen at the next poll");
            // Instances that lost it together should not all come back together.
            sleep(RETRY.mul_f64(rand::random_range(0.5..1.0))).await;
        }
    }

    async fn hear(&self) -> Result<std::convert::Infallible, StoreError> {
        let mut listener = self.hints.listen().await?;
        // What was sent before nobody heard.
        self.wakes.missed();
        loop {
            let rooms = listener.heard().await?;
            self.metrics.streams.hint_heard();
            self.wakes.hinted(rooms.iter());
        }
    }
}
