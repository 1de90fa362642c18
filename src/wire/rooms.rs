//! Rooms and their figures, and in which of them a user is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::InvalidRequest;
use crate::domain::{Located, Participants, RoomHead, RoomId, RoomSummary, UserId, Whereabouts};

/// A room's figures.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Room)]
pub struct RoomAnswer<'a> {
    room_id: &'a str,
    generation: i64,
    opened_at_ms: i64,
    /// Live persons.
    member_count: usize,
    version: i64,
    /// There and true where nobody is let in who is not inside.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    locked: bool,
}

impl<'a> RoomAnswer<'a> {
    /// Of a room that exists.
    pub fn new(room_id: &'a RoomId, head: RoomHead, found: &Participants) -> Self {
        Self {
            room_id: room_id.as_str(),
            generation: head.generation,
            opened_at_ms: head.opened_at.timestamp_millis(),
            member_count: found.participants.len(),
            version: head.version,
            locked: head.is_locked,
        }
    }

    fn of_list(room: &'a RoomSummary) -> Self {
        Self {
            room_id: room.room_id.as_str(),
            generation: room.generation,
            opened_at_ms: room.opened_at.timestamp_millis(),
            // A count is not negative.
            member_count: usize::try_from(room.member_count).unwrap_or(0),
            version: room.version,
            locked: room.is_locked,
        }
    }
}

/// Rooms with a live member, in order of id.
#[derive(Debug, Serialize, ToSchema)]
pub struct RoomsAnswer<'a> {
    rooms: Vec<RoomAnswer<'a>>,
    next: Option<String>,
}

impl<'a> RoomsAnswer<'a> {
    /// A page, with the page token of the next.
    pub fn new(rooms: &'a [RoomSummary], next: Option<String>) -> Self {
        Self {
            rooms: rooms.iter().map(RoomAnswer::of_list).collect(),
            next,
        }
    }
}

/// Where a person is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserRoomsAnswer<'a> {
    user_id: &'a str,
    /// In order of the room's id.
    rooms: Vec<UserRoomAnswer<'a>>,
    next: Option<String>,
}

impl<'a> UserRoomsAnswer<'a> {
    /// A page, with the page token of the next.
    pub fn new(user_id: &'a UserId, rooms: &'a [Whereabouts], next: Option<String>) -> Self {
        Self {
            user_id: user_id.as_str(),
            rooms: rooms.iter().map(UserRoomAnswer::new).collect(),
            next,
        }
    }
}

/// A room with a live session of the person; of several the newest, `status` and `lastSeenMs` the best of all.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserRoom)]
struct UserRoomAnswer<'a> {
    room_id: &'a str,
    generation: i64,
    epoch: i64,
    /// `connected` or `reconnecting`.
    status: &'static str,
    joined_at_ms: i64,
    last_seen_ms: i64,
    expires_at_ms: i64,
}

impl<'a> UserRoomAnswer<'a> {
    fn new(room: &'a Whereabouts) -> Self {
        Self {
            room_id: room.room_id.as_str(),
            generation: room.generation,
            epoch: room.epoch,
            status: room.status.as_str(),
            joined_at_ms: room.joined_at.timestamp_millis(),
            last_seen_ms: room.last_seen_at.timestamp_millis(),
            expires_at_ms: room.lease_expires_at.timestamp_millis(),
        }
    }
}

/// Whom to look for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhereaboutsBody {
    /// Up to 1,000.
    #[schema(max_items = 1_000)]
    user_ids: Vec<String>,
}

impl WhereaboutsBody {
    /// Who they are.
    ///
    /// # Errors
    /// Where one of them cannot be an id.
    pub fn read(self) -> Result<Vec<UserId>, InvalidRequest> {
        let users = self.user_ids.into_iter().map(UserId::parse);
        Ok(users.collect::<Result<_, _>>()?)
    }
}

/// Where people are.
#[derive(Debug, Serialize, ToSchema)]
pub struct WhereaboutsAnswer<'a> {
    /// In the order of the question.
    users: Vec<LocatedAnswer<'a>>,
}

impl<'a> WhereaboutsAnswer<'a> {
    /// Of each of them.
    pub fn new(found: &'a [Located]) -> Self {
        Self {
            users: found.iter().map(LocatedAnswer::new).collect(),
        }
    }
}

/// News of people whom a socket follows.
#[derive(Debug, Serialize, ToSchema)]
pub struct WhereaboutsMessage<'a> {
    /// `whereabouts`
    r#type: &'static str,
    /// At first all of them, then those of whom something is different.
    users: Vec<LocatedAnswer<'a>>,
}

impl<'a> WhereaboutsMessage<'a> {
    /// Of these.
    pub fn new(found: &[&'a Located]) -> Self {
        Self {
            r#type: "whereabouts",
            users: found.iter().copied().map(LocatedAnswer::new).collect(),
        }
    }
}

/// Where somebody is, or was last.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Located)]
struct LocatedAnswer<'a> {
    user_id: &'a str,
    /// In order of the room's id, the first hundred.
    rooms: Vec<UserRoomAnswer<'a>>,
    /// Null where the person was never seen, as far as the history is kept.
    last_seen_ms: Option<i64>,
}

impl<'a> LocatedAnswer<'a> {
    fn new(located: &'a Located) -> Self {
        Self {
            user_id: located.user_id.as_str(),
            rooms: located.rooms.iter().map(UserRoomAnswer::new).collect(),
            last_seen_ms: located.last_seen_at.map(|at| at.timestamp_millis()),
        }
    }
}
