//! What a room was: its generations, the sessions of each, and when nobody served.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};

use super::page::{self, Page};
use super::path::{GenerationPath, RoomPath};
use super::period::PeriodQuery;
use super::{Access, Api, ApiError};
use crate::wire::{GenerationsAnswer, OutagesAnswer, SessionsAnswer};

/// List the generations of a room
///
/// Newest first. Needs an admin or a server key.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/generations",
    tag = "history",
    params(("roomId" = String, Path, min_length = 1, max_length = 256), Page),
    responses((status = 200, body = GenerationsAnswer))
)]
pub(crate) async fn generations(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    let before = page.after_number()?;
    let limit = page.limit()?;
    let mut found = api
        .presence
        .lifetimes(room_id.clone(), before, limit + 1)
        .await?;
    let next = page::cut(&mut found, limit, |last| {
        page::write(&[&last.generation.to_string()])
    });
    Ok(HttpResponse::Ok().json(GenerationsAnswer::new(&room_id, &found, next)))
}

/// List the sessions of one generation of a room
///
/// In order of their joins; none where there was no such generation. Needs an admin or a server key.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/generations/{generation}/sessions",
    tag = "history",
    params(
        ("roomId" = String, Path, min_length = 1, max_length = 256),
        ("generation" = i64, Path),
        Page,
    ),
    responses((status = 200, body = SessionsAnswer))
)]
pub(crate) async fn generation_sessions(
    api: Data<Api>,
    access: Access,
    GenerationPath(room_id, generation): GenerationPath,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    let after = page.after_number()?.unwrap_or(0);
    let limit = page.limit()?;
    let mut found = api
        .presence
        .generation_sessions(room_id, generation, after, limit + 1)
        .await?;
    let next = page::cut(&mut found, limit, |last| {
        page::write(&[&last.joined_version.to_string()])
    });
    Ok(HttpResponse::Ok().json(SessionsAnswer::new(&found, next)))
}

/// List the times in which nobody served
///
/// The newest first, and of every instance: leases stood still then, and no end was recorded. Needs an admin
/// of whatever rooms, or a server key.
#[utoipa::path(
    get,
    path = "/outages",
    tag = "history",
    params(PeriodQuery, Page),
    responses((status = 200, body = OutagesAnswer))
)]
pub(crate) async fn outages(
    api: Data<Api>,
    access: Access,
    Query(period): Query<PeriodQuery>,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin_of_any()?;
    let period = period.read()?;
    let before = page.after_number()?;
    let limit = page.limit()?;
    let mut found = api.presence.outages(period, before, limit + 1).await?;
    let next = page::cut(&mut found, limit, |last| {
        page::write(&[&last.number.to_string()])
    });
    Ok(HttpResponse::Ok().json(OutagesAnswer::new(&found, next)))
}
