//! Who is in a room: `leasehold.room_members`, and `prune_rooms` where it shows an expired one.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use sqlx::PgExecutor;
use sqlx::types::Json;

use super::error::promised;
use super::{Store, StoreError};
use crate::domain::{
    DeviceId, LiveSession, Participant, Participants, RoomHead, RoomId, Status, UserId,
};

impl Store {
    /// The participants of each of these rooms, none of them expired. Afterwards
    /// neither an expired member nor an empty room is left in the tables for them.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn participants(
        &self,
        rooms: &[RoomId],
    ) -> Result<HashMap<RoomId, Participants>, StoreError> {
        let mut found = HashMap::with_capacity(rooms.len());
        let mut unread: Vec<&str> = rooms.iter().map(RoomId::as_str).collect();
        while !unread.is_empty() {
            let expired = read_rooms(&self.durable, &unread, self.now, &mut found).await?;
            if !expired.is_empty() {
                // A renewal under way may save the member: prune waits for it, then the room is read anew.
                self.prune(&expired).await?;
            }
            unread = rooms
                .iter()
                .map(RoomId::as_str)
                .filter(|id| expired.iter().any(|e| e == id))
                .collect();
        }
        Ok(found)
    }

    /// Removes what has expired in these rooms, and the rooms that this leaves empty.
    ///
    /// # Errors
    /// Where it did not happen.
    pub async fn prune(&self, rooms: &[String]) -> Result<(), StoreError> {
        sqlx::query!(
            r#"select members_expired as "members_expired!", rooms_closed as "rooms_closed!"
               from leasehold.prune_rooms($1, $2)"#,
            rooms,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        Ok(())
    }
}

/// Reads what is there into `found`; returns the rooms that cannot be answered yet.
pub(super) async fn read_rooms(
    executor: impl PgExecutor<'_>,
    rooms: &[&str],
    now: Option<DateTime<Utc>>,
    found: &mut HashMap<RoomId, Participants>,
) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query!(
        r#"select room_id as "room_id!", as_of as "as_of!", generation, version, opened_at,
                  user_id, device_id, epoch, arrival, joined_at, last_seen_at, lease_ms, lease_expires_at,
                  disconnected_at, cursor as "cursor: Json<Box<RawValue>>",
                  metadata as "metadata: Json<Box<RawValue>>", expired
           from leasehold.room_members($1, $2)
           order by room_id, arrival, epoch desc"#,
        rooms as &[&str],
        now,
    )
    .fetch_all(executor)
    .await?;

    let mut expired: Vec<String> = Vec::new();
    for row in rows {
        if row.expired == Some(true) {
            if expired.last() != Some(&row.room_id) {
                expired.push(row.room_id);
            }
            continue;
        }
        let head = row.generation.zip(row.version).zip(row.opened_at);
        let room = found
            .entry(RoomId::parse(row.room_id)?)
            .or_insert_with(|| Participants {
                as_of: row.as_of,
                room: head.map(|((generation, version), opened_at)| RoomHead {
                    generation,
                    version,
                    opened_at,
                }),
                participants: Vec::new(),
            });
        let Some(user_id) = row.user_id else { continue };
        let arrival = promised(row.arrival, "arrival")?;
        let device_id = promised(row.device_id, "device_id")?;
        let session = LiveSession {
            device_id: DeviceId::from_sql(device_id)?,
            epoch: promised(row.epoch, "epoch")?,
            joined_at: promised(row.joined_at, "joined_at")?,
            last_seen_at: promised(row.last_seen_at, "last_seen_at")?,
            heartbeat_ms: promised(row.lease_ms, "lease_ms")?.cast_unsigned() / 3,
            lease_expires_at: promised(row.lease_expires_at, "lease_expires_at")?,
            status: status(
                row.as_of,
                row.last_seen_at,
                row.lease_ms,
                row.disconnected_at,
            ),
            cursor: row.cursor.map(|json| json.0),
            metadata: row.metadata.map(|json| json.0),
        };
        match room.participants.last_mut() {
            Some(person) if person.arrival == arrival => person.sessions.push(session),
            _ => room.participants.push(Participant {
                user_id: UserId::parse(user_id)?,
                arrival,
                sessions: vec![session],
            }),
        }
    }
    found.retain(|room, _| !expired.iter().any(|id| id == room.as_str()));
    Ok(expired)
}

// Until SQL says so.
pub(super) fn status(
    at: DateTime<Utc>,
    seen: Option<DateTime<Utc>>,
    lease_ms: Option<i32>,
    lost: Option<DateTime<Utc>>,
) -> Status {
    let late = chrono::TimeDelta::milliseconds(i64::from(lease_ms.unwrap_or(0)) / 2);
    match lost.is_some() || seen.is_some_and(|seen| at > seen + late) {
        true => Status::Reconnecting,
        false => Status::Connected,
    }
}
