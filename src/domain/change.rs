//! The history as an ordered feed: what its items are, and what a place in it is.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::word::words;
use super::{Decision, DeviceId, EndReason, RoomId, UserId};

words! {
    /// What an item of the feed says.
    ChangeKind {
        /// A lifetime of the room began; the next item is its first join.
        RoomOpened => "room_opened",
        /// A session began.
        Joined => "joined",
        /// A session ended.
        Ended => "ended",
        /// The lifetime is over; the item before is its last end.
        RoomClosed => "room_closed",
    }
}

/// A place in the feed, in the words of the database, which alone reads them. Opaque to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position(String);

/// The longest position, in bytes.
const MAX_POSITION_BYTES: usize = 100;

impl Position {
    /// A text of a form that the database can look at.
    ///
    /// # Errors
    /// [`InvalidPosition`]
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidPosition> {
        let text = text.into();
        let is_word = |c: u8| c.is_ascii_alphanumeric() || c == b'.';
        if text.is_empty() || text.len() > MAX_POSITION_BYTES || !text.bytes().all(is_word) {
            return Err(InvalidPosition);
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is not a place in the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a place in the feed")]
pub struct InvalidPosition;

/// Which items of the feed are asked for; all, where nothing is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangesFilter {
    /// Those of one room.
    pub room_id: Option<RoomId>,
    /// Those of rooms whose id starts like this.
    pub prefix: Option<String>,
    /// Those of these kinds.
    pub kinds: Option<Vec<ChangeKind>>,
}

impl ChangesFilter {
    /// The kinds in the words of the database.
    pub fn kind_words(&self) -> Option<Vec<String>> {
        let kinds = self.kinds.as_ref()?.iter();
        Some(kinds.map(|kind| kind.as_str().to_owned()).collect())
    }
}

/// One item of the feed.
#[derive(Debug, Clone)]
pub struct Change {
    /// Its place.
    pub position: Position,
    /// What it says.
    pub kind: ChangeKind,
    /// The room.
    pub room_id: RoomId,
    /// The number of the room's lifetime.
    pub generation: i64,
    /// The number of the change within the lifetime.
    pub version: i64,
    /// The session, where the item is about one.
    pub session: Option<ChangedSession>,
    /// Why a session or the room ended.
    pub reason: Option<EndReason>,
    /// How many members the room has after it.
    pub member_count: i32,
    /// Who decided it and why, where somebody did and said so.
    pub decision: Decision,
    /// On an end: when the session was last heard of.
    pub last_seen_at: Option<DateTime<Utc>>,
    /// When it became true.
    pub at: DateTime<Utc>,
}

/// The session that an item of the feed is about.
#[derive(Debug, Clone)]
pub struct ChangedSession {
    /// Whose.
    pub user_id: UserId,
    /// On which device.
    pub device_id: DeviceId,
    /// The number of its join.
    pub epoch: i64,
    /// What its join's caller vouched for.
    pub info: Option<Value>,
}

/// A page of the feed.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The items, in order.
    pub changes: Vec<Change>,
    /// Where the next read goes on.
    pub next: Position,
    /// There is more to read at once, or in a moment: a filter looks through so many items at a time, and
    /// changes may be committed that an older transaction, still running, holds back.
    pub more_is_coming: bool,
}

/// What a read of the feed found.
#[derive(Debug, Clone)]
pub enum ChangesOutcome {
    /// What is there.
    Page(Changes),
    /// What follows this position cannot be told without a gap: it is purged in part, or the position is of
    /// another database or of a history that was rolled back.
    PositionExpired,
    /// The text is no position.
    NoPosition,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_a_short_word() {
        assert_eq!(
            Position::parse("1f.2.a3").as_ref().map(Position::as_str),
            Ok("1f.2.a3")
        );
        let long = "1".repeat(101);
        for text in ["", "1 2", "1;2", "é", "-1", long.as_str()] {
            assert_eq!(Position::parse(text), Err(InvalidPosition), "{text:?}");
        }
    }
}
