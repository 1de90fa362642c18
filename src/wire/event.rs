//! How events look, as server-sent events and as messages of a socket.

use std::fmt::Write;

use serde::Serialize;
use utoipa::ToSchema;

use super::Code;
use super::count::CountAnswer;
use super::participants::{ParticipantAnswer, ParticipantsAnswer};
use crate::domain::{EndReason, Event, Participants, RoomCount, RoomId, UserId};

/// What an event carries; which of them, its name says.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Event)]
pub enum EventBody<'a> {
    /// `snapshot`
    Snapshot(ParticipantsAnswer<'a>),
    /// `joined`, `updated`
    Present(PresentBody<'a>),
    /// `left`
    Left(LeftBody<'a>),
    /// `room_closed`
    RoomClosed(RoomClosedBody<'a>),
    /// `stale`
    Stale(StaleBody<'a>),
    /// `count`
    Count(CountAnswer<'a>),
    /// `removed`
    Removed(RemovedBody<'a>),
    /// `misdirected`
    Misdirected(MisdirectedBody<'a>),
}

/// `joined` and `updated`: a member as they are now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PresentEvent)]
pub struct PresentBody<'a> {
    room_id: &'a str,
    generation: Option<i64>,
    version: Option<i64>,
    as_of_ms: i64,
    /// How many persons are in the room at `asOfMs`.
    member_count: usize,
    participant: ParticipantAnswer<'a>,
}

/// `left`: a member is gone, with the last of their sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LeftEvent)]
pub struct LeftBody<'a> {
    room_id: &'a str,
    generation: i64,
    version: i64,
    as_of_ms: i64,
    /// How many persons are in the room at `asOfMs`.
    member_count: usize,
    user_id: &'a str,
    epoch: i64,
    /// Null where the history is purged.
    reason: Option<&'static str>,
}

/// `room_closed`: this lifetime of the room is over.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RoomClosedEvent)]
pub struct RoomClosedBody<'a> {
    room_id: &'a str,
    generation: i64,
    version: i64,
    as_of_ms: i64,
    /// Null where the history is purged.
    reason: Option<&'static str>,
}

/// `stale`: the picture is not kept up, as the database does not answer; a `snapshot` follows when it does.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StaleEvent)]
pub struct StaleBody<'a> {
    room_id: &'a str,
    /// Of the picture that was told last.
    as_of_ms: i64,
}

/// `removed`: the reader was put out of the room for a time; the stream ends with it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RemovedEvent)]
pub struct RemovedBody<'a> {
    room_id: &'a str,
    user_id: &'a str,
    /// As the 403 says it that a new stream is answered.
    code: &'static str,
}

/// `misdirected`: another cell has the room; the stream ends with it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MisdirectedEvent)]
pub struct MisdirectedBody<'a> {
    room_id: &'a str,
    /// As the 421 says it that a new stream is answered.
    code: &'static str,
}

/// One event of a stream, as the standard of server-sent events parses it.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only its schema is used: it is written as text")]
pub struct ServerSentEvent {
    /// Its name.
    #[schema(nullable = false)]
    event: Option<String>,
    /// There on the last of a batch; comes back as `Last-Event-ID`.
    #[schema(nullable = false)]
    id: Option<String>,
    /// One JSON object: an `Event`.
    #[schema(nullable = false)]
    data: Option<String>,
    /// How soon to come back, in milliseconds.
    #[schema(nullable = false)]
    retry: Option<i64>,
}

/// An event on a socket.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventMessage<'a> {
    /// `snapshot`, `joined`, `updated`, `left`, `room_closed`, `count`, `stale`, `removed` or `misdirected`.
    r#type: &'static str,
    /// Stands for the whole picture after the batch that the event belongs to.
    id: &'a str,
    #[serde(flatten)]
    body: EventBody<'a>,
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::Snapshot => "snapshot",
        Event::Joined(_) => "joined",
        Event::Updated(_) => "updated",
        Event::Left { .. } => "left",
        Event::RoomClosed { .. } => "room_closed",
        Event::Stale => "stale",
        Event::Removed { .. } => "removed",
    }
}

