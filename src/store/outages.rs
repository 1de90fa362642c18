//! When nobody served: the table `leasehold.outages`, in pages.

use super::{Store, StoreError};
use crate::domain::{Outage, Period};

impl Store {
    /// Newest first: those before the one of the number `before`, at most `limit`.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn outages(
        &self,
        period: Period,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Outage>, StoreError> {
        // Where the clock was set back, an outage ends before it began.
        let rows = sqlx::query_as!(
            Outage,
            r#"select outage_id as number, began_at, ended_at,
                      (paused_after - paused_before) / 1000 as "paused_ms!"
               from leasehold.outages
               where ($1::timestamptz is null or greatest(began_at, ended_at) >= $1)
                 and ($2::timestamptz is null or least(began_at, ended_at) <= $2)
                 and outage_id < $3
               order by outage_id desc
               limit $4"#,
            period.from,
            period.to,
            before.unwrap_or(i64::MAX),
            i64::try_from(limit).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.durable)
        .await?;
        Ok(rows)
    }
}
