//! A lobby's events.

use serde::Serialize;

use super::event::{Written, written};
use super::page::write_page_token;
use crate::domain::{Lobby, LobbyChange, LobbyRooms, RoomId, RoomSummary};

/// `room_opened`, `room_changed` and `room_closed`, and a room of a `snapshot`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LobbyRoomBody<'a> {
    room_id: &'a str,
    generation: i64,
    member_count: i32,
}

impl<'a> LobbyRoomBody<'a> {
    fn new(room: &'a RoomSummary) -> Self {
        Self {
            room_id: room.room_id.as_str(),
            generation: room.generation,
            member_count: room.member_count,
        }
    }
}

/// `snapshot`
#[derive(Serialize)]
struct LobbySnapshotBody<'a> {
    rooms: Vec<LobbyRoomBody<'a>>,
    /// The page token of the rooms after these.
    next: Option<String>,
}

/// `stale`
#[derive(Serialize)]
struct LobbyStaleBody<'a> {
    prefix: &'a str,
}

/// All rooms that a reader of a lobby follows.
pub fn lobby_snapshot(found: &LobbyRooms) -> Written {
    let next = found.last_of_more().map(RoomId::as_str);
    let snapshot = LobbySnapshotBody {
        rooms: found.rooms.iter().map(LobbyRoomBody::new).collect(),
        next: next.map(|last| write_page_token(&[last])),
    };
    written("snapshot", &snapshot)
}

/// What a reader knows of a lobby is not kept up.
pub fn lobby_stale(lobby: &Lobby) -> Written {
    let prefix = lobby.prefix.as_str();
    written("stale", &LobbyStaleBody { prefix })
}

/// What became of a lobby's rooms.
pub fn lobby_changes(changes: &[LobbyChange<'_>]) -> Vec<Written> {
    let event = |change: &LobbyChange<'_>| match *change {
        LobbyChange::Opened(room) => written("room_opened", &LobbyRoomBody::new(room)),
        LobbyChange::Changed(room) => written("room_changed", &LobbyRoomBody::new(room)),
        LobbyChange::Closed(room) => {
            let last = LobbyRoomBody::new(room);
            let empty = LobbyRoomBody {
                member_count: 0,
                ..last
            };
            written("room_closed", &empty)
        }
    };
    changes.iter().map(event).collect()
}
