//! Leaving gracefully: everything is served for a while longer, and streams end one after the other.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Whether this instance is about to stop; cheap to clone.
#[derive(Debug, Clone)]
pub struct Drain {
    began: CancellationToken,
    length: Duration,
}

impl Drain {
    /// One that has not begun, and takes so long when it does.
    pub fn new(length: Duration) -> Self {
        Self {
            began: CancellationToken::new(),
            length,
        }
    }

    /// From now on the instance calls itself unready; returns when it may stop.
    pub async fn run(&self) {
        if !self.length.is_zero() {
            tracing::info!(for_ms = self.length.as_millis(), "draining");
            self.began.cancel();
            sleep(self.length).await;
        }
    }

    /// Whether others should be asked instead.
    pub fn has_begun(&self) -> bool {
        self.began.is_cancelled()
    }

    /// Returns when this stream should end: at an instant of the drain that is its own, so that
    /// not all of its readers come back together.
    pub async fn turn(&self) {
        self.began.cancelled().await;
        sleep(self.length.mul_f64(rand::random_range(0.0..0.9))).await;
    }
}
