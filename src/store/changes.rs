//! The history as an ordered feed: `leasehold.changes`.

use super::error::promised;
use super::history::decision;
use super::{Store, StoreError};
use crate::domain::{
    Change, ChangedSession, Changes, ChangesOutcome, DeviceId, Position, RoomId, UserId,
};

impl Store {
    /// Up to `limit` items after a position.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn changes(&self, after: Position, limit: i32) -> Result<ChangesOutcome, StoreError> {
        let rows = sqlx::query!(
            r#"select settled_xact_id::text as "settled!", position_expired as "position_expired!",
                      more_is_coming as "more_is_coming!", xact_id::text as xact_id, event_id, part, kind,
                      room_id, generation, version, user_id, device_id, epoch, reason,
                      member_count, ended_by, note, at
               from leasehold.changes_page($1::text::xid8, $2, $3, $4)"#,
            after.xact_id.to_string(),
            after.event_id,
            after.part,
            limit,
        )
        .fetch_all(&self.durable)
        .await?;

        let first = rows
            .first()
            .ok_or_else(|| StoreError::Unexpected("no state of the feed".into()))?;
        if first.position_expired {
            return Ok(ChangesOutcome::PositionExpired);
        }
        let settled = Position {
            xact_id: xact_id(&first.settled)?,
            ..Position::default()
        };
        let more_is_coming = first.more_is_coming;
        let mut changes = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(xact) = row.xact_id else { break };
            let session = match row.user_id {
                Some(user_id) => Some(ChangedSession {
                    user_id: UserId::parse(user_id)?,
                    device_id: DeviceId::from_sql(promised(row.device_id, "device_id")?)?,
                    epoch: promised(row.epoch, "epoch")?,
                }),
                None => None,
            };
            changes.push(Change {
                position: Position {
                    xact_id: xact_id(&xact)?,
                    event_id: promised(row.event_id, "event_id")?,
                    part: promised(row.part, "part")?,
                },
                kind: promised(row.kind, "kind")?.parse()?,
                room_id: RoomId::parse(promised(row.room_id, "room_id")?)?,
                generation: promised(row.generation, "generation")?,
                version: promised(row.version, "version")?,
                session,
                reason: row.reason.map(|word| word.parse()).transpose()?,
                member_count: promised(row.member_count, "member_count")?,
                decision: decision(row.ended_by, row.note)?,
                at: promised(row.at, "at")?,
            });
        }
        let is_full = usize::try_from(limit).is_ok_and(|limit| changes.len() >= limit);
        let next = match changes.last() {
            Some(last) if is_full => last.position,
            // Everything before the settled transaction was shown.
            _ => settled.max(after),
        };
        Ok(ChangesOutcome::Page(Changes {
            changes,
            next,
            more_is_coming,
        }))
    }

    /// The position after everything that is settled now.
    ///
    /// Looked at twice: what ends between a snapshot and the look at who runs where holds that look
    /// back, although it may belong to another database; the next look no longer sees it. Both are
    /// true, so the higher one is.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn latest_change(&self) -> Result<Position, StoreError> {
        let latest = self.settled().await?.max(self.settled().await?);
        Ok(Position {
            xact_id: latest,
            ..Position::default()
        })
    }

    async fn settled(&self) -> Result<u64, StoreError> {
        let settled = sqlx::query_scalar!(
            r#"select settled_xact_id::text as "settled!" from leasehold.changes_state('0'::xid8, 0, 0)"#
        )
        .fetch_one(&self.durable)
        .await?;
        xact_id(&settled)
    }
}

fn xact_id(text: &str) -> Result<u64, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Unexpected(format!("{text:?} is not a transaction id")))
}
