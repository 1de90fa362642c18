//! Which endpoints this instance serves: those without an owner are taken, a task each.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::{Reach, Sender};
use crate::store::Store;
use crate::telemetry::WebhookMetrics;
use crate::wake::Wakes;

/// How deliveries are made.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Where to, at most.
    pub reach: Reach,
    /// From the begin of a request to the end of its answer; at most half of the lease.
    pub timeout: Duration,
    /// The most requests to one endpoint at a time.
    pub concurrency: usize,
    /// For how long an instance that says nothing keeps an endpoint.
    pub lease: Duration,
    /// How long a delivery may fail until its endpoint is given up.
    pub give_up: Duration,
    /// How often the feed is read where nothing wakes its reader.
    pub poll: Duration,
}

impl WebhookSettings {
    /// How often a lease is renewed, and an endpoint without an owner looked for.
    pub(super) fn beat(&self) -> Duration {
        self.lease / 6
    }
}

/// Serves endpoints; cheap to clone.
#[derive(Clone)]
pub struct Webhooks {
    pub(super) store: Store,
    pub(super) sender: Sender,
    pub(super) settings: Arc<WebhookSettings>,
    pub(super) wakes: Wakes,
    pub(super) metrics: WebhookMetrics,
    changed: Arc<Notify>,
}

impl Webhooks {
    /// With connections of its own, so that deliveries delay no request.
    ///
    /// # Errors
    /// Where nothing can be sent at all.
    pub fn new(
        store: Store,
        settings: WebhookSettings,
        wakes: Wakes,
        metrics: WebhookMetrics,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            sender: Sender::new(settings.reach.clone())?,
            settings: Arc::new(settings),
            store,
            wakes,
            metrics,
            changed: Arc::default(),
        })
    }

    /// Where deliveries may go.
    pub fn reach(&self) -> &Reach {
        &self.settings.reach
    }

    /// Looks for endpoints without an owner now: there may be a new one.
    pub fn look(&self) {
        self.changed.notify_one();
    }

    /// Serves what has no owner, until `stop`; then ends what is under way and lets others have it.
    pub async fn run(self, stop: CancellationToken) {
        // Of this run: an instance that is started again is another owner.
        let owner = format!("{:032x}", rand::random::<u128>());
        let mut serving = JoinSet::new();
        while !stop.is_cancelled() {
            let claimed = self.store.claim_webhooks(&owner, self.settings.lease);
            match claimed.await {
                Ok(terms) => {
                    for term in terms {
                        tracing::info!(webhook = %term.name, epoch = term.epoch, "serving a webhook");
                        serving.spawn(Endpoint::new(self.clone(), term).serve(stop.clone()));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "webhooks without an owner are looked for again")
                }
            }
            while serving.try_join_next().is_some() {}
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.changed.notified() => {}
                () = sleep(self.settings.beat()) => {}
            }
        }
        // Each is bounded.
        while serving.join_next().await.is_some() {}
    }
}
