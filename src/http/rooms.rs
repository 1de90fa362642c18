//! What a room looks like: its participants and its figures.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::request::RoomPath;
use super::{Api, ApiError};
use crate::domain::LeaseRules;
use crate::store::{Participant, Participants, Session};

#[derive(Deserialize)]
pub struct Page {
    limit: Option<usize>,
    after: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ParticipantsAnswer<'a> {
    room_id: &'a str,
    generation: Option<i64>,
    version: Option<i64>,
    as_of_ms: i64,
    participants: Vec<ParticipantAnswer<'a>>,
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ParticipantAnswer<'a> {
    user_id: &'a str,
    #[serde(flatten)]
    newest: SessionAnswer<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Vec<DeviceAnswer<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceAnswer<'a> {
    device_id: Option<&'a str>,
    #[serde(flatten)]
    session: SessionAnswer<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionAnswer<'a> {
    epoch: i64,
    status: &'static str,
    joined_at_ms: i64,
    last_seen_ms: i64,
    expires_at_ms: i64,
    cursor: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
}

impl<'a> SessionAnswer<'a> {
    fn new(session: &'a Session, leases: &LeaseRules, at: DateTime<Utc>) -> Self {
        Self {
            epoch: session.epoch,
            status: leases
                .status(
                    at,
                    session.last_seen_at,
                    session.lease_ms,
                    session.disconnected,
                )
                .as_str(),
            joined_at_ms: session.joined_at.timestamp_millis(),
            last_seen_ms: session.last_seen_at.timestamp_millis(),
            expires_at_ms: session.lease_expires_at.timestamp_millis(),
            cursor: session.cursor.as_deref(),
            metadata: session.metadata.as_deref(),
        }
    }
}

impl<'a> ParticipantAnswer<'a> {
    fn new(person: &'a Participant, leases: &LeaseRules, at: DateTime<Utc>) -> Self {
        let devices = (person.sessions.len() > 1).then(|| {
            person
                .sessions
                .iter()
                .map(|session| DeviceAnswer {
                    device_id: session.device_id.name(),
                    session: SessionAnswer::new(session, leases, at),
                })
                .collect()
        });
        Self {
            user_id: person.user_id.as_str(),
            newest: SessionAnswer::new(&person.sessions[0], leases, at),
            devices,
        }
    }
}

/// `GET /rooms/{roomId}/participants`
pub async fn participants(
    api: Data<Api>,
    RoomPath(room_id): RoomPath,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    let after = page.after.as_deref().map(read_cursor).transpose()?;
    let limit = page.limit.unwrap_or(usize::MAX);
    if limit == 0 {
        return Err(ApiError::invalid("limit must be at least 1"));
    }
    let found = api.presence.participants(room_id.clone()).await?;
    let rest = remaining(&found, after);
    let shown = &rest[..limit.min(rest.len())];
    let next = shown
        .last()
        .filter(|_| shown.len() < rest.len())
        .zip(found.room)
        .map(|(last, room)| write_cursor((room.generation, last.arrival)));
    Ok(HttpResponse::Ok().json(ParticipantsAnswer {
        room_id: room_id.as_str(),
        generation: found.room.map(|room| room.generation),
        version: found.room.map(|room| room.version),
        as_of_ms: found.as_of.timestamp_millis(),
        participants: shown
            .iter()
            .map(|person| ParticipantAnswer::new(person, &api.leases, found.as_of))
            .collect(),
        next,
    }))
}

/// Those who arrived after the cursor; a room that was opened anew since starts from its first.
fn remaining(found: &Participants, after: Option<(i64, i64)>) -> &[Participant] {
    let arrival = match (after, found.room) {
        (Some((generation, arrival)), Some(room)) if generation == room.generation => arrival,
        _ => 0,
    };
    let start = found
        .participants
        .partition_point(|person| person.arrival <= arrival);
    &found.participants[start..]
}

/// Opaque to clients: the generation and the place in the order of arrival.
fn write_cursor((generation, arrival): (i64, i64)) -> String {
    format!("{generation}.{arrival}")
}

fn read_cursor(text: &str) -> Result<(i64, i64), ApiError> {
    text.split_once('.')
        .and_then(|(generation, arrival)| Some((generation.parse().ok()?, arrival.parse().ok()?)))
        .ok_or_else(|| ApiError::invalid("after must be the next of an earlier answer"))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoomAnswer<'a> {
    room_id: &'a str,
    generation: i64,
    opened_at_ms: i64,
    member_count: usize,
    version: i64,
}

/// `GET /rooms/{roomId}`
pub async fn room(api: Data<Api>, RoomPath(room_id): RoomPath) -> Result<HttpResponse, ApiError> {
    let found = api.presence.participants(room_id.clone()).await?;
    let head = found.room.ok_or_else(ApiError::room_not_found)?;
    Ok(HttpResponse::Ok().json(RoomAnswer {
        room_id: room_id.as_str(),
        generation: head.generation,
        opened_at_ms: head.opened_at.timestamp_millis(),
        member_count: found.participants.len(),
        version: head.version,
    }))
}
