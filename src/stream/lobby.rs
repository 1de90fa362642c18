//! A lobby as its watcher sees it, and what changed between two looks at it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::coalesce::NoAnswer;
use crate::domain::{Lobby, LobbyChange, LobbyRooms, RoomId, RoomSummary};
use crate::presence::Presence;

/// The most rooms of a lobby that are followed.
const MAX_LOBBY_ROOMS: usize = 1_000;

/// Reads the first rooms of a lobby.
pub(super) async fn read(presence: &Presence, lobby: &Lobby) -> Result<LobbyRooms, NoAnswer> {
    let Lobby { prefix, after } = lobby.clone();
    let mut rooms = presence.rooms(prefix, after, MAX_LOBBY_ROOMS + 1).await?;
    let has_more = rooms.len() > MAX_LOBBY_ROOMS;
    rooms.truncate(MAX_LOBBY_ROOMS);
    Ok(LobbyRooms { rooms, has_more })
}

/// What a reader of the first has to hear to know the second; `None` where others are followed
/// now, so that a room which is missing need not have closed.
pub(super) fn changes<'a>(
    before: &'a LobbyRooms,
    after: &'a LobbyRooms,
) -> Option<Vec<LobbyChange<'a>>> {
    if before.last_of_more() != after.last_of_more() {
        return None;
    }
    let was = by_id(&before.rooms);
    let is = by_id(&after.rooms);
    let goes_on = |then: &RoomSummary, now: &RoomSummary| then.generation == now.generation;
    let closed = before.rooms.iter().filter_map(|then| {
        let now = is.get(&then.room_id);
        let is_over = !now.is_some_and(|now| goes_on(then, now));
        is_over.then_some(LobbyChange::Closed(then))
    });
    let here = after
        .rooms
        .iter()
        .filter_map(|now| match was.get(&now.room_id) {
            Some(then) if goes_on(then, now) => {
                (then.member_count != now.member_count).then_some(LobbyChange::Changed(now))
            }
            _ => Some(LobbyChange::Opened(now)),
        });
    Some(closed.chain(here).collect())
}

fn by_id(rooms: &[RoomSummary]) -> HashMap<&RoomId, &RoomSummary> {
    rooms.iter().map(|room| (&room.room_id, room)).collect()
}

/// A text that is equal for readings of a lobby between which there is no difference, on every
/// instance, and for others in all likelihood not.
pub(super) fn fingerprint(lobby: &Lobby, found: &LobbyRooms) -> String {
    let mut hasher = DefaultHasher::new();
    (&lobby.prefix, lobby.after.as_ref().map(RoomId::as_str)).hash(&mut hasher);
    found.has_more.hash(&mut hasher);
    for room in &found.rooms {
        (room.room_id.as_str(), room.generation, room.member_count).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    fn room(id: &str, generation: i64, member_count: i32) -> RoomSummary {
        RoomSummary {
            room_id: RoomId::parse(id).unwrap(),
            generation,
            version: 1,
            opened_at: DateTime::UNIX_EPOCH,
            is_locked: false,
            member_count,
        }
    }

    fn reading(rooms: Vec<RoomSummary>, has_more: bool) -> LobbyRooms {
        LobbyRooms { rooms, has_more }
    }

    #[test]
    fn a_room_that_closed_and_opened_anew_is_told_as_both() {
        let before = reading(vec![room("a", 1, 2), room("b", 1, 1)], false);
        let after = reading(vec![room("a", 2, 2), room("b", 1, 1)], false);
        assert_eq!(
            changes(&before, &after).unwrap(),
            [
                LobbyChange::Closed(&before.rooms[0]),
                LobbyChange::Opened(&after.rooms[0]),
            ]
        );
    }

    #[test]
    fn a_room_that_is_no_longer_among_the_first_has_not_closed() {
        let before = reading(vec![room("b", 1, 1), room("c", 1, 1)], true);
        let after = reading(vec![room("a", 1, 1), room("b", 1, 1)], true);
        assert_eq!(changes(&before, &after), None);
    }

    #[test]
    fn a_change_that_nobody_is_told_of_is_none() {
        let before = reading(vec![room("a", 1, 2)], true);
        let mut after = reading(vec![room("a", 1, 2)], true);
        after.rooms[0].version = 9;
        assert_eq!(changes(&before, &after).unwrap(), []);
        let lobby = Lobby {
            prefix: "a".to_owned(),
            after: None,
        };
        assert_eq!(fingerprint(&lobby, &before), fingerprint(&lobby, &after));
    }
}
