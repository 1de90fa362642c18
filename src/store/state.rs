//! What an operator asks: is it ready, how full is it, how late is the sweep.

use chrono::{DateTime, Utc};

use super::{Store, StoreError};

/// What is in the tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Census {
    /// Rooms with a live member.
    pub active_rooms: i64,
    /// Persons in them, counted once per room.
    pub active_members: i64,
    /// Since the last heartbeat of the row that was seen longest ago, swept or not.
    pub oldest_lease_age_seconds: f64,
}

/// When the sweep last finished, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    pub as_of: DateTime<Utc>,
    /// `None` where it never has.
    pub last_swept_at: Option<DateTime<Utc>>,
}

impl Store {
    /// Counts what lives; scans the members.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn census(&self) -> Result<Census, StoreError> {
        Ok(sqlx::query_as!(
            Census,
            r#"select active_rooms as "active_rooms!", active_members as "active_members!",
                      oldest_lease_age_seconds as "oldest_lease_age_seconds!"
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
