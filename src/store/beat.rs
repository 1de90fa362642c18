//! The sign that this instance serves: `leasehold.beat`.

use std::time::Duration;

use super::{Store, StoreError};
use crate::domain::{Beat, Beaten};

impl Store {
    /// Lets the lease clock run, and makes up for a gap before it.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn beat(&self, beat: Beat) -> Result<Beaten, StoreError> {
        Ok(sqlx::query_as!(
            Beaten,
            r#"select was_outage as "was_outage!", paused_ms as "paused_ms!"
               from leasehold.beat($1, $2, $3, $4, $5, $6)"#,
            beat.heartbeat_ms.cast_signed(),
            beat.longest_lease_ms.cast_signed(),
            millis(beat.max_pause),
            beat.instance,
            beat.since.map(millis),
            self.now,
        )
        .fetch_one(&self.relaxed)
        .await?)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
