//! Every metric of one instance.

use metrics_exporter_prometheus::PrometheusHandle;

use super::queues::{BATCH_SIZE, QueueMetrics};
use super::registry::Registry;
use super::{
    BacklogMetrics, ConnectionMetrics, HeldMetrics, PresenceMetrics, RequestMetrics, StreamMetrics,
    WebhookMetrics,
};

/// Every metric of one instance; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    /// Who is there, by the tables and by what requests met.
    pub presence: PresenceMetrics,
    /// How far behind the history and the feed are.
    pub backlog: BacklogMetrics,
    /// What was asked over HTTP, and what was refused over whatever.
    pub requests: RequestMetrics,
    /// Requests that wait for rows which others hold.
    pub held: HeldMetrics,
    /// The connections to Postgres and what went wrong on them.
    pub connections: ConnectionMetrics,
    /// Streams, and hints between instances.
    pub streams: StreamMetrics,
    /// Webhooks.
    pub webhooks: WebhookMetrics,
    registry: Registry,
    handle: PrometheusHandle,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// A registry of its own: two instances in one process do not share figures.
    ///
    /// # Errors
    /// Where the exporter refuses its settings.
    pub fn new() -> anyhow::Result<Self> {
        let registry = Registry::new(BATCH_SIZE)?;
        Ok(Self {
            presence: PresenceMetrics::new(&registry),
            backlog: BacklogMetrics::new(&registry),
            requests: RequestMetrics::new(&registry),
            held: HeldMetrics::new(&registry),
            connections: ConnectionMetrics::new(&registry),
            streams: StreamMetrics::new(&registry),
            webhooks: WebhookMetrics::new(&registry),
            handle: registry.handle(),
            registry,
        })
    }

    /// Those of one queue.
    pub fn queue(&self, operation: &'static str) -> QueueMetrics {
        QueueMetrics::new(&self.registry, operation)
    }

    /// Counts what the histograms have gathered, which takes memory until then.
    pub fn tidy(&self) {
        self.handle.run_upkeep();
    }

    /// The Prometheus text format.
    pub fn render(&self) -> String {
        self.handle.render()
    }
}
