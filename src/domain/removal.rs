//! A decision to have a member out of a room.

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
}

/// How many sessions were ended, or why the one that was named is not current: then nothing changed.
pub type RemovalOutcome = Result<i32, StaleReason>;
