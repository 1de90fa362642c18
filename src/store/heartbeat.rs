//! Renewing a lease, and with it a cursor or metadata: `leasehold.heartbeat_members`.

use serde_json::Value;

use super::error::outcome;
use super::{Store, StoreError};
use crate::domain::{DeviceId, RoomId, StaleReason, UserId};

/// A sign of life of a session.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    pub room_id: RoomId,
    pub user_id: UserId,
    pub device_id: DeviceId,
    pub epoch: i64,
    /// In milliseconds; `None` keeps the length.
    pub lease_ms: Option<u32>,
    /// `None` keeps the cursor, `Some(None)` clears it.
    pub cursor: Option<Option<Value>>,
    /// `None` keeps the metadata, `Some(None)` clears it.
    pub metadata: Option<Option<Value>>,
}

/// What became of a heartbeat.
pub type HeartbeatOutcome = Result<(), StaleReason>;

fn set(field: &Option<Option<Value>>) -> (bool, Option<&Value>) {
    (field.is_some(), field.as_ref().and_then(Option::as_ref))
}

impl Store {
    /// Renews all of them in one transaction, in order.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn heartbeat(
        &self,
        batch: &[Heartbeat],
    ) -> Result<Vec<HeartbeatOutcome>, StoreError> {
        let rooms: Vec<&str> = batch.iter().map(|h| h.room_id.as_str()).collect();
        let users: Vec<&str> = batch.iter().map(|h| h.user_id.as_str()).collect();
        let devices: Vec<&str> = batch
            .iter()
            .map(|h| h.device_id.name().unwrap_or(""))
            .collect();
        let epochs: Vec<i64> = batch.iter().map(|h| h.epoch).collect();
        let leases: Vec<Option<i32>> = batch
            .iter()
            .map(|h| h.lease_ms.map(u32::cast_signed))
            .collect();
        let (set_cursor, cursors): (Vec<bool>, Vec<Option<&Value>>) =
            batch.iter().map(|h| set(&h.cursor)).unzip();
        let (set_metadata, metadata): (Vec<bool>, Vec<Option<&Value>>) =
            batch.iter().map(|h| set(&h.metadata)).unzip();

        let mut rows = sqlx::query!(
            r#"select ord as "ord!", outcome as "outcome!"
               from leasehold.heartbeat_members($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"#,
            &rooms as &[&str],
            &users as &[&str],
            &devices as &[&str],
            &epochs,
            &leases as &[Option<i32>],
            &set_cursor,
            &cursors as &[Option<&Value>],
            &set_metadata,
            &metadata as &[Option<&Value>],
            self.now,
        )
        .fetch_all(&self.relaxed)
        .await?;

        rows.sort_unstable_by_key(|row| row.ord);
        rows.into_iter()
            .map(|row| Ok(outcome(&row.outcome, "renewed")?.map_or(Ok(()), Err)))
            .collect()
    }
}
