//! How events look on the wire, whatever carries them.

use std::fmt::Write;

use actix_web::web::Bytes;
use bytestring::ByteString;
use serde::Serialize;

use super::rooms::{ParticipantAnswer, ParticipantsAnswer};
use crate::domain::{LeaseRules, RoomId};
use crate::stream::{Batch, Event};

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Snapshot(ParticipantsAnswer<'a>),
    Present(PresentBody<'a>),
    Left(LeftBody<'a>),
    RoomClosed(RoomClosedBody<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PresentBody<'a> {
    room_id: &'a str,
    generation: Option<i64>,
    version: Option<i64>,
    as_of_ms: i64,
    participant: ParticipantAnswer<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeftBody<'a> {
    room_id: &'a str,
    generation: i64,
    version: i64,
    as_of_ms: i64,
    user_id: &'a str,
    epoch: i64,
    reason: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoomClosedBody<'a> {
    room_id: &'a str,
    generation: i64,
    version: i64,
    as_of_ms: i64,
    reason: Option<&'static str>,
}

#[derive(Serialize)]
struct Message<'a> {
    r#type: &'static str,
    id: &'a str,
    #[serde(flatten)]
    body: Body<'a>,
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::Snapshot => "snapshot",
        Event::Joined(_) => "joined",
        Event::Updated(_) => "updated",
        Event::Left { .. } => "left",
        Event::RoomClosed { .. } => "room_closed",
    }
}

fn body<'a>(room: &'a RoomId, batch: &'a Batch, event: &'a Event, leases: &LeaseRules) -> Body<'a> {
    let room_id = room.as_str();
    let picture = &*batch.picture;
    let as_of_ms = picture.as_of.timestamp_millis();
    match event {
        Event::Snapshot => Body::Snapshot(ParticipantsAnswer::whole(room, picture, leases)),
        Event::Joined(place) | Event::Updated(place) => Body::Present(PresentBody {
            room_id,
            generation: picture.room.map(|room| room.generation),
            version: picture.room.map(|room| room.version),
            as_of_ms,
            participant: ParticipantAnswer::new(
                &picture.participants[*place],
                leases,
                picture.as_of,
            ),
        }),
        Event::Left {
            generation,
            version,
            user_id,
            epoch,
            reason,
        } => Body::Left(LeftBody {
            room_id,
            generation: *generation,
            version: *version,
            as_of_ms,
            user_id: user_id.as_str(),
            epoch: *epoch,
            reason: reason.map(|reason| reason.as_str()),
        }),
        Event::RoomClosed {
            generation,
            version,
            reason,
        } => Body::RoomClosed(RoomClosedBody {
            room_id,
            generation: *generation,
            version: *version,
            as_of_ms,
            reason: reason.map(|reason| reason.as_str()),
        }),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts, numbers and JSON that was JSON before")
}

/// A batch as server-sent events. Only the last event has the id: a reader that
/// lost the connection before it has not seen all of the batch.
pub fn sse(room: &RoomId, batch: &Batch, leases: &LeaseRules) -> Bytes {
    let write = || {
        let mut text = String::new();
        for (nth, event) in batch.events.iter().enumerate() {
            let data = json(&body(room, batch, event, leases));
            let id = match nth + 1 == batch.events.len() {
                true => format!("id: {}\n", batch.id),
                false => String::new(),
            };
            write!(text, "event: {}\n{id}data: {data}\n\n", name(event))
                .expect("writing to a String does not fail");
        }
        Bytes::from(text)
    };
    batch.sse.get_or_init(write).clone()
}

/// A batch as one JSON text an event, with the event's name in `type`.
pub fn messages<'a>(room: &RoomId, batch: &'a Batch, leases: &LeaseRules) -> &'a [ByteString] {
    batch.json.get_or_init(|| {
        batch
            .events
            .iter()
            .map(|event| {
                json(&Message {
                    r#type: name(event),
                    id: &batch.id,
                    body: body(room, batch, event, leases),
                })
                .into()
            })
            .collect()
    })
}
