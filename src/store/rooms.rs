//! Lists over many rooms: `leasehold.list_rooms`, `user_rooms` and `whereabouts`.

use super::error::promised;
use super::{Store, StoreError};
use crate::domain::{Located, RoomId, RoomSummary, UserId, Whereabouts};

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

    /// Where each of these users is, in up to `max_rooms` rooms, in the order of the question.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn whereabouts(
        &self,
        users: &[UserId],
        max_rooms: i32,
    ) -> Result<Vec<Located>, StoreError> {
        let ids: Vec<&str> = users.iter().map(UserId::as_str).collect();
        let rows = sqlx::query!(
            r#"select ord as "ord!", room_id, generation, epoch, status, joined_at, last_seen_at,
                      lease_expires_at
               from leasehold.whereabouts($1, $2, $3)"#,
            &ids as &[&str],
            max_rooms,
            self.now,
        )
        .fetch_all(&self.durable)
        .await?;
        let mut found: Vec<Located> = users.iter().cloned().map(Located::nowhere).collect();
        for row in rows {
            let place = usize::try_from(row.ord - 1).ok();
            let user = place.and_then(|place| found.get_mut(place));
            let user = promised(user, "ord")?;
            user.last_seen_at = user.last_seen_at.max(row.last_seen_at);
            let Some(room_id) = row.room_id else { continue };
            user.rooms.push(Whereabouts {
                room_id: RoomId::parse(room_id)?,
                generation: promised(row.generation, "generation")?,
                epoch: promised(row.epoch, "epoch")?,
                joined_at: promised(row.joined_at, "joined_at")?,
                last_seen_at: promised(row.last_seen_at, "last_seen_at")?,
                lease_expires_at: promised(row.lease_expires_at, "lease_expires_at")?,
                status: promised(row.status, "status")?.parse()?,
            });
        }
        Ok(found)
    }
}
