//! Lists over many rooms: `leasehold.list_rooms` and `leasehold.user_rooms`.

use chrono::{DateTime, Utc};

use super::{Store, StoreError};
use crate::domain::{RoomId, UserId};

/// A room with a live member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomSummary {
    pub room_id: String,
    pub generation: i64,
    pub version: i64,
    pub opened_at: DateTime<Utc>,
    /// Live persons.
    pub member_count: i32,
}

/// A room that a person is in, with the newest of their sessions there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whereabouts {
    pub room_id: String,
    pub generation: i64,
    pub epoch: i64,
    pub joined_at: DateTime<Utc>,
    pub last_seen_at: DateTime<Utc>,
    /// In milliseconds.
    pub lease_ms: i32,
    pub lease_expires_at: DateTime<Utc>,
    pub disconnected_at: Option<DateTime<Utc>>,
    pub as_of: DateTime<Utc>,
}

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
        Ok(sqlx::query_as!(
            RoomSummary,
            r#"select room_id as "room_id!", generation as "generation!", version as "version!",
                      opened_at as "opened_at!", member_count as "member_count!"
               from leasehold.list_rooms($1, $2, $3, $4)"#,
            prefix,
            after.map_or("", RoomId::as_str),
            i32::try_from(limit).unwrap_or(i32::MAX),
            self.now,
        )
        .fetch_all(&self.durable)
        .await?)
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
        Ok(sqlx::query_as!(
            Whereabouts,
            r#"select room_id as "room_id!", generation as "generation!", epoch as "epoch!",
                      joined_at as "joined_at!", last_seen_at as "last_seen_at!", lease_ms as "lease_ms!",
                      lease_expires_at as "lease_expires_at!", disconnected_at, as_of as "as_of!"
               from leasehold.user_rooms($1, $2, $3, $4)"#,
            user_id.as_str(),
            after.map_or("", RoomId::as_str),
            i32::try_from(limit).unwrap_or(i32::MAX),
            self.now,
        )
        .fetch_all(&self.durable)
        .await?)
    }
}
