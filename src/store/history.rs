//! What was: the views `leasehold.room_lifetimes` and `leasehold.sessions`, in pages.

use chrono::{DateTime, Utc};

use super::{Store, StoreError};
use crate::domain::{RoomId, UserId};

/// One life of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifetime {
    pub generation: i64,
    pub opened_at: DateTime<Utc>,
    /// `None` while a member lives.
    pub closed_at: Option<DateTime<Utc>>,
    pub close_reason: Option<String>,
    /// The most persons at a time.
    pub peak_members: Option<i32>,
}

/// One epoch's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSession {
    pub room_id: String,
    pub generation: i64,
    pub user_id: String,
    /// Empty for the unnamed device.
    pub device_id: String,
    pub epoch: i64,
    pub joined_at: DateTime<Utc>,
    /// `None` while it lives.
    pub ended_at: Option<DateTime<Utc>>,
    pub end_reason: Option<String>,
    /// The room's version at the join: the place within a generation.
    pub joined_version: i64,
    /// The place among joins of the same instant.
    pub joined_event_id: i64,
}

/// Which of a person's sessions: those that were under way at some instant of `from` to `to`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Period {
    pub from: Option<DateTime<Utc>>,
    pub to: Option<DateTime<Utc>>,
}

/// Where a page of a person's sessions continues: the last one that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinPlace {
    pub joined_at: DateTime<Utc>,
    pub event_id: i64,
}

impl Store {
    /// Newest first: those before the generation `before`, at most `limit`.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn lifetimes(
        &self,
        room_id: &RoomId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Lifetime>, StoreError> {
        Ok(sqlx::query_as!(
            Lifetime,
            r#"select generation as "generation!", opened_at as "opened_at!",
                      closed_at, close_reason, peak_members
               from leasehold.room_lifetimes
               where room_id = $1 and generation < $2
               order by generation desc
               limit $3"#,
            room_id.as_str(),
            before.unwrap_or(i64::MAX),
            i64::try_from(limit).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.durable)
        .await?)
    }

    /// The sessions of one generation in order of their joins: those after the version `after`, at most `limit`.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn generation_sessions(
        &self,
        room_id: &RoomId,
        generation: i64,
        after: i64,
        limit: usize,
    ) -> Result<Vec<PastSession>, StoreError> {
        Ok(sqlx::query_as!(
            PastSession,
            r#"select room_id as "room_id!", generation as "generation!", user_id as "user_id!",
                      device_id as "device_id!", epoch as "epoch!", joined_at as "joined_at!", ended_at,
                      end_reason, joined_version as "joined_version!", joined_event_id as "joined_event_id!"
               from leasehold.sessions
               where room_id = $1 and generation = $2 and joined_version > $3
               order by joined_version
               limit $4"#,
            room_id.as_str(),
            generation,
            after,
            i64::try_from(limit).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.durable)
        .await?)
    }

    /// A person's sessions in every room, the newest join first: those before `before`, at most `limit`.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn user_sessions(
        &self,
        user_id: &UserId,
        period: Period,
        before: Option<JoinPlace>,
        limit: usize,
    ) -> Result<Vec<PastSession>, StoreError> {
        Ok(sqlx::query_as!(
            PastSession,
            r#"select room_id as "room_id!", generation as "generation!", user_id as "user_id!",
                      device_id as "device_id!", epoch as "epoch!", joined_at as "joined_at!", ended_at,
                      end_reason, joined_version as "joined_version!", joined_event_id as "joined_event_id!"
               from leasehold.sessions
               where user_id = $1
                 and ($2::timestamptz is null or ended_at is null or ended_at >= $2)
                 and ($3::timestamptz is null or joined_at <= $3)
                 and ($4::timestamptz is null or (joined_at, joined_event_id) < ($4, $5))
               order by joined_at desc, joined_event_id desc
               limit $6"#,
            user_id.as_str(),
            period.from,
            period.to,
            before.map(|place| place.joined_at),
            before.map(|place| place.event_id),
            i64::try_from(limit).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.durable)
        .await?)
    }
}
