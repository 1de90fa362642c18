//! What one read of a room tells its subscribers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;

use crate::domain::{Event, Participants, RoomId};
use crate::wire;

/// What one read of a room tells its subscribers: one value for all of them, each form of it
/// written once, by the first subscriber that needs it.
#[derive(Debug)]
pub struct Batch {
    room_id: RoomId,
    /// The room as it is after these events.
    picture: Arc<Participants>,
    /// In this order, never empty.
    events: Vec<Event>,
    /// Equal for equal pictures, on every instance, however they came about.
    id: String,
    sse: OnceLock<Bytes>,
    messages: OnceLock<Vec<ByteString>>,
}

impl Batch {
    /// Not yet written in any form.
    pub(super) fn new(
        room_id: &RoomId,
        picture: &Arc<Participants>,
        events: Vec<Event>,
        id: &str,
    ) -> Arc<Self> {
        Arc::new(Self {
            room_id: room_id.clone(),
            picture: Arc::clone(picture),
            events,
            id: id.to_owned(),
            sse: OnceLock::new(),
            messages: OnceLock::new(),
        })
    }

    /// Whether it ends what the reader hears of the room.
    pub fn is_last(&self) -> bool {
        matches!(self.events.last(), Some(Event::Removed { .. }))
    }

    /// As server-sent events.
    pub fn sse(&self) -> Bytes {
        let write = || wire::sse(&self.room_id, &self.picture, &self.events, &self.id).into();
        self.sse.get_or_init(write).clone()
    }

    /// As one message of a socket an event.
    pub fn messages(&self) -> &[ByteString] {
        self.messages.get_or_init(|| {
            let texts = wire::messages(&self.room_id, &self.picture, &self.events, &self.id);
            texts.into_iter().map(ByteString::from).collect()
        })
    }
}
