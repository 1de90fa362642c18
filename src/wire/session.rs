//! What a client sends of its own session: a heartbeat, a cursor, a goodbye.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::InvalidRequest;
use super::fields::{FieldRules, present, session};
use crate::domain::{Heartbeat, RoomId, SessionKey};

/// A sign of life, and what it changes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatBody {
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    #[schema(required, nullable = false, minimum = 0)]
    epoch: Option<i64>,
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
    /// Another length from now on.
    lease_ms: Option<i64>,
    /// Left out: stays as it was; null clears.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    cursor: Option<Option<Box<RawValue>>>,
    /// Left out: stays as it was; null clears.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Option<Box<RawValue>>>,
}

impl HeartbeatBody {
    /// The heartbeat that it is.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn read(self, room_id: RoomId, rules: &FieldRules) -> Result<Heartbeat, InvalidRequest> {
        Ok(Heartbeat {
            session: session(room_id, self.user_id, self.device_id, self.epoch)?,
            lease: rules.lease(self.lease_ms)?,
            cursor: self.cursor.map(|raw| rules.cursor(raw)).transpose()?,
            metadata: self.metadata.map(|raw| rules.metadata(raw)).transpose()?,
        })
    }
}

/// Where a member's cursor is now.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CursorBody {
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    #[schema(required, nullable = false, minimum = 0)]
    epoch: Option<i64>,
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
    /// Any JSON object of at most 1 KiB; null clears.
    #[serde(default, deserialize_with = "present")]
    #[schema(required, value_type = Option<Object>)]
    cursor: Option<Option<Box<RawValue>>>,
}

impl CursorBody {
    /// The heartbeat that it is: one that sets the cursor.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn read(self, room_id: RoomId, rules: &FieldRules) -> Result<Heartbeat, InvalidRequest> {
        let session = session(room_id, self.user_id, self.device_id, self.epoch)?;
        let raw = self
            .cursor
            .ok_or_else(|| InvalidRequest::new("cursor is required; null clears it"))?;
        Ok(Heartbeat {
            cursor: Some(rules.cursor(raw)?),
            ..Heartbeat::bare(session)
        })
    }
}

/// Which session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBody {
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    #[schema(required, nullable = false, minimum = 0)]
    epoch: Option<i64>,
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
}

impl SessionBody {
    /// The session that it names.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn read(self, room_id: RoomId) -> Result<SessionKey, InvalidRequest> {
        session(room_id, self.user_id, self.device_id, self.epoch)
    }
}
