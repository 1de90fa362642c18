//! What a subscriber of a room is told.

use super::{EndReason, UserId};

/// One thing to tell. Those about the present refer to the picture that they come with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Everybody who is here: replaces whatever was told before.
    Snapshot,
    /// The picture's participant at this place is new, or joined again.
    Joined(usize),
    /// The picture's participant at this place looks different: cursor, metadata, status, devices.
    Updated(usize),
    /// A member is gone, with the last of their sessions.
    Left {
        /// The number of the room's lifetime.
        generation: i64,
        /// The room's version at which they were gone.
        version: i64,
        /// Who.
        user_id: UserId,
        /// The highest of theirs that a reader may know.
        epoch: i64,
        /// `None` where the history no longer says.
        reason: Option<EndReason>,
    },
    /// The picture is not kept up, as the database does not answer; a snapshot follows when it does.
    Stale,
    /// The reader was put out of the room for a time: there is nothing more for them.
    Removed {
        /// Who reads.
        user_id: UserId,
    },
    /// This lifetime of the room is over; what follows belongs to a later one.
    RoomClosed {
        /// Its number.
        generation: i64,
        /// Its last version.
        version: i64,
        /// `None` where the history no longer says.
        reason: Option<EndReason>,
    },
}
