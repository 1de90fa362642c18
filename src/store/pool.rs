//! Connections to Postgres, kept for the next call.
//!
//! Not sqlx's pool: that one waits without a bound for a sign of life of each
//! connection that comes back, so that every loss of the network takes some of
//! its places for as long as TCP believes in them, and costs a busy service a
//! round trip per call. Here a connection is kept
//! only after a call that Postgres answered. After an error of another kind, a
//! time-out or a caller that went away it is dropped: nothing is left in it for
//! the next. Where the server itself is gone, or only reads any more, all of its
//! connections are dropped.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Error};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::StoreError;
use super::connector::Connector;
use super::door::Door;
use super::failures::{Failures, kind};
use super::reach::Reach;
use crate::telemetry::PoolFigures;

/// A connection that lay idle for longer is tried before it is used, so that a
/// restart of Postgres costs a reconnect and not an answer.
const TRY_AFTER_IDLE: Duration = Duration::from_secs(1);

/// A bounded number of connections, made when they are first needed; cheap to clone.
#[derive(Clone)]
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    door: Door,
    limit: u32,
    free: Arc<Semaphore>,
    /// Calls that wait for a connection.
    waiting: AtomicUsize,
    failures: Failures,
    idle: Mutex<Vec<Idle>>,
    /// Counts how often all connections were dropped; none from before is kept after.
    losses: AtomicU64,
    /// For a connection.
    wait: Duration,
    /// For an answer. Postgres gives up earlier by itself, but its own time-outs do
    /// not reach over a network that has gone silent.
    patience: Duration,
}

struct Idle {
    connection: PgConnection,
    since: Instant,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("limit", &self.0.limit)
            .finish_non_exhaustive()
    }
}

impl Connections {
    pub(super) fn new(
        connector: Connector,
        limit: u32,
        wait: Duration,
        patience: Duration,
    ) -> Self {
        Self(Arc::new(Shared {
            door: Door::new(connector),
            limit,
            free: Arc::new(Semaphore::new(limit as usize)),
            waiting: AtomicUsize::new(0),
            failures: Failures::default(),
            idle: Mutex::default(),
            losses: AtomicU64::new(0),
            wait,
            patience,
        }))
    }

    /// A connection of one's own, for more than one statement; give it back with [`Held::release`].
    pub(super) async fn acquire(&self) -> Result<Held, Error> {
        in_time(self.0.wait, "no connection", async {
            let permit = {
                let _waiting = self.0.wait_in_line();
                let free = Arc::clone(&self.0.free).acquire_owned().await;
                free.map_err(|_| Error::PoolClosed)?
            };
            let losses = self.0.losses.load(Ordering::Acquire);
            let connection = match self.take_idle().await {
                Some(connection) => connection,
                None => self.0.door.connect().await?,
            };
            Ok(Held {
                connection,
                losses,
                home: Arc::clone(&self.0),
                _permit: permit,
            })
        })
        .await
    }

    /// Bounds what is done on a connection of one's own as a single statement is bounded.
    pub(super) async fn bounded<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = in_time(self.0.patience, "no answer", async { Ok(work.await) });
        let outcome = answer.await.map_err(StoreError::from).flatten();
        outcome.inspect_err(|error| {
            self.0.failures.count(error.kind());
            if let StoreError::ReadOnly(error) | StoreError::Unavailable(error) = error
                && let Reach::Server = Reach::of(error)
            {
                self.0.lose();
            }
        })
    }

    /// One call on a connection, bounded as a whole; what goes wrong is counted.
    pub(super) async fn call<T>(
        &self,
        call: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let answer = async {
            let mut held = self.acquire().await?;
            let answer = in_time(self.0.patience, "no answer", call(&mut held)).await;
            held.settle(answer)
        };
        let outcome = answer.await;
        outcome.inspect_err(|error| self.0.failures.count(kind(error)))
    }

    /// How many connections and callers there are now.
    pub(super) fn figures(&self) -> PoolFigures {
        let limit = self.0.limit as usize;
        PoolFigures {
            limit,
            in_use: limit - self.0.free.available_permits().min(limit),
            idle: self.0.idle().len(),
            waiting: self.0.waiting.load(Ordering::Relaxed),
        }
    }

    /// What has gone wrong so far.
    pub(super) fn failures(&self) -> &Failures {
        &self.0.failures
    }

    /// One that is there and, where it was long unused, answers.
    async fn take_idle(&self) -> Option<PgConnection> {
        let mut idle = self.0.idle().pop()?;
        if idle.since.elapsed() > TRY_AFTER_IDLE {
            // Half of the wait, so that the other half is left for a new connection.
            let ping = in_time(self.0.wait / 2, "no sign of life", idle.connection.ping());
            ping.await.ok()?;
        }
        Some(idle.connection)
    }

    /// Waits for those in use, then closes all.
    pub(super) async fn close(&self) {
        // It fails only where it is closed already.
        let _ = self.0.free.acquire_many(self.0.limit).await;
        self.0.free.close();
        let idle = std::mem::take(&mut *self.0.idle());
        for Idle { connection, .. } in idle {
            // Where it fails the connection is gone anyway.
            let _ = in_time(self.0.wait, "no end", connection.close()).await;
        }
    }
}

impl Shared {
    /// One more waits, as long as what this returns lives.
    fn wait_in_line(&self) -> impl Drop {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        InLine(&self.waiting)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        // Nothing that can panic is done while it is locked.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all connections, those in use when they are given back.
    fn lose(&self) {
        self.losses.fetch_add(1, Ordering::AcqRel);
        self.idle().clear();
    }
}

/// A call that waits for a connection.
struct InLine<'a>(&'a AtomicUsize);

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that is in use; closed when dropped.
pub(super) struct Held {
    connection: PgConnection,
    /// Of the time when it was taken.
    losses: u64,
    home: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
}

impl Held {
    /// Keeps it for the next call. Only for one on which Postgres has answered every call.
    pub(super) fn release(self) {
        if self.losses == self.home.losses.load(Ordering::Acquire) {
            self.home.idle().push(Idle {
                connection: self.connection,
                since: Instant::now(),
            });
        }
    }

    /// Decides by the outcome of its one call what becomes of it.
    fn settle<T>(self, outcome: Result<T, Error>) -> Result<T, Error> {
        match outcome.as_ref().map_err(Reach::of) {
            Ok(_) | Err(Reach::Call) => self.release(),
            Err(Reach::Connection) => {}
            Err(Reach::Server) => self.home.lose(),
        }
        outcome
    }
}

impl Deref for Held {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

pub(super) async fn in_time<T>(
    limit: Duration,
    what: &'static str,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        let late = format!("{what} within {} ms", limit.as_millis());
        Err(Error::Io(io::Error::new(io::ErrorKind::TimedOut, late)))
    })
}
