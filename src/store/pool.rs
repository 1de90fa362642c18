//! Connections: how many, how they are set up, and how long anything may wait for them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;

use super::connections::Connections;
use super::{Store, StoreError};

/// The longest that a call waits for a connection, however long its statement may run.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A statement waits for a lock for this part of the time-out: then those who share its batch can
/// still go on without whoever is held. By default 1.7 s, and a deadlock is found after one.
const LOCK_WAITS: u32 = 3;

/// Postgres ends a statement at the time-out and says so; after this much longer nobody does.
const GRACE: Duration = Duration::from_millis(500);

/// Where the database is and how it may be used.
#[derive(Clone)]
pub struct DatabaseSettings {
    /// `postgres://…`; holds a password, so it is neither logged nor shown.
    pub url: SecretString,
    /// Connections for joins, leaves, lists and jobs, and as many again for heartbeats at most.
    pub connections: u32,
    /// The longest a statement may run, and a request wait for a connection; a third of it for a lock.
    pub timeout: Duration,
}

impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSettings")
            .field("connections", &self.connections)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl DatabaseSettings {
    /// How to connect, without the settings of any one pool.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] where the address cannot be read.
    pub(super) fn connect_options(&self) -> Result<PgConnectOptions, StoreError> {
        let url = self.url.expose_secret();
        // Sqlx would read any scheme.
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(StoreError::BadUrl);
        }
        let options = PgConnectOptions::from_str(url).map_err(|_| StoreError::BadUrl)?;
        Ok(options.application_name("leasehold"))
    }

    fn pool(&self, synchronous_commit: &str) -> Result<Connections, StoreError> {
        let timeout_ms = self.timeout.as_millis().to_string();
        let lock_timeout_ms = (self.timeout / LOCK_WAITS).as_millis().max(1).to_string();
        let options = self.connect_options()?.options([
            ("synchronous_commit", synchronous_commit),
            ("statement_timeout", &timeout_ms),
            ("lock_timeout", &lock_timeout_ms),
            ("idle_in_transaction_session_timeout", &timeout_ms),
            // Every access is by key, but a plan made while the tables were empty, and kept, would scan them.
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("jit", "off"),
        ]);
        Ok(Connections::new(
            options,
            self.connections,
            self.timeout.min(LONGEST_WAIT),
            self.timeout + GRACE,
        ))
    }
}

impl Store {
    /// Prepares the pools; connections are made when they are first needed.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] where the address cannot be read.
    pub fn new(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        Ok(Self {
            durable: settings.pool("on")?,
            relaxed: settings.pool("off")?,
            now: None,
        })
    }

    /// Closes every connection, waiting for those in use.
    pub async fn close(&self) {
        self.relaxed.close().await;
        self.durable.close().await;
    }
}
