//! Rooms whose ids start alike, as one thing to follow.

use super::{RoomId, RoomSummary};

/// Which rooms: those that start with the prefix, in order of id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lobby {
    /// How their ids start.
    pub prefix: String,
    /// Only those that come after this one.
    pub after: Option<RoomId>,
}

/// The first of a lobby's rooms, as they were at one instant.
#[derive(Debug)]
pub struct LobbyRooms {
    /// In order of id.
    pub rooms: Vec<RoomSummary>,
    /// Whether others come after them.
    pub has_more: bool,
}

impl LobbyRooms {
    /// The last of them, where others come after it.
    pub fn last_of_more(&self) -> Option<&RoomId> {
        let last = self.rooms.last().filter(|_| self.has_more);
        last.map(|room| &room.room_id)
    }
}

/// What became of a room of a lobby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LobbyChange<'a> {
    /// It is there, and was not, or is another lifetime of it.
    Opened(&'a RoomSummary),
    /// Its count is another one.
    Changed(&'a RoomSummary),
    /// This lifetime of it, as it was told last, is over.
    Closed(&'a RoomSummary),
}
