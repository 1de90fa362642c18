//! The database, as the rest of the program knows it.

use chrono::{DateTime, Utc};

use super::pool::Connections;
use super::{DatabaseSettings, StoreError};

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

    /// Closes every connection, waiting for those in use.
    pub async fn close(&self) {
        self.waiting.close().await;
        self.relaxed.close().await;
        self.durable.close().await;
    }
}
