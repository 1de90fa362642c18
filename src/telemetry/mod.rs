//! Logs and metrics: set up once, named in one place, a file a subject.

mod backlog;
mod connections;
mod logs;
mod metrics;
mod presence;
mod queues;
mod registry;
mod requests;
mod streams;
mod webhooks;

pub use backlog::BacklogMetrics;
pub use connections::{ConnectionMetrics, DatabaseErrorKind, Pool, PoolFigures};
pub use logs::{LogFormat, start_logs};
pub use metrics::Metrics;
pub use presence::PresenceMetrics;
pub use queues::{HeldMetrics, QueueMetrics};
pub use requests::{RequestMetrics, RouteMetrics};
pub use streams::StreamMetrics;
pub use webhooks::WebhookMetrics;
