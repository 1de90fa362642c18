//! Webhooks: how their endpoints stand, and what came of deliveries.

use metrics::{Counter, Gauge};

use super::registry::{Registry, float};
use crate::domain::{WebhookFigures, WebhookStatus};

/// Webhooks.
#[derive(Clone)]
pub struct WebhookMetrics {
    endpoints: [Gauge; WebhookStatus::ALL.len()],
    pending: Gauge,
    lag: Gauge,
    delivered: Counter,
    failed: Counter,
}

impl WebhookMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let endpoints = ("leasehold_webhooks", "Endpoints of webhooks");
        let deliveries = (
            "leasehold_webhook_deliveries_total",
            "Deliveries of this instance that were answered, or were not in time",
        );
        Self {
            endpoints: std::array::from_fn(|n| {
                registry.gauge(endpoints, &[("status", WebhookStatus::ALL[n].as_str())])
            }),
            pending: registry.gauge(
                (
                    "leasehold_webhook_pending_deliveries",
                    "Deliveries that wait for active endpoints",
                ),
                &[],
            ),
            lag: registry.gauge(
                (
                    "leasehold_webhook_lag_seconds",
                    "For how long the oldest delivery has waited for an active endpoint, or one had no owner",
                ),
                &[],
            ),
            delivered: registry.counter(deliveries, &[("outcome", "delivered")]),
            failed: registry.counter(deliveries, &[("outcome", "failed")]),
        }
    }

    /// So many deliveries were taken, and so many were not.
    pub fn settled(&self, delivered: usize, failed: usize) {
        self.delivered.increment(delivered as u64);
        self.failed.increment(failed as u64);
    }

    /// What the database says of them.
    pub fn now(&self, figures: &[WebhookFigures]) {
        for figures in figures {
            let endpoints = float(figures.endpoints.unsigned_abs());
            self.endpoints[figures.status as usize].set(endpoints);
            if figures.status == WebhookStatus::Active {
                self.pending.set(float(figures.pending.unsigned_abs()));
                self.lag.set(figures.lag_seconds);
            }
        }
    }
}
