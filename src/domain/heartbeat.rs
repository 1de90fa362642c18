//! A sign of life of a session, and what it changes beside the lease.

use serde_json::Value;

use super::{Lease, SessionKey};

/// A sign of life of a session.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// Whose.
    pub session: SessionKey,
    /// Another lease from now on; `None` keeps its length.
    pub lease: Option<Lease>,
    /// `None` keeps the cursor, `Some(None)` clears it.
    pub cursor: Option<Option<Value>>,
    /// `None` keeps the metadata, `Some(None)` clears it.
    pub metadata: Option<Option<Value>>,
}

impl Heartbeat {
    /// A renewal that changes nothing else.
    pub fn bare(session: SessionKey) -> Self {
        Self {
            session,
            lease: None,
            cursor: None,
            metadata: None,
        }
    }

    /// Whether others can see what it changes, beside that its sender lives.
    pub fn is_visible(&self) -> bool {
        self.cursor.is_some() || self.metadata.is_some()
    }
}
