//! Decisions about other people's sessions: to have somebody out, to close a room, to change what is shown.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{RoomId, StaleReason, UserId};

/// A decision to have a member out of a room.
#[derive(Debug, Clone)]
pub struct Removal {
    /// The room.
    pub room_id: RoomId,
    /// Who is to be out of it.
    pub user_id: UserId,
    /// Only the session with this epoch; all of the member's where `None`.
    pub epoch: Option<i64>,
    /// For how many milliseconds joins are refused; 0 lifts an earlier block, `None` leaves it.
    pub block_ms: Option<i64>,
    /// What the history keeps of it.
    pub decision: Decision,
}

/// Who decided that somebody is to be out, and why; what was said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// 1 to 256 characters, no control characters.
    pub by: Option<UserId>,
    /// 1 to 500 characters, no control characters.
    pub reason: Option<String>,
}

impl Decision {
    /// As whom SQL knows it.
    pub fn by(&self) -> Option<&str> {
        self.by.as_ref().map(UserId::as_str)
    }
}

/// A block that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Who may not join; `None` for everybody who is not in the room.
    pub user_id: Option<UserId>,
    /// When it ends.
    pub until: DateTime<Utc>,
    /// Whose it is.
    pub decision: Decision,
}

/// How many sessions were ended, or why the one that was named is not current: then nothing changed.
pub type RemovalOutcome = Result<i32, StaleReason>;

/// A decision to have everybody out of a room.
#[derive(Debug, Clone)]
pub struct RoomClosing {
    /// The room.
    pub room_id: RoomId,
    /// For how many milliseconds nobody opens it again; 0 lifts an earlier block, `None` leaves it.
    pub block_ms: Option<i64>,
    /// What the history keeps of it.
    pub decision: Decision,
}

/// A decision to have somebody out of all rooms.
#[derive(Debug, Clone)]
pub struct Expulsion {
    /// Who is to be out of them.
    pub user_id: UserId,
    /// For how many milliseconds joins of any room are refused; 0 lifts an earlier block of all
    /// rooms, `None` leaves it.
    pub block_ms: Option<i64>,
    /// What the history keeps of it.
    pub decision: Decision,
}

/// A decision to change what others are shown beside a member.
#[derive(Debug, Clone)]
pub struct MetadataChange {
    /// The room.
    pub room_id: RoomId,
    /// Whose metadata it is.
    pub user_id: UserId,
    /// Of the session with this epoch; of the member's newest where `None`.
    pub epoch: Option<i64>,
    /// What takes its place.
    pub metadata: Option<Value>,
}

/// Whether the member is there, or why the session that was named is not current: then nothing changed.
pub type MetadataOutcome = Result<bool, StaleReason>;
