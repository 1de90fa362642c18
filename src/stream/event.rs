//! What a subscriber is told.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;

use crate::domain::{StaleReason, UserId};
use crate::store::{Participant, Participants};

/// One thing to tell. Those about the present refer to the picture of their [`Batch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Everybody who is here: replaces whatever was told before.
    Snapshot,
    /// The picture's participant at this place is new, or joined again.
    Joined(usize),
    /// The picture's participant at this place looks different: cursor, metadata, status, devices.
    Updated(usize),
    /// A person is gone, with the last of their sessions.
    Left {
        generation: i64,
        /// The room's version at which they were gone.
        version: i64,
        user_id: UserId,
        epoch: i64,
        /// `None` where the history no longer says.
        reason: Option<StaleReason>,
    },
    /// This lifetime of the room is over; what follows belongs to a later one.
    RoomClosed {
        generation: i64,
        version: i64,
        /// `None` where the history no longer says.
        reason: Option<StaleReason>,
    },
}

/// What one read of a room tells its subscribers: one value for all of them.
#[derive(Debug)]
pub struct Batch {
    /// The room as it is after these events.
    pub picture: Arc<Participants>,
    /// In this order, never empty.
    pub events: Vec<Event>,
    /// Equal for equal pictures, on every instance, however they came about.
    pub id: String,
    /// As server-sent events: written once, by the first subscriber that needs it, for all of them.
    pub sse: OnceLock<Bytes>,
    /// As one JSON text an event, in the same way.
    pub json: OnceLock<Vec<ByteString>>,
}

impl Batch {
    /// Not yet encoded.
    pub fn new(picture: &Arc<Participants>, events: Vec<Event>, id: &str) -> Arc<Self> {
        Arc::new(Self {
            picture: Arc::clone(picture),
            events,
            id: id.to_owned(),
            sse: OnceLock::new(),
            json: OnceLock::new(),
        })
    }

    /// The participant that an event refers to.
    pub fn participant(&self, place: usize) -> &Participant {
        &self.picture.participants[place]
    }
}
