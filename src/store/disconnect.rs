//! Reporting a lost transport: `leasehold.disconnect_members`.

use super::error::outcome;
use super::{Store, StoreError};
use crate::domain::{DeviceId, RoomId, StaleReason, UserId};

/// The news that a session's transport was lost.
#[derive(Debug, Clone)]
pub struct Disconnect {
    pub room_id: RoomId,
    pub user_id: UserId,
    pub device_id: DeviceId,
    pub epoch: i64,
}

/// What became of it; on a stale session it changed nothing.
pub type DisconnectOutcome = Result<(), StaleReason>;

impl Store {
    /// Marks all of them in one transaction; no lease changes.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn disconnect(
        &self,
        batch: &[Disconnect],
    ) -> Result<Vec<DisconnectOutcome>, StoreError> {
        let rooms: Vec<&str> = batch.iter().map(|d| d.room_id.as_str()).collect();
        let users: Vec<&str> = batch.iter().map(|d| d.user_id.as_str()).collect();
        let devices: Vec<&str> = batch
            .iter()
            .map(|d| d.device_id.name().unwrap_or(""))
            .collect();
        let epochs: Vec<i64> = batch.iter().map(|d| d.epoch).collect();

        let outcomes = sqlx::query_scalar!(
            r#"select leasehold.disconnect_members($1, $2, $3, $4, $5) as "outcomes!""#,
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
            .map(|word| Ok(outcome(word, "disconnected")?.map_or(Ok(()), Err)))
            .collect()
    }
}
