//! What was: the views `leasehold.room_lifetimes` and `leasehold.sessions`, in pages.

use chrono::{DateTime, Utc};

use super::{Store, StoreError};
use crate::domain::{Decision, DeviceId, JoinPlace, Lifetime, PastSession, Period, RoomId, UserId};

/// A row of the view `sessions`.
struct SessionRow {
    room_id: String,
    generation: i64,
    user_id: String,
    device_id: String,
    epoch: i64,
    joined_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    end_reason: Option<String>,
    ended_by: Option<String>,
    note: Option<String>,
    last_seen_at: Option<DateTime<Utc>>,
    joined_version: i64,
    joined_event_id: i64,
}

impl TryFrom<SessionRow> for PastSession {
    type Error = StoreError;

    fn try_from(row: SessionRow) -> Result<Self, StoreError> {
        Ok(Self {
            room_id: RoomId::parse(row.room_id)?,
            generation: row.generation,
            user_id: UserId::parse(row.user_id)?,
            device_id: DeviceId::from_sql(row.device_id)?,
            epoch: row.epoch,
            joined_at: row.joined_at,
            ended_at: row.ended_at,
            end_reason: row.end_reason.map(|word| word.parse()).transpose()?,
            decision: decision(row.ended_by, row.note)?,
            last_seen_at: row.last_seen_at,
            joined_version: row.joined_version,
            joined_event_id: row.joined_event_id,
        })
    }
}

/// What a removal says of itself.
pub(super) fn decision(by: Option<String>, reason: Option<String>) -> Result<Decision, StoreError> {
    Ok(Decision {
        by: by.map(UserId::parse).transpose()?,
        reason,
    })
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
        self.require_here(room_id).await?;
        let rows = sqlx::query!(
            r#"select generation as "generation!", opened_at as "opened_at!",
                      closed_at, close_reason, peak_members, purged_until
               from leasehold.room_lifetimes
               where room_id = $1 and generation < $2
               order by generation desc
               limit $3"#,
            room_id.as_str(),
            before.unwrap_or(i64::MAX),
            i64::try_from(limit).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.durable)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(Lifetime {
                    generation: row.generation,
                    opened_at: row.opened_at,
                    closed_at: row.closed_at,
                    close_reason: row.close_reason.map(|word| word.parse()).transpose()?,
                    peak_members: row.peak_members,
                    purged_until: row.purged_until,
                })
            })
            .collect()
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
        self.require_here(room_id).await?;
        let rows = sqlx::query_as!(
            SessionRow,
            r#"select room_id as "room_id!", generation as "generation!", user_id as "user_id!",
                      device_id as "device_id!", epoch as "epoch!", joined_at as "joined_at!", ended_at,
                      end_reason, ended_by, note, last_seen_at,
                      joined_version as "joined_version!", joined_event_id as "joined_event_id!"
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
        .await?;
        rows.into_iter().map(PastSession::try_from).collect()
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
        let rows = sqlx::query_as!(
            SessionRow,
            r#"select room_id as "room_id!", generation as "generation!", user_id as "user_id!",
                      device_id as "device_id!", epoch as "epoch!", joined_at as "joined_at!", ended_at,
                      end_reason, ended_by, note, last_seen_at,
                      joined_version as "joined_version!", joined_event_id as "joined_event_id!"
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
        .await?;
        rows.into_iter().map(PastSession::try_from).collect()
    }
}
