//! What a watcher sees of its room, by the view that its subscribers have of it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::difference::{changes_by_itself_at, fingerprint, someone_lost};
use super::rate;
use crate::coalesce::NoAnswer;
use crate::domain::{Event, Participants, RoomCount, RoomId, View};
use crate::presence::Presence;
use crate::wire::{self, Written};

/// A room as its subscribers know it.
pub(super) enum Picture {
    People(Arc<Participants>),
    Count(RoomCount),
}

impl Picture {
    pub(super) async fn read(
        presence: &Presence,
        room_id: &RoomId,
        view: View,
    ) -> Result<Self, NoAnswer> {
        let room_id = room_id.clone();
        Ok(match view {
            View::People => Self::People(presence.participants(room_id).await?),
            View::Count => Self::Count(presence.count(room_id).await?),
        })
    }

    pub(super) fn as_of(&self) -> DateTime<Utc> {
        match self {
            Self::People(people) => people.as_of,
            Self::Count(count) => count.as_of,
        }
    }

    /// When it changes by itself; a count is read again by the poll.
    pub(super) fn changes_by_itself_at(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::People(people) => changes_by_itself_at(people),
            Self::Count(_) => None,
        }
    }

    /// Whether a sign of life would show.
    pub(super) fn shows_renewals(&self) -> bool {
        matches!(self, Self::People(people) if someone_lost(people))
    }

    /// Equal for pictures between which there is no difference.
    pub(super) fn id(&self, room_id: &RoomId) -> String {
        match self {
            Self::People(people) => fingerprint(room_id, people),
            Self::Count(count) => {
                let generation = count.generation.unwrap_or(0);
                format!("{generation}-{}", count.members)
            }
        }
    }

    /// The least time between two reads.
    pub(super) fn pause(&self, subscribers: usize) -> Duration {
        match self {
            Self::People(people) => rate::pause(people.participants.len(), subscribers),
            Self::Count(_) => rate::LONGEST,
        }
    }

    /// These events as they are told.
    pub(super) fn written(&self, room_id: &RoomId, events: &[Event]) -> Vec<Written> {
        match self {
            Self::People(people) => wire::events(room_id, people, events),
            Self::Count(count) => wire::count_events(room_id, count, events),
        }
    }
}
