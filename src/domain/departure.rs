//! How those who are gone left, and how a room closed: what only the history knows.

use super::{EndReason, RoomId, UserId};

/// A question about one lifetime of a room.
#[derive(Debug, Clone)]
pub struct DeparturesQuery {
    /// The room.
    pub room_id: RoomId,
    /// The number of the lifetime.
    pub generation: i64,
    /// Members who are gone, with the arrival by which the list showed them.
    pub gone: Vec<(UserId, i64)>,
}

/// What the history says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Departures {
    /// One per member who was asked for; `None` where the history is purged or the stay goes on.
    pub gone: Vec<Option<Departure>>,
    /// How the lifetime ended; `None` while it lasts or where its history is purged.
    pub closed: Option<Closing>,
}

/// The end of a member's stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Of the last session.
    pub epoch: i64,
    /// The room's version at which it ended.
    pub version: i64,
    /// How it ended.
    pub reason: EndReason,
}

/// The end of a room's lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    /// The room's last version.
    pub version: i64,
    /// How its last session ended.
    pub reason: EndReason,
}
