//! What an operator asks: is it ready, how full is it, how late is the sweep.

use super::{Store, StoreError};
use crate::domain::{Backlog, Census, OpenTransactions, Readiness};

impl Store {
    /// Counts what lives; scans the members.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn census(&self) -> Result<Census, StoreError> {
        Ok(sqlx::query_as!(
            Census,
            r#"select active_rooms as "active_rooms!", active_members as "active_members!",
                      oldest_lease_age_seconds as "oldest_lease_age_seconds!",
                      paused_seconds as "paused_seconds!", pulse_age_seconds, outages as "outages!"
               from leasehold.census($1)"#,
            self.now,
        )
        .fetch_one(&self.figures)
        .await?)
    }

    /// Says how far behind the history and the feed are, and what holds them back; scans nothing.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn backlog(&self) -> Result<Backlog, StoreError> {
        let late = sqlx::query!(
            r#"select leasehold.changes_lag_seconds() as "feed_lag!",
                      extract(epoch from clock_timestamp() - last_swept_at)::double precision as sweep_age
               from leasehold.sweeps"#,
        )
        .fetch_one(&self.figures)
        .await?;
        let holders = sqlx::query!(
            r#"select holder as "holder!", oldest_seconds as "oldest_seconds!",
                      oldest_transactions as "oldest_transactions!", unseen as "unseen!"
               from leasehold.open_transactions()"#,
        )
        .fetch_all(&self.figures)
        .await?;
        let open = holders.into_iter().map(|row| {
            Ok(OpenTransactions {
                holder: row.holder.parse()?,
                oldest_seconds: row.oldest_seconds,
                oldest_transactions: row.oldest_transactions,
                unseen: row.unseen,
            })
        });
        Ok(Backlog {
            feed_lag_seconds: late.feed_lag,
            sweep_age_seconds: late.sweep_age,
            open: open.collect::<Result<_, StoreError>>()?,
        })
    }

    /// Asks the database for its clock, the last sweep and the one under way.
    ///
    /// # Errors
    /// Where the database does not answer, or has another schema.
    pub async fn readiness(&self) -> Result<Readiness, StoreError> {
        Ok(sqlx::query_as!(
            Readiness,
            r#"select clock_timestamp() as "as_of!", last_swept_at, unfinished_at,
                      leasehold.sweep_works() as "sweep_works!"
               from leasehold.sweeps"#,
        )
        .fetch_one(&self.durable)
        .await?)
    }
}