fn body<'a>(room_id: &'a RoomId, picture: &'a Participants, event: &'a Event) -> EventBody<'a> {
    let as_of_ms = picture.as_of.timestamp_millis();
    match event {
        Event::Snapshot => EventBody::Snapshot(ParticipantsAnswer::whole(room_id, picture)),
        Event::Joined(place) | Event::Updated(place) => EventBody::Present(PresentBody {
            room_id: room_id.as_str(),
            generation: picture.room.map(|room| room.generation),
            version: picture.room.map(|room| room.version),
            as_of_ms,
            member_count: picture.participants.len(),
            participant: ParticipantAnswer::new(&picture.participants[*place]),
        }),
        Event::Left {
            generation,
            version,
            user_id,
            epoch,
            reason,
        } => EventBody::Left(LeftBody {
            room_id: room_id.as_str(),
            generation: *generation,
            version: *version,
            as_of_ms,
            member_count: picture.participants.len(),
            user_id: user_id.as_str(),
            epoch: *epoch,
            reason: reason.map(EndReason::as_str),
        }),
        Event::Removed { user_id } => EventBody::Removed(removed(room_id, user_id)),
        Event::Stale => EventBody::Stale(StaleBody {
            room_id: room_id.as_str(),
            as_of_ms,
        }),
        Event::RoomClosed {
            generation,
            version,
            reason,
        } => EventBody::RoomClosed(RoomClosedBody {
            room_id: room_id.as_str(),
            generation: *generation,
            version: *version,
            as_of_ms,
            reason: reason.map(EndReason::as_str),
        }),
    }
}

fn removed<'a>(room_id: &'a RoomId, user_id: &'a UserId) -> RemovedBody<'a> {
    RemovedBody {
        room_id: room_id.as_str(),
        user_id: user_id.as_str(),
        code: Code::Blocked.as_str(),
    }
}

/// An event of this name.
pub(super) fn written(name: &'static str, body: &impl Serialize) -> Written {
    Written {
        name,
        data: json(body),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts, numbers and JSON that was JSON before")
}

/// An event as its name and the JSON object that it carries.
#[derive(Debug)]
pub struct Written {
    name: &'static str,
    data: String,
}

/// Events about who is in a room.
pub fn events(room_id: &RoomId, picture: &Participants, events: &[Event]) -> Vec<Written> {
    let written = |event| Written {
        name: name(event),
        data: json(&body(room_id, picture, event)),
    };
    events.iter().map(written).collect()
}

/// Events to those who follow a room's count: each tells what it is, that it is not kept up, or that the reader is put out.
pub fn count_events(room_id: &RoomId, count: &RoomCount, events: &[Event]) -> Vec<Written> {
    let written = |event: &Event| match event {
        Event::Removed { user_id } => Written {
            name: name(event),
            data: json(&removed(room_id, user_id)),
        },
        Event::Stale => Written {
            name: name(event),
            data: json(&StaleBody {
                room_id: room_id.as_str(),
                as_of_ms: count.as_of.timestamp_millis(),
            }),
        },
        _ => Written {
            name: "count",
            data: json(&CountAnswer::new(room_id, count)),
        },
    };
    events.iter().map(written).collect()
}

/// The last event of a room that another cell has.
pub fn misdirected(room_id: &RoomId) -> Written {
    let body = EventBody::Misdirected(MisdirectedBody {
        room_id: room_id.as_str(),
        code: Code::Misdirected.as_str(),
    });
    written("misdirected", &body)
}

/// A batch of events as server-sent events. Only the last one has the id: a reader that
/// lost the connection before it has not seen all of the batch.
pub fn sse(events: &[Written], id: &str) -> String {
    let mut text = String::new();
    for (nth, Written { name, data }) in events.iter().enumerate() {
        let id = match nth + 1 == events.len() {
            true => format!("id: {id}\n"),
            false => String::new(),
        };
        write!(text, "event: {name}\n{id}data: {data}\n\n")
            .expect("writing to a String does not fail");
    }
    text
}

/// A batch of events as one JSON text each, in the shape of [`EventMessage`].
pub fn messages(events: &[Written], id: &str) -> Vec<String> {
    let message = |event: &Written| {
        // The fields of an object that has some, behind two of ours; neither needs escaping.
        let fields = event.data.trim_start_matches('{');
        format!(r#"{{"type":"{}","id":"{id}",{fields}"#, event.name)
    };
    events.iter().map(message).collect()
}
