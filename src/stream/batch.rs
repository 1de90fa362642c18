//! What one read of a room tells its subscribers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;

use crate::wire::{self, Written};

/// What one read of a room tells its subscribers: one value for all of them, each form of it
/// written once, by the first subscriber that needs it.
#[derive(Debug)]
pub struct Batch {
    /// In this order, never empty.
    events: Vec<Written>,
    /// Equal for equal pictures, on every instance, however they came about.
    id: String,
    sse: OnceLock<Bytes>,
    messages: OnceLock<Vec<ByteString>>,
}

impl Batch {
    /// In neither form yet.
    pub(super) fn new(events: Vec<Written>, id: &str) -> Arc<Self> {
        Arc::new(Self {
            events,
            id: id.to_owned(),
            sse: OnceLock::new(),
            messages: OnceLock::new(),
        })
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
