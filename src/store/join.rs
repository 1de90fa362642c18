//! Joining: `leasehold.join_members`.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{Connection, PgExecutor};

use super::error::promised;
use super::participants::read_rooms;
use super::{Store, StoreError};
use crate::domain::{
    Blocked, DeviceId, Elsewhere, Join, JoinLimits, JoinOutcome, JoinRefusal, Joined, Participants,
    RoomId,
};

/// The same, with the room as the join left it.
pub type ListedJoinOutcome = Result<(Joined, Arc<Participants>), JoinRefusal>;

impl Store {
    /// Joins all of them in one transaction, in order.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn join(
        &self,
        batch: &[Join],
        limits: JoinLimits,
    ) -> Result<Vec<JoinOutcome>, StoreError> {
        self.join_on(&self.durable, batch, limits).await
    }

    /// The same, each with its room as of the join, read under the lock that the join holds.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn join_and_list(
        &self,
        batch: &[Join],
        limits: JoinLimits,
    ) -> Result<Vec<ListedJoinOutcome>, StoreError> {
        let (outcomes, found) = self
            .durable
            .bounded(self.join_then_read(batch, limits))
            .await?;
        let found: HashMap<_, _> = found
            .into_iter()
            .map(|(id, room)| (id, Arc::new(room)))
            .collect();
        batch
            .iter()
            .zip(outcomes)
            .map(|(join, outcome)| match outcome {
                Ok(joined) => {
                    let listed = found.get(&join.room_id).cloned();
                    Ok(Ok((joined, promised(listed, "the joined room")?)))
                }
                Err(refusal) => Ok(Err(refusal)),
            })
            .collect()
    }

    async fn join_then_read(
        &self,
        batch: &[Join],
        limits: JoinLimits,
    ) -> Result<(Vec<JoinOutcome>, HashMap<RoomId, Participants>), StoreError> {
        let mut held = self.durable.acquire().await?;
        let mut transaction = held.begin().await?;
        let outcomes = self.join_on(&mut *transaction, batch, limits).await?;
        let as_of = outcomes.iter().flatten().map(|joined| joined.as_of).next();
        let mut found = HashMap::new();
        if as_of.is_some() {
            let mut rooms: Vec<&str> = batch.iter().map(|j| j.room_id.as_str()).collect();
            rooms.sort_unstable();
            rooms.dedup();
            // What had expired by then was pruned by the join.
            read_rooms(&mut *transaction, &rooms, as_of, &mut found).await?;
        }
        transaction.commit().await?;
        held.release();
        Ok((outcomes, found))
    }

    async fn join_on(
        &self,
        executor: impl PgExecutor<'_>,
        batch: &[Join],
        limits: JoinLimits,
    ) -> Result<Vec<JoinOutcome>, StoreError> {
        let rooms: Vec<&str> = batch.iter().map(|j| j.room_id.as_str()).collect();
        let users: Vec<&str> = batch.iter().map(|j| j.user_id.as_str()).collect();
        let devices: Vec<&str> = batch.iter().map(|j| j.device_id.as_sql()).collect();
        let leases = batch.iter().map(|j| j.lease.length_ms.cast_signed());
        let leases: Vec<i32> = leases.collect();
        let intervals = batch.iter().map(|j| j.lease.heartbeat_ms.cast_signed());
        let intervals: Vec<i32> = intervals.collect();
        let metadata: Vec<Option<&Value>> = batch.iter().map(|j| j.metadata.as_ref()).collect();
        let cursors: Vec<Option<&Value>> = batch.iter().map(|j| j.cursor.as_ref()).collect();
        let if_present: Vec<&str> = batch.iter().map(|j| j.if_present.as_str()).collect();
        let info: Vec<Option<&Value>> = batch.iter().map(|j| j.info.as_ref()).collect();
        let join_ids: Vec<Option<&str>> = batch.iter().map(|j| j.join_id.as_deref()).collect();
        let capacities: Vec<Option<i32>> = batch.iter().map(|j| j.capacity).collect();
        let (info, join_ids, capacities) = (given(info), given(join_ids), given(capacities));

        let row = sqlx::query!(
            r#"select outcomes as "outcomes!: Vec<String>", epochs as "epochs!: Vec<Option<i64>>",
                      generations as "generations!: Vec<Option<i64>>",
                      arrived_at as "arrived_at!: Vec<Option<DateTime<Utc>>>",
                      lease_expires_at as "lease_expires_at!: Vec<Option<DateTime<Utc>>>",
                      device_ids as "device_ids!: Vec<Option<String>>",
                      blocked_until as "blocked_until!: Vec<Option<DateTime<Utc>>>",
                      as_of as "as_of!", members_expired as "members_expired!"
               from leasehold.join_members($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"#,
            &rooms as &[&str],
            &users as &[&str],
            &devices as &[&str],
            &leases,
            &intervals,
            &metadata as &[Option<&Value>],
            &cursors as &[Option<&Value>],
            &if_present as &[&str],
            &info as &[Option<&Value>],
            &join_ids as &[Option<&str>],
            &capacities as &[Option<i32>],
            limits.members_per_room,
            limits.devices_per_member,
            limits.rooms,
            self.now,
        )
        .fetch_one(executor)
        .await?;
        self.expired(row.members_expired);

        let words = row.outcomes.iter();
        let found = words
            .zip(row.epochs)
            .zip(row.generations)
            .zip(row.arrived_at)
            .zip(row.lease_expires_at)
            .zip(row.device_ids)
            .zip(row.blocked_until);
        found
            .map(
                |(
                    (((((word, epoch), generation), arrived_at), lease_expires_at), device_id),
                    until,
                )| match word.as_str() {
                    "joined" => Ok(Ok(Joined {
                        epoch: promised(epoch, "epoch")?,
                        generation: promised(generation, "generation")?,
                        arrived_at: promised(arrived_at, "arrived_at")?,
                        lease_expires_at: promised(lease_expires_at, "lease_expires_at")?,
                        as_of: row.as_of,
                    })),
                    "already_present" => Ok(Err(JoinRefusal::AlreadyPresent(Elsewhere {
                        device_id: DeviceId::from_sql(promised(device_id, "device_id")?)?,
                        epoch: promised(epoch, "epoch")?,
                        lease_expires_at: promised(lease_expires_at, "lease_expires_at")?,
                    }))),
                    "blocked" => {
                        let until = promised(until, "blocked_until")?;
                        let as_of = row.as_of;
                        Ok(Err(JoinRefusal::Blocked(Blocked { until, as_of })))
                    }
                    word => Ok(Err(match word.parse() {
                        Ok(no_place) => JoinRefusal::NoPlace(no_place),
                        Err(_) => JoinRefusal::Over(word.parse()?),
                    })),
                },
            )
            .collect()
    }
}

/// What most joins leave out is not sent where all of them do.
fn given<T>(values: Vec<Option<T>>) -> Vec<Option<T>> {
    match values.iter().any(Option::is_some) {
        true => values,
        false => Vec::new(),
    }
}
