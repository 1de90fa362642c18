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

/// The items, or none at all where no request has one: an array of nulls costs Postgres as much as values.
fn or_empty<T>(items: Vec<T>, is_set: impl Fn(&T) -> bool) -> Vec<T> {
    if items.iter().any(is_set) {
        items
    } else {
        Vec::new()
    }
}

impl Store {
    /// Renews all of them in one transaction, in order, and waits for the sessions that another
    /// transaction holds.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn heartbeat(
        &self,
        batch: &[Heartbeat],
    ) -> Result<Vec<HeartbeatOutcome>, StoreError> {
        let words = self.heartbeat_members(batch, true).await?;
        words.iter().map(|word| renewed(word)).collect()
    }

    /// Renews those that no other transaction holds; `None` for one that is held, and unchanged.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn heartbeat_unless_held(
        &self,
        batch: &[Heartbeat],
    ) -> Result<Vec<Option<HeartbeatOutcome>>, StoreError> {
        let words = self.heartbeat_members(batch, false).await?;
        words
            .iter()
            .map(|word| match word.as_str() {
                "busy" => Ok(None),
                word => renewed(word).map(Some),
            })
            .collect()
    }

    async fn heartbeat_members(
        &self,
        batch: &[Heartbeat],
        wait: bool,
    ) -> Result<Vec<String>, StoreError> {
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

        let outcomes = sqlx::query_scalar!(
            r#"select leasehold.heartbeat_members($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as "outcomes!""#,
            &rooms as &[&str],
            &users as &[&str],
            &devices as &[&str],
            &epochs,
            &or_empty(leases, Option::is_some) as &[Option<i32>],
            &or_empty(set_cursor, |&is_set| is_set),
            &or_empty(cursors, Option::is_some) as &[Option<&Value>],
            &or_empty(set_metadata, |&is_set| is_set),
            &or_empty(metadata, Option::is_some) as &[Option<&Value>],
            wait,
            self.now,
        )
        .fetch_one(&self.relaxed)
        .await?;
        Ok(outcomes)
    }
}

fn renewed(word: &str) -> Result<HeartbeatOutcome, StoreError> {
    Ok(outcome(word, "renewed")?.map_or(Ok(()), Err))
}
