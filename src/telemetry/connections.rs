//! The connections to Postgres and what went wrong on them.

use metrics::{Counter, Gauge};

use super::registry::{Registry, float};

/// A set of connections that is bounded by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// For joins, leaves, lists and jobs.
    Durable,
    /// For heartbeats.
    Relaxed,
    /// For waiting for held rows.
    Waiting,
    /// For the metrics.
    Figures,
}

impl Pool {
    /// Every one of them, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Durable, Self::Relaxed, Self::Waiting, Self::Figures];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Relaxed => "relaxed",
            Self::Waiting => "waiting",
            Self::Figures => "figures",
        }
    }
}

/// How a pool is at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolFigures {
    /// The most connections that there may be.
    pub limit: usize,
    /// Connections on which something is done, or that are being made.
    pub in_use: usize,
    /// Open connections on which nothing is done.
    pub idle: usize,
    /// Calls that wait for a connection.
    pub waiting: usize,
}

/// What went wrong with the database, in as many words as an operator tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseErrorKind {
    /// No connection or answer in time.
    Timeout,
    /// The connection could not be made, was refused or was lost.
    Connection,
    /// Another transaction held a lock for too long.
    Lock,
    /// A deadlock or a serialisation failure; tried again.
    Serialization,
    /// The server only reads.
    ReadOnly,
    /// The server lacks memory, disk or connections.
    Resources,
    /// A value that Postgres does not take.
    Rejected,
    /// The schema is another one.
    Schema,
    /// Anything else.
    Other,
}

impl DatabaseErrorKind {
    /// Every one of them, in the order of the enum.
    pub const ALL: [Self; 9] = [
        Self::Timeout,
        Self::Connection,
        Self::Lock,
        Self::Serialization,
        Self::ReadOnly,
        Self::Resources,
        Self::Rejected,
        Self::Schema,
        Self::Other,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Lock => "lock",
            Self::Serialization => "serialization",
            Self::ReadOnly => "read_only",
            Self::Resources => "resources",
            Self::Rejected => "rejected",
            Self::Schema => "schema",
            Self::Other => "other",
        }
    }
}

/// The gauges of one pool.
#[derive(Clone)]
struct PoolGauges {
    limit: Gauge,
    in_use: Gauge,
    idle: Gauge,
    waiting: Gauge,
}

/// The connections to Postgres and what went wrong on them.
#[derive(Clone)]
pub struct ConnectionMetrics {
    pools: [PoolGauges; Pool::ALL.len()],
    errors: [Counter; DatabaseErrorKind::ALL.len()],
}

impl ConnectionMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let connections = (
            "leasehold_database_connections",
            "Connections to Postgres that are open or being made",
        );
        let limit = (
            "leasehold_database_connections_limit",
            "The most connections that there may be",
        );
        let waiters = (
            "leasehold_database_connection_waiters",
            "Calls that wait for a connection",
        );
        let errors = (
            "leasehold_database_errors_total",
            "Calls of the database that failed",
        );
        Self {
            pools: Pool::ALL.map(|pool| {
                let pool = ("pool", pool.as_str());
                PoolGauges {
                    limit: registry.gauge(limit, &[pool]),
                    in_use: registry.gauge(connections, &[pool, ("state", "in_use")]),
                    idle: registry.gauge(connections, &[pool, ("state", "idle")]),
                    waiting: registry.gauge(waiters, &[pool]),
                }
            }),
            errors: DatabaseErrorKind::ALL
                .map(|kind| registry.counter(errors, &[("kind", kind.as_str())])),
        }
    }

    /// A pool is like this now.
    pub fn pool(&self, pool: Pool, figures: PoolFigures) {
        let gauges = &self.pools[pool as usize];
        gauges.limit.set(float(figures.limit as u64));
        gauges.in_use.set(float(figures.in_use as u64));
        gauges.idle.set(float(figures.idle as u64));
        gauges.waiting.set(float(figures.waiting as u64));
    }

    /// So many calls have failed like this since the start.
    pub fn errors(&self, kind: DatabaseErrorKind, calls: u64) {
        self.errors[kind as usize].absolute(calls);
    }
}
