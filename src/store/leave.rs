//! Leaving: `leasehold.leave_members`.

use super::error::outcome;
use super::{Store, StoreError};
use crate::domain::{DeviceId, RoomId, StaleReason, UserId};

/// The end of a session, as its client asks for it.
#[derive(Debug, Clone)]
pub struct Leave {
    pub room_id: RoomId,
    pub user_id: UserId,
    pub device_id: DeviceId,
    pub epoch: i64,
}

/// What became of a leave; a stale one changed nothing.
pub type LeaveOutcome = Result<(), StaleReason>;

impl Store {
    /// Ends all of them in one transaction.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn leave(&self, batch: &[Leave]) -> Result<Vec<LeaveOutcome>, StoreError> {
        let rooms: Vec<&str> = batch.iter().map(|l| l.room_id.as_str()).collect();
        let users: Vec<&str> = batch.iter().map(|l| l.user_id.as_str()).collect();
        let devices: Vec<&str> = batch
            .iter()
            .map(|l| l.device_id.name().unwrap_or(""))
            .collect();
        let epochs: Vec<i64> = batch.iter().map(|l| l.epoch).collect();

        let outcomes = sqlx::query_scalar!(
            r#"select leasehold.leave_members($1, $2, $3, $4, $5) as "outcomes!""#,
            &rooms as &[&str],
            &users as &[&str],
            &devices as &[&str],
            &epochs,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        outcomes
            .iter()
            .map(|word| Ok(outcome(word, "left")?.map_or(Ok(()), Err)))
            .collect()
    }
}
