//! Joining: what a client sends, and the session that it is answered with.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::InvalidRequest;
use super::fields::{FieldRules, device_id, info, user_id};
use super::participants::ParticipantAnswer;
use crate::domain::{DeviceId, IfPresent, Join, Joined, Participants, RoomId};

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
    /// What the caller calls this join, 1 to 256 characters: asked again, it answers the session that it began.
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    join_id: Option<String>,
    /// A JSON object of at most 4 KiB that is shown beside `metadata`. From a server key only; a token has it in its claims.
    #[schema(value_type = Option<Object>)]
    info: Option<Box<RawValue>>,
    /// How many members the room may have for this join to be granted. From a server key only; a token has it in its claims.
    #[schema(minimum = 1)]
    max_members: Option<i64>,
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
            join_id: self.join_id.map(join_id).transpose()?,
            info: info(self.info)?,
            capacity: self.max_members.map(capacity).transpose()?,
        })
    }
}

/// An id like any other.
fn join_id(text: String) -> Result<String, InvalidRequest> {
    match DeviceId::parse(text) {
        Ok(id) => Ok(id.as_sql().to_owned()),
        Err(_) => Err(InvalidRequest::new(
            "joinId must have 1 to 256 characters, none of them a control character",
        )),
    }
}

fn capacity(members: i64) -> Result<i32, InvalidRequest> {
    let members = i32::try_from(members).ok().filter(|members| *members >= 1);
    members.ok_or_else(|| InvalidRequest::new("maxMembers must be from 1 to 2147483647"))
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
    /// Since when the person has been in the room, over reconnects.
    arrived_at_ms: i64,
    expires_at_ms: i64,
    as_of_ms: i64,
    /// As it was vouched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    info: Option<&'a Value>,
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
            arrived_at_ms: joined.arrived_at.timestamp_millis(),
            expires_at_ms: joined.lease_expires_at.timestamp_millis(),
            as_of_ms: joined.as_of.timestamp_millis(),
            info: join.info.as_ref(),
            version: listed.and_then(|listed| Some(listed.room?.version)),
            participants: listed.map(|listed| {
                let members = listed.participants.iter();
                members.map(ParticipantAnswer::new).collect()
            }),
        }
    }
}
