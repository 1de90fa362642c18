//! Who is in a room, as a list shows them.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::domain::{LiveSession, Participant, Participants, RoomId};

/// Who is in a room, at one instant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParticipantsAnswer<'a> {
    room_id: &'a str,
    /// Null where the room does not exist.
    generation: Option<i64>,
    /// Null where the room does not exist.
    version: Option<i64>,
    as_of_ms: i64,
    /// One entry a person, in order of arrival.
    participants: Vec<ParticipantAnswer<'a>>,
    next: Option<String>,
}

impl<'a> ParticipantsAnswer<'a> {
    /// Everybody.
    pub fn whole(room_id: &'a RoomId, found: &'a Participants) -> Self {
        Self::page(room_id, found, &found.participants, None)
    }

    /// These of them, with the page token of the next.
    pub fn page(
        room_id: &'a RoomId,
        found: &'a Participants,
        shown: &'a [Participant],
        next: Option<String>,
    ) -> Self {
        Self {
            room_id: room_id.as_str(),
            generation: found.room.map(|room| room.generation),
            version: found.room.map(|room| room.version),
            as_of_ms: found.as_of.timestamp_millis(),
            participants: shown.iter().map(ParticipantAnswer::new).collect(),
            next,
        }
    }
}

/// A person; `epoch` and the rest are those of their newest session, `status` and `lastSeenMs` the best of all.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Participant)]
pub(crate) struct ParticipantAnswer<'a> {
    user_id: &'a str,
    /// Since when the person has been in the room, over reconnects.
    arrived_at_ms: i64,
    #[serde(flatten)]
    newest: SessionAnswer<'a>,
    /// All sessions, newest first, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Vec<DeviceAnswer<'a>>>,
}

impl<'a> ParticipantAnswer<'a> {
    /// As others see the member.
    pub(crate) fn new(member: &'a Participant) -> Self {
        let newest = SessionAnswer::new(&member.sessions[0]);
        let devices = (member.sessions.len() > 1).then(|| {
            let sessions = member.sessions.iter();
            sessions.map(DeviceAnswer::new).collect()
        });
        Self {
            user_id: member.user_id.as_str(),
            arrived_at_ms: member.arrived_at.timestamp_millis(),
            newest: SessionAnswer {
                status: member.status().as_str(),
                last_seen_ms: member.last_seen_at().timestamp_millis(),
                ..newest
            },
            devices,
        }
    }
}

/// One of a person's sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Device)]
struct DeviceAnswer<'a> {
    /// Null for the unnamed device.
    device_id: Option<&'a str>,
    #[serde(flatten)]
    session: SessionAnswer<'a>,
}

impl<'a> DeviceAnswer<'a> {
    fn new(session: &'a LiveSession) -> Self {
        Self {
            device_id: session.device_id.name(),
            session: SessionAnswer::new(session),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session)]
struct SessionAnswer<'a> {
    epoch: i64,
    /// `connected` or `reconnecting`.
    status: &'static str,
    joined_at_ms: i64,
    last_seen_ms: i64,
    expires_at_ms: i64,
    #[schema(value_type = Option<Object>)]
    cursor: Option<&'a RawValue>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
    /// What a token or a server key vouched for; nobody else can set it.
    #[schema(value_type = Option<Object>)]
    info: Option<&'a RawValue>,
}

impl<'a> SessionAnswer<'a> {
    fn new(session: &'a LiveSession) -> Self {
        Self {
            epoch: session.epoch,
            status: session.status.as_str(),
            joined_at_ms: session.joined_at.timestamp_millis(),
            last_seen_ms: session.last_seen_at.timestamp_millis(),
            expires_at_ms: session.lease_expires_at.timestamp_millis(),
            cursor: session.cursor.as_deref(),
            metadata: session.metadata.as_deref(),
            info: session.info.as_deref(),
        }
    }
}
