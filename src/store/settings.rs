//! Where the database is: how many connections there may be, how each is set up, and how long anything may wait for it.

use std::fmt;
use std::time::Duration;

use super::connector::Connector;
use super::pool::Connections;
use super::{DatabaseUrl, StoreError};

/// The longest that a call waits for a connection, however long its statement may run.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A batch waits no longer for a lock, as everybody in it waits along: those who need the row then
/// wait for it in a place of their own.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// Who waits for a held row waits so long before others have their turn.
const LOCK_TURN: Duration = Duration::from_secs(1);

/// Postgres ends a statement at the time-out and says so; after this much longer nobody does.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// Where the database is and how it may be used.
#[derive(Clone)]
pub struct DatabaseSettings {
    /// `postgres://…`
    pub url: DatabaseUrl,
    /// Connections for joins, leaves, lists and jobs, and as many again for heartbeats at most.
    pub connections: u32,
    /// Connections beside them that wait for rows which other transactions hold, one a row.
    pub held_connections: u32,
    /// The longest a statement may run, and a request wait for a connection.
    pub timeout: Duration,
    /// Whether this process beats. To it the lease clock stands still until its next beat, however
    /// long ago the last one seems to be: that is how a jump of the database's clock looks.
    pub serves: bool,
}

impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSettings")
            .field("connections", &self.connections)
            .field("held_connections", &self.held_connections)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl DatabaseSettings {
    /// How to connect, with settings of one's own for each connection.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] where the address cannot be read.
    pub(super) fn connector(&self, own: &[(&str, &str)]) -> Result<Connector, StoreError> {
        Connector::new(self.url.clone(), own)
    }

    /// For what must survive a crash of Postgres.
    pub(super) fn durable(&self) -> Result<Connections, StoreError> {
        self.pool(self.connections, "on", LOCK_WAIT)
    }

    /// For heartbeats.
    pub(super) fn relaxed(&self) -> Result<Connections, StoreError> {
        self.pool(self.connections, "off", LOCK_WAIT)
    }

    /// For waiting until a row is free.
    pub(super) fn waiting(&self) -> Result<Connections, StoreError> {
        // So that the wait ends before the statement does.
        let turn = LOCK_TURN.min(self.timeout / 2);
        self.pool(self.held_connections, "off", turn)
    }

    /// For the metrics.
    pub(super) fn figures(&self) -> Result<Connections, StoreError> {
        self.pool(1, "off", LOCK_WAIT)
    }

    fn pool(
        &self,
        connections: u32,
        synchronous_commit: &str,
        lock_timeout: Duration,
    ) -> Result<Connections, StoreError> {
        let timeout_ms = self.timeout.as_millis().to_string();
        let lock_timeout_ms = lock_timeout.as_millis().to_string();
        let connector = self.connector(&[
            ("synchronous_commit", synchronous_commit),
            ("statement_timeout", &timeout_ms),
            ("lock_timeout", &lock_timeout_ms),
            ("idle_in_transaction_session_timeout", &timeout_ms),
            // Every access is by key, but a plan made while the tables were empty, and kept, would scan them.
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("jit", "off"),
            ("leasehold.serves", if self.serves { "on" } else { "off" }),
        ])?;
        Ok(Connections::new(
            connector,
            connections,
            self.timeout.min(LONGEST_WAIT),
            self.timeout + GRACE,
        ))
    }
}
