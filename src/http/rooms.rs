//! What a room looks like: its participants and its figures.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::page::{self, Page};
use super::request::RoomPath;
use super::{Access, Api, ApiError, ErrorBody};
use crate::domain::{LeaseRules, RoomId};
use crate::store::{Participant, Participants, Session};

/// Which part of a room's list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ParticipantsPage {
    /// How many at most; all if left out.
    #[param(minimum = 1)]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Who is in a room, at one instant.
#[derive(Serialize, ToSchema)]
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

/// A person; `epoch` and the rest are those of their newest session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Participant)]
pub struct ParticipantAnswer<'a> {
    user_id: &'a str,
    #[serde(flatten)]
    newest: SessionAnswer<'a>,
    /// All sessions, newest first, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Vec<DeviceAnswer<'a>>>,
}

/// One of a person's sessions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Device)]
struct DeviceAnswer<'a> {
    /// Null for the unnamed device.
    device_id: Option<&'a str>,
    #[serde(flatten)]
    session: SessionAnswer<'a>,
}

#[derive(Serialize, ToSchema)]
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
    pub fn new(person: &'a Participant, leases: &LeaseRules, at: DateTime<Utc>) -> Self {
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

impl<'a> ParticipantsAnswer<'a> {
    /// Everybody.
    pub fn whole(room_id: &'a RoomId, found: &'a Participants, leases: &LeaseRules) -> Self {
        Self {
            room_id: room_id.as_str(),
            generation: found.room.map(|room| room.generation),
            version: found.room.map(|room| room.version),
            as_of_ms: found.as_of.timestamp_millis(),
            participants: found
                .participants
                .iter()
                .map(|person| ParticipantAnswer::new(person, leases, found.as_of))
                .collect(),
            next: None,
        }
    }
}

/// List who is in a room
///
/// Afterwards no expired member and no room without members is left in the tables for this room.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/participants",
    tag = "rooms",
    params(("roomId" = String, Path, min_length = 1, max_length = 256), ParticipantsPage),
    responses((status = 200, body = ParticipantsAnswer))
)]
pub async fn participants(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
    Query(page): Query<ParticipantsPage>,
) -> Result<HttpResponse, ApiError> {
    access.may_read(&room_id)?;
    let after = page.after.as_deref().map(read_cursor).transpose()?;
    let limit = page.limit.map_or(usize::MAX, |limit| limit as usize);
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

/// A room's figures.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Room)]
pub struct RoomAnswer<'a> {
    room_id: &'a str,
    generation: i64,
    opened_at_ms: i64,
    /// Live persons.
    member_count: usize,
    version: i64,
}

/// See whether a room exists, and how full it is
#[utoipa::path(
    get,
    path = "/rooms/{roomId}",
    tag = "rooms",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    responses(
        (status = 200, body = RoomAnswer),
        (status = 404, body = ErrorBody, description = "`room_not_found`: nobody is in it"),
    )
)]
pub async fn room(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    access.may_read(&room_id)?;
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

/// Which rooms.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RoomsQuery {
    /// Only rooms whose id starts like this.
    prefix: Option<String>,
}

/// Rooms with a live member, in order of id.
#[derive(Serialize, ToSchema)]
pub struct RoomsAnswer<'a> {
    rooms: Vec<RoomAnswer<'a>>,
    next: Option<String>,
}

/// List rooms
///
/// A client lists only within a prefix that its token names.
#[utoipa::path(
    get,
    path = "/rooms",
    tag = "rooms",
    params(RoomsQuery, Page),
    responses((status = 200, body = RoomsAnswer))
)]
pub async fn rooms(
    api: Data<Api>,
    access: Access,
    Query(query): Query<RoomsQuery>,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    let prefix = query.prefix.unwrap_or_default();
    if prefix.chars().any(char::is_control) {
        return Err(ApiError::invalid(
            "prefix must not contain control characters",
        ));
    }
    access.may_list(&prefix)?;
    let after = page.after_room()?;
    let limit = page.limit()?;
    let mut found = api
        .presence
        .alone(move |store| {
            let (prefix, after) = (prefix.clone(), after.clone());
            async move { store.list_rooms(&prefix, after.as_ref(), limit + 1).await }
        })
        .await?;
    let next = page::cut(&mut found, limit, |last| page::write(&[&last.room_id]));
    let rooms = found
        .iter()
        .map(|room| RoomAnswer {
            room_id: &room.room_id,
            generation: room.generation,
            opened_at_ms: room.opened_at.timestamp_millis(),
            // A count is not negative.
            member_count: usize::try_from(room.member_count).unwrap_or(0),
            version: room.version,
        })
        .collect();
    Ok(HttpResponse::Ok().json(RoomsAnswer { rooms, next }))
}
