//! Where requests wait: the queue of each operation, and the place for held rows.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};

use super::registry::{Registry, float};

/// The histogram that counts requests and not seconds.
pub(super) const BATCH_SIZE: &str = "leasehold_batch_size";

/// The queue of one operation.
#[derive(Clone)]
pub struct QueueMetrics {
    length: Gauge,
    wait: Histogram,
    batch_size: Histogram,
}

impl QueueMetrics {
    pub(super) fn new(registry: &Registry, operation: &'static str) -> Self {
        let labels = [("operation", operation)];
        Self {
            length: registry.gauge(
                (
                    "leasehold_queue_length",
                    "Requests that wait for their batch to begin",
                ),
                &labels,
            ),
            wait: registry.histogram(
                (
                    "leasehold_queue_wait_seconds",
                    "From the arrival of the first request of a batch to its beginning",
                ),
                &labels,
            ),
            batch_size: registry.histogram((BATCH_SIZE, "Requests in one batch"), &labels),
        }
    }

    /// So many wait now.
    pub fn length(&self, requests: usize) {
        self.length.set(float(requests as u64));
    }

    /// A batch of so many begins, the first of which has waited for so long.
    pub fn batch_began(&self, requests: usize, waited: Duration) {
        self.batch_size.record(float(requests as u64));
        self.wait.record(waited);
    }
}

/// The place where requests wait for rows that other transactions hold.
#[derive(Clone)]
pub struct HeldMetrics {
    rows: Gauge,
    requests: Gauge,
    refused: Counter,
}

impl HeldMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            rows: registry.gauge(
                (
                    "leasehold_held_rows",
                    "Rows held by other transactions that requests wait for",
                ),
                &[],
            ),
            requests: registry.gauge(
                (
                    "leasehold_held_requests",
                    "Requests that wait for rows held by other transactions",
                ),
                &[],
            ),
            refused: registry.counter(
                (
                    "leasehold_held_refused_total",
                    "Requests that found no place to wait for a held row",
                ),
                &[],
            ),
        }
    }

    /// So many rows are waited for by so many requests, and so many were refused since the start.
    pub fn now(&self, rows: usize, requests: usize, refused: u64) {
        self.rows.set(float(rows as u64));
        self.requests.set(float(requests as u64));
        self.refused.absolute(refused);
    }
}
