//! The history as an ordered feed: what its items are, and what a place in it is.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

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

/// A place in the feed. Written `transaction.event.part`; opaque to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Of the writing transaction: a place of this cluster's, not of a restored copy.
    pub xact_id: u64,
    /// Of the event, in the order of writing.
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
}

/// A page of the feed.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The items, in order.
    pub changes: Vec<Change>,
    /// Where the next read goes on.
    pub next: Position,
    /// Changes are committed that an older transaction, still running, holds back.
    pub more_is_coming: bool,
}

/// What a read of the feed found.
#[derive(Debug, Clone)]
pub enum ChangesOutcome {
    /// What is there.
    Page(Changes),
    /// The history after this position is purged in part, or it is another cluster's.
    PositionExpired,
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
