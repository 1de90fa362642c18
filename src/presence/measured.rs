//! What the metrics show of the queues and what is below them.

use super::Presence;
use crate::telemetry::Metrics;

impl Presence {
    /// Shows how long the queues are now, who waits for held rows, how the connections are, and
    /// what this instance has recorded so far; asks nobody.
    pub fn measure(&self, metrics: &Metrics) {
        self.joins.measure();
        self.listed_joins.measure();
        self.heartbeats.measure();
        self.resizes.measure();
        self.leaves.measure();
        self.disconnects.measure();
        self.lists.measure();
        self.departures.measure();
        self.holds.measure(&metrics.held);
        self.store.measure(&metrics.connections);
        let expired = self.store.expired_sessions();
        metrics.presence.members_expired(expired);
    }
}
