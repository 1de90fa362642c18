//! Who is in a room: `leasehold.room_sessions`; and `leasehold.prune_rooms` as a step of its own
//! where that shows that something has expired.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use sqlx::PgExecutor;
use sqlx::types::Json;

use super::error::promised;
use super::{Store, StoreError};
use crate::domain::{DeviceId, LiveSession, Participant, Participants, RoomHead, RoomId, UserId};

impl Store {
    /// The participants of each of these rooms, none of them expired, but for those that another
    /// database has. Afterwards neither an expired member nor an empty room is left in the tables for them.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn participants(
        &self,
        rooms: &[RoomId],
    ) -> Result<HashMap<RoomId, Participants>, StoreError> {
        let mut found = HashMap::with_capacity(rooms.len());
        let ids: Vec<&str> = rooms.iter().map(RoomId::as_str).collect();
        let due = read_rooms(&self.durable, &ids, self.now, &mut found).await?;
        if !due.is_empty() {
            self.prune_where_possible(&due).await?;
        }
        Ok(found)
    }

    /// [`Store::prune`] on the way of a read.
    pub(super) async fn prune_where_possible(&self, rooms: &[String]) -> Result<(), StoreError> {
        match self.prune(rooms).await {
            // A standby, or a primary that is about to step down: reading is all that it can do.
            Ok(()) | Err(StoreError::ReadOnly(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes what has expired in these rooms, and the rooms that this leaves empty, but for what
    /// another transaction holds.
    ///
    /// # Errors
    /// Where it did not happen.
    pub async fn prune(&self, rooms: &[String]) -> Result<(), StoreError> {
        let pruned = sqlx::query!(
            r#"select members_expired as "members_expired!", rooms_closed as "rooms_closed!"
               from leasehold.prune_rooms($1, $2)"#,
            rooms,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(pruned.members_expired);
        Ok(())
    }
}

/// Reads what is there into `found`; returns the rooms in which something is to be pruned.
pub(super) async fn read_rooms(
    executor: impl PgExecutor<'_>,
    rooms: &[&str],
    now: Option<DateTime<Utc>>,
    found: &mut HashMap<RoomId, Participants>,
) -> Result<Vec<String>, StoreError> {
    let mut rows = sqlx::query!(
        r#"select room_id as "room_id!", as_of as "as_of!", has_expired as "has_expired!",
                  is_misdirected as "is_misdirected!", generation, version, opened_at, locked, user_id, device_id, epoch, arrival, arrived_at, joined_at,
                  last_seen_at, heartbeat_ms, lease_expires_at, status,
                  cursor as "cursor: Json<Box<RawValue>>", metadata as "metadata: Json<Box<RawValue>>",
                  info as "info: Json<Box<RawValue>>"
           from leasehold.room_sessions($1, $2)"#,
        rooms as &[&str],
        now,
    )
    .fetch_all(executor)
    .await?;
    rows.retain(|row| !row.is_misdirected);
    // Here and not in SQL, where that costs a fifth of the whole call.
    rows.sort_unstable_by(|a, b| {
        let by_room = a.room_id.cmp(&b.room_id);
        by_room.then_with(|| (a.arrival, b.epoch).cmp(&(b.arrival, a.epoch)))
    });

    let mut due: Vec<String> = Vec::new();
    let mut rows = rows.into_iter().peekable();
    while let Some(first) = rows.peek() {
        if first.has_expired {
            due.push(first.room_id.clone());
        }
        let id = first.room_id.clone();
        let head = first.generation.zip(first.version).zip(first.opened_at);
        let mut room = Participants {
            as_of: first.as_of,
            room: head.map(|((generation, version), opened_at)| RoomHead {
                generation,
                version,
                opened_at,
                is_locked: first.locked == Some(true),
            }),
            participants: Vec::new(),
        };
        while let Some(row) = rows.next_if(|row| row.room_id == id) {
            let Some(user_id) = row.user_id else { continue };
            let arrival = promised(row.arrival, "arrival")?;
            let device_id = promised(row.device_id, "device_id")?;
            let session = LiveSession {
                device_id: DeviceId::from_sql(device_id)?,
                epoch: promised(row.epoch, "epoch")?,
                joined_at: promised(row.joined_at, "joined_at")?,
                last_seen_at: promised(row.last_seen_at, "last_seen_at")?,
                heartbeat_ms: promised(row.heartbeat_ms, "heartbeat_ms")?.cast_unsigned(),
                lease_expires_at: promised(row.lease_expires_at, "lease_expires_at")?,
                status: promised(row.status, "status")?.parse()?,
                cursor: row.cursor.map(|json| json.0),
                metadata: row.metadata.map(|json| json.0),
                info: row.info.map(|json| json.0),
            };
            match room.participants.last_mut() {
                Some(person) if person.arrival == arrival => person.sessions.push(session),
                _ => room.participants.push(Participant {
                    user_id: UserId::parse(user_id)?,
                    arrival,
                    arrived_at: promised(row.arrived_at, "arrived_at")?,
                    sessions: vec![session],
                }),
            }
        }
        found.insert(RoomId::parse(id)?, room);
    }
    Ok(due)
}
