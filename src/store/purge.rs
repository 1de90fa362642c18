//! Forgetting closed history: `leasehold.purge`.

use std::time::Duration;

use sqlx::postgres::types::PgInterval;

use super::{Store, StoreError};

/// What one batch of the purge did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeBatch {
    /// False where another purge was under way: then nothing was done.
    pub ran: bool,
    /// Lifetimes that went.
    pub generations_purged: i32,
    /// Their events.
    pub events_purged: i32,
    /// Blocks that had ended.
    pub blocks_purged: i32,
    /// Nothing more is due.
    pub finished: bool,
}

impl Store {
    /// Removes generations that closed longer ago than this, oldest first, whole ones, until about so many events went.
    ///
    /// # Errors
    /// Where nothing was removed.
    pub async fn purge(
        &self,
        older_than: Duration,
        max_events: i32,
    ) -> Result<PurgeBatch, StoreError> {
        let older_than = PgInterval {
            months: 0,
            days: 0,
            microseconds: i64::try_from(older_than.as_micros()).unwrap_or(i64::MAX),
        };
        Ok(sqlx::query_as!(
            PurgeBatch,
            r#"select ran as "ran!", generations_purged as "generations_purged!",
                      events_purged as "events_purged!", blocks_purged as "blocks_purged!",
                      finished as "finished!"
               from leasehold.purge($1, $2, $3)"#,
            older_than,
            max_events,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?)
    }
}
