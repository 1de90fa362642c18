//! Renewing a lease, and with it a cursor or metadata: `leasehold.heartbeat_members`; giving it
//! another length: `leasehold.resize_leases`.

use std::borrow::Borrow;

use serde_json::Value;
use sqlx::{Connection, PgExecutor};

use super::error::skipping_outcomes;
use super::keys::KeyArrays;
use super::{Store, StoreError};
use crate::domain::{Heartbeat, Lease, SessionKey, SessionOutcome};

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
    /// How often a session is to be heard of, in milliseconds; `None` where it is not the current one.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn heartbeat_interval(
        &self,
        session: &SessionKey,
    ) -> Result<Option<u32>, StoreError> {
        let interval = sqlx::query_scalar!(
            "select leasehold.heartbeat_interval($1, $2, $3, $4)",
            session.room_id.as_str(),
            session.user_id.as_str(),
            session.device_id.as_str(),
            session.epoch,
        )
        .fetch_one(&self.durable)
        .await?;
        Ok(interval.and_then(|ms| u32::try_from(ms).ok()))
    }

    /// Renews those that no other transaction holds; `None` for one that is held, and unchanged.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn heartbeat<H: Borrow<Heartbeat>>(
        &self,
        batch: &[H],
    ) -> Result<Vec<Option<SessionOutcome>>, StoreError> {
        self.heartbeat_on(&self.relaxed, batch).await
    }

    async fn heartbeat_on<H: Borrow<Heartbeat>>(
        &self,
        executor: impl PgExecutor<'_>,
        batch: &[H],
    ) -> Result<Vec<Option<SessionOutcome>>, StoreError> {
        let keys = KeyArrays::new(batch.iter().map(|h| &h.borrow().session));
        let (set_cursor, cursors): (Vec<bool>, Vec<Option<&Value>>) =
            batch.iter().map(|h| set(&h.borrow().cursor)).unzip();
        let (set_metadata, metadata): (Vec<bool>, Vec<Option<&Value>>) =
            batch.iter().map(|h| set(&h.borrow().metadata)).unzip();

        let outcomes = sqlx::query_scalar!(
            r#"select leasehold.heartbeat_members($1, $2, $3, $4, $5, $6, $7, $8, $9) as "outcomes!""#,
            &keys.rooms as &[&str],
            &keys.users as &[&str],
            &keys.epochs,
            &keys.devices as &[&str],
            &or_empty(set_cursor, |&is_set| is_set),
            &or_empty(cursors, Option::is_some) as &[Option<&Value>],
            &or_empty(set_metadata, |&is_set| is_set),
            &or_empty(metadata, Option::is_some) as &[Option<&Value>],
            self.now,
        )
        .fetch_one(executor)
        .await?;
        skipping_outcomes(&outcomes, "renewed")
    }

    /// Renews those that ask for another lease, in that length from now on; the same answers.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn resize(
        &self,
        batch: &[(Heartbeat, Lease)],
    ) -> Result<Vec<Option<SessionOutcome>>, StoreError> {
        self.relaxed.bounded(self.resize_then_renew(batch)).await
    }

    async fn resize_then_renew(
        &self,
        batch: &[(Heartbeat, Lease)],
    ) -> Result<Vec<Option<SessionOutcome>>, StoreError> {
        let keys = KeyArrays::new(batch.iter().map(|(h, _)| &h.session));
        let lengths = batch.iter().map(|(_, lease)| lease.length_ms.cast_signed());
        let intervals = batch
            .iter()
            .map(|(_, lease)| lease.heartbeat_ms.cast_signed());
        let mut held = self.relaxed.acquire().await?;
        let mut transaction = held.begin().await?;
        let outcomes = sqlx::query_scalar!(
            r#"select leasehold.resize_leases($1, $2, $3, $4, $5, $6, $7) as "outcomes!""#,
            &keys.rooms as &[&str],
            &keys.users as &[&str],
            &keys.epochs,
            &keys.devices as &[&str],
            &lengths.collect::<Vec<i32>>(),
            &intervals.collect::<Vec<i32>>(),
            self.now,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let outcomes = skipping_outcomes(&outcomes, "renewed")?;
        // What they change beside; under locks that are held already.
        let visible: Vec<&Heartbeat> = batch
            .iter()
            .zip(&outcomes)
            .filter(|((heartbeat, _), outcome)| **outcome == Some(Ok(())) && heartbeat.is_visible())
            .map(|((heartbeat, _), _)| heartbeat)
            .collect();
        if !visible.is_empty() {
            self.heartbeat_on(&mut *transaction, &visible).await?;
        }
        transaction.commit().await?;
        held.release();
        Ok(outcomes)
    }
}
