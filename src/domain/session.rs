//! Which session is meant: the key of everything that acts on one.

use super::{DeviceId, RoomId, StaleReason, UserId};

/// One epoch's life on one device of a member.
///
/// Whatever renews, marks or ends a session names all four; where any of them
/// is not that of the current session, nothing changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// The room.
    pub room_id: RoomId,
    /// The member.
    pub user_id: UserId,
    /// The member's device.
    pub device_id: DeviceId,
    /// The number of the join; 1 or more for a session that ever was.
    pub epoch: i64,
}

/// What became of something that acts on a session; on a stale one it changed nothing.
pub type SessionOutcome = Result<(), StaleReason>;
