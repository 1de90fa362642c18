//! What a room looks like: its participants and its figures.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::admission::read;
use super::page::{self, Page};
use super::path::RoomPath;
use super::{Access, Api, ApiError};
use crate::domain::{Participant, Participants, View};
use crate::wire::{CountAnswer, ErrorBody, ParticipantsAnswer, RoomAnswer, RoomsAnswer, view};

/// Which part of a room's list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ParticipantsPage {
    /// How many at most; all if left out.
    #[param(minimum = 1)]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
    /// `count`: how many they are, and nobody's name.
    view: Option<String>,
}

/// Everybody, or with `view=count` how many they are.
#[derive(ToSchema)]
#[schema(as = ParticipantsOrCount)]
#[serde(untagged)]
#[expect(dead_code, reason = "it says what the answers look like")]
enum ParticipantsOrCount<'a> {
    Participants(ParticipantsAnswer<'a>),
    Count(CountAnswer<'a>),
}

/// List who is in a room
///
/// Afterwards no expired member and no room without members is left in the tables for this room.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/participants",
    tag = "rooms",
    params(("roomId" = String, Path, min_length = 1, max_length = 256), ParticipantsPage),
    responses((status = 200, body = ParticipantsOrCount))
)]
pub(crate) async fn participants(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
    Query(page): Query<ParticipantsPage>,
) -> Result<HttpResponse, ApiError> {
    access.may_read(&room_id)?;
    if view(page.view.as_deref())? == View::Count {
        let counting = api.presence.count(room_id.clone());
        let count = read(&api, &access, &room_id, counting).await?;
        return Ok(HttpResponse::Ok().json(CountAnswer::new(&room_id, &count)));
    }
    let after = page.after.as_deref().map(read_token).transpose()?;
    let limit = page.limit.map_or(usize::MAX, |limit| limit as usize);
    if limit == 0 {
        return Err(ApiError::invalid("limit must be at least 1"));
    }
    let listing = api.presence.participants(room_id.clone());
    let found = read(&api, &access, &room_id, listing).await?;
    let rest = remaining(&found, after);
    let shown = &rest[..limit.min(rest.len())];
    let next = shown
        .last()
        .filter(|_| shown.len() < rest.len())
        .zip(found.room)
        .map(|(last, room)| write_token((room.generation, last.arrival)));
    let answer = ParticipantsAnswer::page(&room_id, &found, shown, next);
    Ok(HttpResponse::Ok().json(answer))
}

/// Those who arrived after the page token; a room that was opened anew since starts from its first.
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
fn write_token((generation, arrival): (i64, i64)) -> String {
    format!("{generation}.{arrival}")
}

fn read_token(text: &str) -> Result<(i64, i64), ApiError> {
    text.split_once('.')
        .and_then(|(generation, arrival)| Some((generation.parse().ok()?, arrival.parse().ok()?)))
        .ok_or_else(|| ApiError::invalid("after must be the next of an earlier answer"))
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
pub(crate) async fn room(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    let listing = api.presence.participants(room_id.clone());
    let found = read(&api, &access, &room_id, listing).await?;
    let head = found.room.ok_or_else(ApiError::room_not_found)?;
    Ok(HttpResponse::Ok().json(RoomAnswer::new(&room_id, head, &found)))
}

/// Which rooms.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RoomsQuery {
    /// Only rooms whose id starts like this.
    prefix: Option<String>,
}

impl RoomsQuery {
    /// Empty where it was left out.
    pub(crate) fn prefix(self) -> Result<String, ApiError> {
        let prefix = self.prefix.unwrap_or_default();
        check_prefix(&prefix)?;
        Ok(prefix)
    }
}

/// Any text that could start an id.
pub(super) fn check_prefix(prefix: &str) -> Result<(), ApiError> {
    match prefix.chars().any(char::is_control) {
        true => Err(ApiError::invalid(
            "prefix must not contain control characters",
        )),
        false => Ok(()),
    }
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
pub(crate) async fn rooms(
    api: Data<Api>,
    access: Access,
    Query(query): Query<RoomsQuery>,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    let prefix = query.prefix()?;
    access.may_list(&prefix)?;
    let after = page.after_room()?;
    let limit = page.limit()?;
    let mut found = api.presence.rooms(prefix, after, limit + 1).await?;
    let next = page::cut(&mut found, limit, |last| {
        page::write(&[last.room_id.as_str()])
    });
    Ok(HttpResponse::Ok().json(RoomsAnswer::new(&found, next)))
}
