//! Lists over many rooms: `leasehold.list_rooms` and `leasehold.user_rooms`.

use super::{Store, StoreError};
use crate::domain::{RoomId, RoomSummary, UserId, Whereabouts};

impl Store {
    /// In order of id: those that start with `prefix` and come after `after`, at most `limit`.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn list_rooms(
        &self,
        prefix: &str,
        after: Option<&RoomId>,
        limit: usize,
    ) -> Result<Vec<RoomSummary>, StoreError> {
        let rows = sqlx::query!(
            r#"select room_id as "room_id!", generation as "generation!", version as "version!",
                      opened_at as "opened_at!", locked as "locked!", member_count as "member_count!"
               from leasehold.list_rooms($1, $2, $3, $4)"#,
            prefix,
            after.map_or("", RoomId::as_str),
            i32::try_from(limit).unwrap_or(i32::MAX),
            self.now,
        )
        .fetch_all(&self.durable)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(RoomSummary {
                    room_id: RoomId::parse(row.room_id)?,
                    generation: row.generation,
                    version: row.version,
                    opened_at: row.opened_at,
                    is_locked: row.locked,
                    member_count: row.member_count,
                })
            })
            .collect()
    }

    /// In order of the room's id: those that come after `after`, at most `limit`.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn user_rooms(
        &self,
        user_id: &UserId,
        after: Option<&RoomId>,
        limit: usize,
    ) -> Result<Vec<Whereabouts>, StoreError> {
        let rows = sqlx::query!(
            r#"select room_id as "room_id!", generation as "generation!", epoch as "epoch!",
                      status as "status!", joined_at as "joined_at!", last_seen_at as "last_seen_at!",
                      lease_expires_at as "lease_expires_at!"
               from leasehold.user_rooms($1, $2, $3, $4)"#,
            user_id.as_str(),
            after.map_or("", RoomId::as_str),
            i32::try_from(limit).unwrap_or(i32::MAX),
            self.now,
        )
        .fetch_all(&self.durable)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(Whereabouts {
                    room_id: RoomId::parse(row.room_id)?,
                    generation: row.generation,
                    epoch: row.epoch,
                    joined_at: row.joined_at,
                    last_seen_at: row.last_seen_at,
                    lease_expires_at: row.lease_expires_at,
                    status: row.status.parse()?,
                })
            })
            .collect()
    }
}
