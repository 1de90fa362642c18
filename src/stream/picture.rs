//! What a watcher sees of its topic.

use std::sync::Arc;
use std::time::Duration;

use super::difference::{changes_by_itself_at, fingerprint, someone_lost};
use super::watched::Topic;
use super::{lobby, rate};
use crate::coalesce::NoAnswer;
use crate::domain::{Event, Lobby, LobbyRooms, Participants, RoomCount, RoomId, View};
use crate::presence::Presence;
use crate::wire::{self, Written};

/// A lease lives at its end, and instants of the database are exact to the microsecond.
const JUST_AFTER: Duration = Duration::from_millis(1);

/// A room or a lobby as its subscribers know it.
pub(super) enum Picture {
    People(RoomId, Arc<Participants>),
    Count(RoomId, RoomCount),
    Lobby(Lobby, LobbyRooms),
}

impl Picture {
    pub(super) async fn read(presence: &Presence, topic: &Topic) -> Result<Self, NoAnswer> {
        Ok(match topic.clone() {
            Topic::Room(id, View::People) => {
                Self::People(id.clone(), presence.participants(id).await?)
            }
            Topic::Room(id, View::Count) => Self::Count(id.clone(), presence.count(id).await?),
            Topic::Lobby(lobby) => {
                let found = lobby::read(presence, &lobby).await?;
                Self::Lobby(lobby, found)
            }
        })
    }

    /// How long after it was read it changes by itself; counts and lobbies are read again by the poll.
    pub(super) fn lasts(&self) -> Option<Duration> {
        match self {
            Self::People(_, people) => {
                // The instants are the database's: only the time between two of them counts here.
                let turn = changes_by_itself_at(people)?;
                let left = (turn - people.as_of).to_std().unwrap_or(Duration::ZERO);
                Some(left + JUST_AFTER)
            }
            Self::Count(..) | Self::Lobby(..) => None,
        }
    }

    /// Whether a sign of life would show.
    pub(super) fn shows_renewals(&self) -> bool {
        matches!(self, Self::People(_, people) if someone_lost(people))
    }

    /// Whether it is told rarely, and therefore to newcomers as it was read last.
    pub(super) fn is_rationed(&self) -> bool {
        matches!(self, Self::Count(..) | Self::Lobby(..))
    }

    /// Equal for pictures between which there is no difference.
    pub(super) fn id(&self) -> String {
        match self {
            Self::People(room_id, people) => fingerprint(room_id, people),
            Self::Count(_, count) => {
                let generation = count.generation.unwrap_or(0);
                format!("{generation}-{}", count.members)
            }
            Self::Lobby(lobby, found) => lobby::fingerprint(lobby, found),
        }
    }

    /// The least time between two reads.
    pub(super) fn pause(&self, subscribers: usize) -> Duration {
        match self {
            Self::People(_, people) => rate::pause(people.participants.len(), subscribers),
            Self::Count(..) | Self::Lobby(..) => rate::LONGEST,
        }
    }

    /// These events as they are told; of a lobby the two that are about the whole of it.
    pub(super) fn written(&self, events: &[Event]) -> Vec<Written> {
        match self {
            Self::People(room_id, people) => wire::events(room_id, people, events),
            Self::Count(room_id, count) => wire::count_events(room_id, count, events),
            Self::Lobby(lobby, found) => {
                let written = |event: &Event| match event {
                    Event::Stale => wire::lobby_stale(lobby),
                    _ => wire::lobby_snapshot(found),
                };
                events.iter().map(written).collect()
            }
        }
    }
}
