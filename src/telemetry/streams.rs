//! Streams, and hints between instances.

use metrics::{Counter, Gauge};

use super::registry::{Registry, float};

/// Streams, and hints between instances.
#[derive(Clone)]
pub struct StreamMetrics {
    subscribers: Gauge,
    watched_rooms: Gauge,
    subscribers_behind: Counter,
    hints_sent: Counter,
    hints_heard: Counter,
}

impl StreamMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauge = |name, text| registry.gauge((name, text), &[]);
        let counter = |name, text| registry.counter((name, text), &[]);
        Self {
            subscribers: gauge(
                "leasehold_subscribers",
                "Rooms that event streams and sockets of this instance follow, each as often as it is followed",
            ),
            watched_rooms: gauge(
                "leasehold_watched_rooms",
                "Rooms and lobbies with a subscriber on this instance",
            ),
            subscribers_behind: counter(
                "leasehold_subscribers_behind_total",
                "Times a subscriber was too slow and was sent a fresh snapshot instead of changes",
            ),
            hints_sent: counter(
                "leasehold_hints_sent_total",
                "Transactions that told other instances of changed rooms",
            ),
            hints_heard: counter(
                "leasehold_hints_heard_total",
                "Messages of other instances about changed rooms",
            ),
        }
    }

    /// A room is followed.
    pub fn subscriber_came(&self) {
        self.subscribers.increment(1);
    }

    /// It no longer is.
    pub fn subscriber_gone(&self) {
        self.subscribers.decrement(1);
    }

    /// So many rooms have a subscriber.
    pub fn watched_rooms(&self, rooms: usize) {
        self.watched_rooms.set(float(rooms as u64));
    }

    /// A subscriber was too slow.
    pub fn subscriber_fell_behind(&self) {
        self.subscribers_behind.increment(1);
    }

    /// Other instances were told of changes.
    pub fn hints_sent(&self) {
        self.hints_sent.increment(1);
    }

    /// Another instance told of changes.
    pub fn hint_heard(&self) {
        self.hints_heard.increment(1);
    }
}
