//! The history as an ordered feed: `leasehold.changes`.

use super::error::promised;
use super::history::decision;
use super::{Store, StoreError};
use crate::domain::{
    Change, ChangedSession, Changes, ChangesFilter, ChangesOutcome, DeviceId, InvalidPosition,
    Position, RoomId, UserId,
};

/// What `leasehold.feed_place` says of a position that stands nowhere in this history.
const POSITION_EXPIRED: &str = "LH410";
/// What it says of a text that is none.
const INVALID_PARAMETER_VALUE: &str = "22023";

impl Store {
    /// Up to `limit` items after a position; without one from the oldest that is kept.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn changes(
        &self,
        after: Option<&Position>,
        filter: &ChangesFilter,
        limit: i32,
    ) -> Result<ChangesOutcome, StoreError> {
        let kinds = filter.kind_words();
        let read = sqlx::query!(
            r#"select next as "next!", position, kind, room_id, generation, version, user_id, device_id, epoch,
                      reason, member_count, ended_by, note, info, last_seen_at, at,
                      more_is_coming as "more_is_coming!"
               from leasehold.changes($1, $2, $3, $4, $5)"#,
            after.map(Position::as_str),
            limit,
            filter.room_id.as_ref().map(RoomId::as_str),
            filter.prefix.as_deref(),
            kinds.as_deref(),
        )
        .fetch_all(&self.durable)
        .await;
        let rows = match read {
            Ok(rows) => rows,
            Err(error) => {
                let (expired, none) = (ChangesOutcome::PositionExpired, ChangesOutcome::NoPosition);
                return position_refused(error, expired, none);
            }
        };
        let first = rows
            .first()
            .ok_or_else(|| StoreError::Unexpected("no state of the feed".into()))?;
        let next = position(first.next.clone())?;
        let more_is_coming = first.more_is_coming;
        let mut changes = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(kind) = row.kind else { break };
            let session = match row.user_id {
                Some(user_id) => Some(ChangedSession {
                    user_id: UserId::parse(user_id)?,
                    device_id: DeviceId::from_sql(promised(row.device_id, "device_id")?)?,
                    epoch: promised(row.epoch, "epoch")?,
                    info: row.info,
                }),
                None => None,
            };
            changes.push(Change {
                position: position(promised(row.position, "position")?)?,
                kind: kind.parse()?,
                room_id: RoomId::parse(promised(row.room_id, "room_id")?)?,
                generation: promised(row.generation, "generation")?,
                version: promised(row.version, "version")?,
                session,
                reason: row.reason.map(|word| word.parse()).transpose()?,
                member_count: promised(row.member_count, "member_count")?,
                decision: decision(row.ended_by, row.note)?,
                last_seen_at: row.last_seen_at,
                at: promised(row.at, "at")?,
            });
        }
        Ok(ChangesOutcome::Page(Changes {
            changes,
            next,
            more_is_coming,
        }))
    }

    /// The position after everything that is settled now.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn latest_change(&self) -> Result<Position, StoreError> {
        let latest =
            sqlx::query_scalar!(r#"select next as "next!" from leasehold.changes('latest')"#)
                .fetch_one(&self.durable)
                .await?;
        position(latest)
    }
}

/// Which of the two refusals of a position an error is.
pub(super) fn position_refused<T>(
    error: sqlx::Error,
    expired: T,
    none: T,
) -> Result<T, StoreError> {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        Some(POSITION_EXPIRED) => Ok(expired),
        Some(INVALID_PARAMETER_VALUE) => Ok(none),
        _ => Err(error.into()),
    }
}

/// The column of a position.
pub(super) fn position(text: String) -> Result<Position, StoreError> {
    Position::parse(text)
        .map_err(|InvalidPosition| StoreError::Unexpected("a position that is none".into()))
}
