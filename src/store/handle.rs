//! The way to the database, which every file of this module extends by one operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};

use super::pool::Connections;
use super::{DatabaseSettings, StoreError};
use crate::telemetry::Pool;

/// The way to the database; cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// Connections whose commits survive a crash of Postgres.
    pub(super) durable: Connections,
    /// Connections with `synchronous_commit = off`, for heartbeats alone: a crash
    /// of Postgres may lose the last fraction of a second of them.
    pub(super) relaxed: Connections,
    /// Connections that wait for rows which other transactions hold, and do nothing else.
    pub(super) waiting: Connections,
    /// One connection for what the metrics show, which may scan the members, and nothing else.
    pub(super) figures: Connections,
    /// Sessions that were found to have expired, whoever pruned them.
    expired: Arc<AtomicU64>,
    /// Fake time; `None` in production.
    pub(super) now: Option<DateTime<Utc>>,
}

impl Store {
    /// Prepares the pools; connections are made when they are first needed.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] where the address cannot be read.
    pub fn new(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        Ok(Self {
            durable: settings.durable()?,
            relaxed: settings.relaxed()?,
            waiting: settings.waiting()?,
            figures: settings.figures()?,
            expired: Arc::default(),
            now: None,
        })
    }

    /// The same database at a fixed instant: the whole of fake time, for tests alone.
    /// Production leaves the clock to Postgres.
    pub fn at(&self, instant: DateTime<Utc>) -> Self {
        Self {
            now: Some(instant),
            ..self.clone()
        }
    }

    /// How many sessions this store has recorded as expired since it was made: in joins, leaves,
    /// lists, removals and sweeps alike.
    pub fn expired_sessions(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// Counts what a call has recorded as expired.
    pub(super) fn expired(&self, sessions: i32) {
        let sessions = u64::from(sessions.unsigned_abs());
        self.expired.fetch_add(sessions, Ordering::Relaxed);
    }

    pub(super) fn pool(&self, pool: Pool) -> &Connections {
        match pool {
            Pool::Durable => &self.durable,
            Pool::Relaxed => &self.relaxed,
            Pool::Waiting => &self.waiting,
            Pool::Figures => &self.figures,
        }
    }

    /// Closes every connection, waiting for those in use.
    pub async fn close(&self) {
        self.figures.close().await;
        self.waiting.close().await;
        self.relaxed.close().await;
        self.durable.close().await;
    }
}
