//! How far behind the history and the feed are, what holds them back, and how old these figures are.

use std::time::Duration;

use metrics::Gauge;

use super::registry::{Registry, float};
use crate::domain::{Backlog, Holder};

/// The gauges of one kind of holder.
#[derive(Clone)]
struct HolderGauges {
    seconds: Gauge,
    transactions: Gauge,
    unseen: Gauge,
}

/// How far behind the history and the feed are.
#[derive(Clone)]
pub struct BacklogMetrics {
    feed_lag: Gauge,
    sweep_age: Gauge,
    holders: [HolderGauges; Holder::ALL.len()],
    figures_age: Gauge,
}

impl BacklogMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauge = |name, text| registry.gauge((name, text), &[]);
        let seconds = (
            "leasehold_oldest_transaction_age_seconds",
            "Since the oldest open transaction of this database began, where that can be seen",
        );
        let transactions = (
            "leasehold_oldest_transaction_age_transactions",
            "Transactions since the oldest one for which dead rows are kept",
        );
        let unseen = (
            "leasehold_unseen_transactions",
            "Open transactions of which this role may not see when they began",
        );
        Self {
            feed_lag: gauge(
                "leasehold_feed_lag_seconds",
                "For how long the oldest committed change has waited to be shown in the feed",
            ),
            sweep_age: gauge(
                "leasehold_sweep_age_seconds",
                "Since a sweep of any instance last found nothing more to do",
            ),
            holders: std::array::from_fn(|n| {
                let labels = [("holder", Holder::ALL[n].as_str())];
                HolderGauges {
                    seconds: registry.gauge(seconds, &labels),
                    transactions: registry.gauge(transactions, &labels),
                    unseen: registry.gauge(unseen, &labels),
                }
            }),
            figures_age: gauge(
                "leasehold_figures_age_seconds",
                "Since the figures of the database were read",
            ),
        }
    }

    /// What the database says of it.
    pub fn now(&self, backlog: &Backlog) {
        self.feed_lag.set(backlog.feed_lag_seconds);
        self.sweep_age.set(backlog.sweep_age_seconds.unwrap_or(0.0));
        for open in &backlog.open {
            let gauges = &self.holders[open.holder as usize];
            gauges.seconds.set(open.oldest_seconds);
            let transactions = open.oldest_transactions.unsigned_abs();
            gauges.transactions.set(float(transactions));
            gauges.unseen.set(float(open.unseen.unsigned_abs()));
        }
    }

    /// So long ago the figures of the database were read, these and the census.
    pub fn figures_are_of(&self, ago: Duration) {
        self.figures_age.set(ago.as_secs_f64());
    }
}
