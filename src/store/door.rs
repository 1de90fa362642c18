//! Through which new connections come: few at a time, and after a failure not at once again.
//!
//! A database that comes back meets all instances at the same moment, each with
//! many requests that want a connection.

use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::Error;
use sqlx::postgres::PgConnection;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::connector::Connector;

/// Attempts that start without waiting for each other.
const STARTS: usize = 2;

/// An attempt that takes longer no longer keeps the next one from starting.
const SLOW: Duration = Duration::from_millis(250);

/// The longest that an attempt may take: one from the time of a silent network must not be
/// waited for when it is over.
const LONGEST: Duration = Duration::from_secs(2);

/// After one failure, and at most after many.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(800));

/// A way to new connections.
pub(super) struct Door {
    connector: Connector,
    starts: Semaphore,
    closed: Mutex<Option<Closed>>,
}

/// The attempts of late have failed.
struct Closed {
    until: Instant,
    pause: Duration,
    why: String,
}

impl Door {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            connector,
            starts: Semaphore::new(STARTS),
            closed: Mutex::default(),
        }
    }

    /// A new connection; an error at once where one has just failed.
    pub(super) async fn connect(&self) -> Result<PgConnection, Error> {
        let start = self.starts.acquire().await.map_err(|_| Error::PoolClosed)?;
        self.require_open()?;
        let mut attempt = pin!(timeout(LONGEST, self.connector.connect()));
        let attempted = match timeout(SLOW, &mut attempt).await {
            Ok(attempted) => attempted,
            Err(_) => {
                drop(start);
                attempt.await
            }
        };
        let late = || {
            let late = format!("no connection within {} ms", LONGEST.as_millis());
            Error::Io(io::Error::new(io::ErrorKind::TimedOut, late))
        };
        let attempted = attempted.unwrap_or_else(|_| Err(late()));
        self.learn(attempted.as_ref().err());
        attempted
    }

    fn require_open(&self) -> Result<(), Error> {
        match &*self.closed() {
            Some(closed) if Instant::now() < closed.until => {
                let why = format!("not tried again yet: {}", closed.why);
                Err(Error::Io(io::Error::new(
                    io::ErrorKind::ConnectionRefused,
                    why,
                )))
            }
            _ => Ok(()),
        }
    }

    fn learn(&self, error: Option<&Error>) {
        let mut closed = self.closed();
        *closed = error.map(|error| {
            let (first, longest) = PAUSES;
            let pause = closed
                .as_ref()
                .map_or(first, |before| (before.pause * 2).min(longest));
            // Instances that lost it together should not all come back together.
            let until = Instant::now() + pause.mul_f64(rand::random_range(0.5..1.0));
            Closed {
                until,
                pause,
                why: error.to_string(),
            }
        });
    }

    fn closed(&self) -> std::sync::MutexGuard<'_, Option<Closed>> {
        // Nothing that can panic is done while it is locked.
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
