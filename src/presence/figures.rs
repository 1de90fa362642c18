//! The figures of the database, for the metrics: read when somebody asks, for all who ask meanwhile,
//! and not more often than every few seconds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Presence;
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

/// This long after one scan of the members ends an instance begins the next at the earliest.
const EVERY: Duration = Duration::from_secs(5);

/// Who asks is shown older figures rather than late ones.
const PATIENCE: Duration = Duration::from_secs(1);

/// When the figures were read.
pub(super) struct Figures {
    /// Of whoever reads them; when the last attempt ended.
    turn: Arc<tokio::sync::Mutex<Option<Instant>>>,
    /// When the last attempt that succeeded ended, or this instance started.
    read: Mutex<Instant>,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            turn: Arc::default(),
            read: Mutex::new(Instant::now()),
        }
    }
}

impl Figures {
    fn read(&self) -> std::sync::MutexGuard<'_, Instant> {
        // Nothing that can panic is done while it is locked.
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn show(&self, store: &Store, metrics: &Metrics) -> Result<(), StoreError> {
        // What scans nothing first: it is shown also where the scan fails.
        metrics.backlog.now(&store.backlog().await?);
        metrics.webhooks.now(&store.webhook_figures().await?);
        metrics.presence.census(store.census().await?);
        *self.read() = Instant::now();
        Ok(())
    }
}

impl Presence {
    /// Shows the figures of the database, or within a second older ones, and how old they are.
    pub async fn show_figures(&self, metrics: &Metrics) {
        let showing = async {
            let mut tried = Arc::clone(&self.figures.turn).lock_owned().await;
            if tried.is_some_and(|ended| ended.elapsed() < EVERY) {
                return;
            }
            let (figures, store) = (Arc::clone(&self.figures), self.store.clone());
            let metrics = metrics.clone();
            // A task of its own, so that there is one at a time also where nobody waits any more.
            let reading = self.runtime.spawn(async move {
                let began = Instant::now();
                let outcome = figures.show(&store, &metrics).await;
                *tried = Some(Instant::now());
                match outcome {
                    Err(error) => {
                        tracing::warn!(%error, "metrics show older figures of the database")
                    }
                    Ok(()) if began.elapsed() > PATIENCE => tracing::warn!(
                        took_ms = began.elapsed().as_millis(),
                        "the members take long to count; metrics show older figures meanwhile"
                    ),
                    Ok(()) => {}
                }
            });
            // It fails where this instance stops.
            let _ = reading.await;
        };
        // Where it takes longer, the age says so.
        let _ = timeout(PATIENCE, showing).await;
        let age = self.figures.read().elapsed();
        metrics.backlog.figures_are_of(age);
    }
}
