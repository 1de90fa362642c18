//! What one read of a room tells its subscribers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;

use crate::domain::RoomId;
use crate::wire::{self, Written};

/// What one read of a room tells its subscribers: one value for all of them, each form of it
/// written once, by the first subscriber that needs it.
#[derive(Debug)]
pub struct Batch {
    /// In this order, never empty.
    events: Vec<Written>,
    /// Equal for equal pictures, on every instance, however they came about.
    id: String,
    is_misdirected: bool,
    sse: OnceLock<Bytes>,
    messages: OnceLock<Vec<ByteString>>,
}

impl Batch {
    /// In neither form yet.
    pub(super) fn new(events: Vec<Written>, id: &str) -> Arc<Self> {
        Self::told(events, id, false)
    }

    /// The last of a room that another database has.
    pub(super) fn misdirected(room_id: &RoomId) -> Arc<Self> {
        Self::told(vec![wire::misdirected(room_id)], "", true)
    }

    fn told(events: Vec<Written>, id: &str, is_misdirected: bool) -> Arc<Self> {
        Arc::new(Self {
            events,
            id: id.to_owned(),
            is_misdirected,
            sse: OnceLock::new(),
            messages: OnceLock::new(),
        })
    }

    /// Whether it says that another database has the room.
    pub fn is_misdirected(&self) -> bool {
        self.is_misdirected
    }

    /// As server-sent events.
    pub fn sse(&self) -> Bytes {
        let write = || wire::sse(&self.events, &self.id).into();
        self.sse.get_or_init(write).clone()
    }

    /// As one message of a socket an event.
    pub fn messages(&self) -> &[ByteString] {
        self.messages.get_or_init(|| {
            let texts = wire::messages(&self.events, &self.id);
            texts.into_iter().map(ByteString::from).collect()
        })
    }
}
