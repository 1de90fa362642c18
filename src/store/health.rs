//! What an operator asks: is it ready, how full is it, how late is the sweep.

use super::{Store, StoreError};
use crate::domain::{Census, Readiness};

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
        .fetch_one(&self.durable)
        .await?)
    }

    /// Asks the database for its clock and the last sweep.
    ///
    /// # Errors
    /// Where the database does not answer, or has another schema.
    pub async fn readiness(&self) -> Result<Readiness, StoreError> {
        Ok(sqlx::query_as!(
            Readiness,
            r#"select clock_timestamp() as "as_of!", last_swept_at from leasehold.sweeps"#,
        )
        .fetch_one(&self.durable)
        .await?)
    }
}
