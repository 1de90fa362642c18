//! The history as an ordered feed: `leasehold.changes`.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

use super::error::promised;
use super::{Store, StoreError};

/// A place in the feed. Written `transaction.event.part`; opaque to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Of the writing transaction: a place of this cluster's, not of a restored copy.
    pub xact_id: u64,
    pub event_id: i64,
    /// An event can be two items: 0 opens the room, 1 is the event, 2 closes the room.
    pub part: i32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.xact_id, self.event_id, self.part)
    }
}

/// A text that is not a place in the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a place in the feed")]
pub struct InvalidPosition;

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let mut numbers = text.split('.');
        let mut next = || numbers.next().ok_or(InvalidPosition);
        let (xact_id, event_id, part) = (next()?, next()?, next()?);
        let position = Self {
            xact_id: xact_id.parse().map_err(|_| InvalidPosition)?,
            event_id: event_id.parse().map_err(|_| InvalidPosition)?,
            part: part.parse().map_err(|_| InvalidPosition)?,
        };
        // Also refuses a fourth number, signs and leading zeros.
        (position.to_string() == text && position.event_id >= 0 && (0..=2).contains(&position.part))
            .then_some(position)
            .ok_or(InvalidPosition)
    }
}

/// One item of the feed.
#[derive(Debug, Clone)]
pub struct Change {
    pub position: Position,
    /// `room_opened`, `joined`, `ended` or `room_closed`.
    pub kind: String,
    pub room_id: String,
    pub generation: i64,
    pub version: i64,
    /// This and the next two where the item is about a session; an empty device is the unnamed one.
    pub user_id: Option<String>,
    pub device_id: Option<String>,
    pub epoch: Option<i64>,
    /// Why a session or the room ended.
    pub reason: Option<String>,
    pub at: DateTime<Utc>,
}

/// A page of the feed.
#[derive(Debug, Clone)]
pub struct Changes {
    pub changes: Vec<Change>,
    /// Where the next read goes on.
    pub next: Position,
    /// Changes are committed that an older transaction, still running, holds back.
    pub more_is_coming: bool,
}

/// What a read of the feed found.
#[derive(Debug, Clone)]
pub enum ChangesOutcome {
    Page(Changes),
    /// The history after this position is purged in part, or it is another cluster's.
    CursorExpired,
}

impl Store {
    /// Up to `limit` items after a position.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn changes(&self, after: Position, limit: i32) -> Result<ChangesOutcome, StoreError> {
        // One statement and one judgement of what is settled, for the page and for where it ends.
        let rows = sqlx::query!(
            r#"select s.settled_xact_id::text as "settled!", s.cursor_expired as "cursor_expired!",
                      s.more_is_coming as "more_is_coming!",
                      c.xact_id::text as xact_id, c.event_id as "event_id?", c.part as "part?", c.kind as "kind?",
                      c.room_id as "room_id?", c.generation as "generation?", c.version as "version?",
                      c.user_id, c.device_id, c.epoch, c.reason, c.at as "at?"
               from leasehold.changes_state($1::text::xid8, $2, $3) s
               left join lateral leasehold.changes($1::text::xid8, $2, $3, $4, s.settled_xact_id) c on not s.cursor_expired
               order by c.xact_id, c.event_id, c.part"#,
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
        if first.cursor_expired {
            return Ok(ChangesOutcome::CursorExpired);
        }
        let settled = Position {
            xact_id: xact_id(&first.settled)?,
            ..Position::default()
        };
        let more_is_coming = first.more_is_coming;
        let mut changes = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(xact) = row.xact_id else { break };
            changes.push(Change {
                position: Position {
                    xact_id: xact_id(&xact)?,
                    event_id: promised(row.event_id, "event_id")?,
                    part: promised(row.part, "part")?,
                },
                kind: promised(row.kind, "kind")?,
                room_id: promised(row.room_id, "room_id")?,
                generation: promised(row.generation, "generation")?,
                version: promised(row.version, "version")?,
                user_id: row.user_id,
                device_id: row.device_id,
                epoch: row.epoch,
                reason: row.reason,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_as_it_was_written_and_nothing_else_is_one() {
        let position = Position {
            xact_id: u64::MAX,
            event_id: 7,
            part: 2,
        };
        assert_eq!(position.to_string().parse(), Ok(position));
        for text in [
            "", "1", "1.2", "1.2.3", "1.2.-1", "01.2.1", "1.-2.1", "1.2.1.0", "a.b.c", "latest",
        ] {
            assert_eq!(text.parse::<Position>(), Err(InvalidPosition), "{text:?}");
        }
    }
}
