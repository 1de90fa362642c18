//! Where requests wait for rows that other transactions hold.
//!
//! One waiter a row, however many requests need it, and so many waiters at a
//! time at most: a row that is held for long costs one connection for a while,
//! and nobody who asks for another row.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use super::NoAnswer;
use crate::store::{Row, Store, StoreError};
use crate::telemetry::HeldMetrics;

/// What can wait for a row: the store, and what tests put in its place.
pub trait Await: Send + Sync + 'static {
    /// Returns when nobody holds the row, or as [`StoreError::Locked`] after a while so that
    /// others have their turn.
    fn await_row(&self, row: &Row) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl Await for Store {
    async fn await_row(&self, row: &Row) -> Result<(), StoreError> {
        Self::await_row(self, row).await
    }
}

/// The rows that are known to be held; cheap to clone, all clones are one.
pub struct Holds<W>(Arc<Shared<W>>);

impl<W> Clone for Holds<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Shared<W> {
    store: W,
    rows: Mutex<HashMap<Row, Waiting>>,
    /// How many rows there are, so that the many requests for free rows take no lock.
    held: AtomicUsize,
    /// One a row that is waited for in the database.
    waiters: Semaphore,
    /// One a request that waits.
    places: Semaphore,
    most_places: usize,
    /// Requests that found no place.
    refused: AtomicU64,
    runtime: Handle,
}

/// How the wait for one row ended, for every request that needs it; `None` while it goes on.
type Waiting = watch::Receiver<Option<Result<(), NoAnswer>>>;

impl<W: Await> Holds<W> {
    /// Waits in the database for at most `waiters` rows at a time, with at most `places` requests
    /// for them; on the current runtime.
    pub fn new(store: W, waiters: usize, places: usize) -> Self {
        Self(Arc::new(Shared {
            store,
            rows: Mutex::default(),
            held: AtomicUsize::new(0),
            waiters: Semaphore::new(waiters),
            places: Semaphore::new(places),
            most_places: places,
            refused: AtomicU64::new(0),
            runtime: Handle::current(),
        }))
    }

    /// Shows how many wait now, and how many were refused.
    pub fn measure(&self, metrics: &HeldMetrics) {
        metrics.now(
            self.0.held.load(Ordering::Relaxed),
            self.0.most_places - self.0.places.available_permits(),
            self.0.refused.load(Ordering::Relaxed),
        );
    }

    /// Whether somebody waits for the row that `row` names already: whoever needs it had better do the same.
    pub fn is_held(&self, row: impl FnOnce() -> Option<Row>) -> bool {
        self.0.held.load(Ordering::Relaxed) > 0
            && row().is_some_and(|row| self.0.rows().contains_key(&row))
    }

    /// Waits until nobody holds the row.
    ///
    /// # Errors
    /// [`NoAnswer::Held`] at the deadline, [`NoAnswer::Overloaded`] where too many wait, or what
    /// went wrong with the database.
    pub async fn released(&self, row: Row, deadline: Instant) -> Result<(), NoAnswer> {
        let Ok(_place) = self.0.places.try_acquire() else {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return Err(NoAnswer::Overloaded);
        };
        let mut waiting = self.wait_for(row);
        let ended = async {
            match waiting.wait_for(Option::is_some).await {
                Ok(ended) => ended.clone().unwrap_or(Ok(())),
                Err(_) => Err(NoAnswer::Stopping),
            }
        };
        timeout_at(deadline, ended)
            .await
            .unwrap_or(Err(NoAnswer::Held))
    }

    /// Joins whoever waits for the row, or begins to wait for it.
    fn wait_for(&self, row: Row) -> Waiting {
        let mut rows = self.0.rows();
        if let Some(waiting) = rows.get(&row) {
            return waiting.clone();
        }
        let (end, waiting) = watch::channel(None);
        rows.insert(row.clone(), waiting.clone());
        self.0.held.store(rows.len(), Ordering::Relaxed);
        let shared = Arc::clone(&self.0);
        self.0.runtime.spawn(async move {
            let outcome = shared.wait(&row, &end).await;
            let mut rows = shared.rows();
            rows.remove(&row);
            shared.held.store(rows.len(), Ordering::Relaxed);
            drop(rows);
            end.send_replace(Some(outcome));
        });
        waiting
    }
}

impl<W: Await> Shared<W> {
    /// Turn after turn, as long as anybody still needs the row.
    async fn wait(
        &self,
        row: &Row,
        end: &watch::Sender<Option<Result<(), NoAnswer>>>,
    ) -> Result<(), NoAnswer> {
        loop {
            // In the order of asking, so that a row that is held for ever does not keep others from their turn.
            let Ok(_turn) = self.waiters.acquire().await else {
                return Err(NoAnswer::Stopping);
            };
            match self.store.await_row(row).await {
                Ok(()) => return Ok(()),
                // The map holds one receiver itself.
                Err(StoreError::Locked) if end.receiver_count() > 1 => {}
                Err(StoreError::Locked) => return Err(NoAnswer::Held),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<W> Shared<W> {
    fn rows(&self) -> MutexGuard<'_, HashMap<Row, Waiting>> {
        // A panic while it is locked leaves a map that is still a map.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
