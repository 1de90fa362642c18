//! Renewing a lease, and with it a cursor or metadata: `leasehold.heartbeat_members`.

use serde_json::Value;

use super::error::outcome;
use super::keys::KeyArrays;
use super::{Store, StoreError};
use crate::domain::{Heartbeat, SessionOutcome};

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
    /// Renews those that no other transaction holds; `None` for one that is held, and unchanged.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn heartbeat(
        &self,
        batch: &[Heartbeat],
    ) -> Result<Vec<Option<SessionOutcome>>, StoreError> {
        let keys = KeyArrays::new(batch.iter().map(|h| &h.session));
        let leases: Vec<Option<i32>> = batch
            .iter()
            .map(|h| h.lease.map(|lease| lease.length_ms.cast_signed()))
            .collect();
        let (set_cursor, cursors): (Vec<bool>, Vec<Option<&Value>>) =
            batch.iter().map(|h| set(&h.cursor)).unzip();
        let (set_metadata, metadata): (Vec<bool>, Vec<Option<&Value>>) =
            batch.iter().map(|h| set(&h.metadata)).unzip();

        let outcomes = sqlx::query_scalar!(
            r#"select leasehold.heartbeat_members($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as "outcomes!""#,
            &keys.rooms as &[&str],
            &keys.users as &[&str],
            &keys.devices as &[&str],
            &keys.epochs,
            &or_empty(leases, Option::is_some) as &[Option<i32>],
            &or_empty(set_cursor, |&is_set| is_set),
            &or_empty(cursors, Option::is_some) as &[Option<&Value>],
            &or_empty(set_metadata, |&is_set| is_set),
            &or_empty(metadata, Option::is_some) as &[Option<&Value>],
            false,
            self.now,
        )
        .fetch_one(&self.relaxed)
        .await?;
        outcomes
            .iter()
            .map(|word| match word.as_str() {
                "busy" => Ok(None),
                word => Ok(Some(outcome(word, "renewed")?.map_or(Ok(()), Err))),
            })
            .collect()
    }
}
