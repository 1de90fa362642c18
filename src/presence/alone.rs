//! Calls that are asked too rarely to be gathered: one at a time, as bounded as those that are.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::Presence;
use crate::coalesce::NoAnswer;
use crate::store::{Row, Store, StoreError, retry};

/// Before a call that waited in vain for one of many rows is tried again.
const PAUSE: Duration = Duration::from_millis(100);

impl Presence {
    /// Asks the store in a task of its own, so that a caller that goes away cancels no transaction,
    /// and for a bounded time. Where another transaction holds `row`, waits for that first.
    pub(super) async fn alone<T, F>(
        &self,
        row: Option<Row>,
        call: impl Fn(Store) -> F + Send + Sync + 'static,
    ) -> Result<T, NoAnswer>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let deadline = Instant::now() + self.timeout;
        let (store, holds) = (self.store.clone(), self.holds.clone());
        let working = self.runtime.spawn(async move {
            loop {
                match retry(|| call(store.clone())).await {
                    Err(StoreError::Locked) if Instant::now() < deadline => {
                        match row.clone() {
                            Some(row) => holds.released(row, deadline).await?,
                            // What it has locked on its way is others' for as long as it waited.
                            None => sleep(PAUSE).await,
                        }
                    }
                    outcome => return outcome.map_err(NoAnswer::from),
                }
            }
        });
        match timeout_at(deadline, working).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(NoAnswer::Stopping),
            Err(_) => Err(NoAnswer::TimedOut(self.timeout)),
        }
    }
}
