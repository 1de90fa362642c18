//! Joining: what a client sends, and the session that it is answered with.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::InvalidRequest;
use super::fields::{FieldRules, device_id, user_id};
use super::participants::ParticipantAnswer;
use crate::domain::{IfPresent, Join, Joined, Participants, RoomId};

/// Who joins, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinBody {
    /// 1 to 256 characters, no control characters.
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    /// Left out: the one unnamed device.
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
    /// Within the bounds of the server; its default if left out.
    lease_ms: Option<i64>,
    /// Any JSON object of at most 4 KiB.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
    /// Any JSON object of at most 1 KiB.
    #[schema(value_type = Option<Object>)]
    cursor: Option<Box<RawValue>>,
    if_present: Option<IfPresentBody>,
}

/// What to do where the user is in the room already: take the place of the session on the same device, or refuse.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = IfPresent)]
enum IfPresentBody {
    Replace,
    Reject,
}

impl JoinBody {
    /// The join that it asks for.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn read(self, room_id: RoomId, rules: &FieldRules) -> Result<Join, InvalidRequest> {
        Ok(Join {
            room_id,
            user_id: user_id(self.user_id)?,
            lease: rules
                .lease(self.lease_ms)?
                .unwrap_or(rules.leases.default_lease()),
            device_id: device_id(self.device_id)?,
            metadata: rules.metadata(self.metadata)?,
            cursor: rules.cursor(self.cursor)?,
            if_present: match self.if_present {
                Some(IfPresentBody::Reject) => IfPresent::Reject,
                Some(IfPresentBody::Replace) | None => IfPresent::Replace,
            },
        })
    }
}

/// The session that began.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinAnswer<'a> {
    room_id: &'a str,
    user_id: &'a str,
    /// As it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<&'a str>,
    epoch: i64,
    generation: i64,
    lease_ms: u32,
    /// How often to send a heartbeat.
    heartbeat_ms: u32,
    expires_at_ms: i64,
    as_of_ms: i64,
    /// With `include=participants`: the room's version at `asOfMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    /// With `include=participants`: who is in the room at `asOfMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    participants: Option<Vec<ParticipantAnswer<'a>>>,
}

impl<'a> JoinAnswer<'a> {
    /// With the room's list where it was read along with the join.
    pub fn new(join: &'a Join, joined: &Joined, listed: Option<&'a Participants>) -> Self {
        Self {
            room_id: join.room_id.as_str(),
            user_id: join.user_id.as_str(),
            device_id: join.device_id.name(),
            epoch: joined.epoch,
            generation: joined.generation,
            lease_ms: join.lease.length_ms,
            heartbeat_ms: join.lease.heartbeat_ms,
            expires_at_ms: joined.lease_expires_at.timestamp_millis(),
            as_of_ms: joined.as_of.timestamp_millis(),
            version: listed.and_then(|listed| Some(listed.room?.version)),
            participants: listed.map(|listed| {
                let members = listed.participants.iter();
                members.map(ParticipantAnswer::new).collect()
            }),
        }
    }
}
