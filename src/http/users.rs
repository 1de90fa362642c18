//! What is known of a person: where they are, and where they were.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use chrono::DateTime;

use super::batches::check_size;
use super::body::BatchJson;
use super::page::{self, Page};
use super::path::UserPath;
use super::period::PeriodQuery;
use super::{Access, Api, ApiError};
use crate::domain::{JoinPlace, PastSession};
use crate::wire::{
    ErasedAnswer, ErrorBody, SessionsAnswer, UserRoomsAnswer, WhereaboutsAnswer, WhereaboutsBody,
};

/// List the rooms that a person is in
///
/// A client sees only its own.
#[utoipa::path(
    get,
    path = "/users/{userId}/rooms",
    tag = "users",
    params(("userId" = String, Path, min_length = 1, max_length = 256), Page),
    responses((status = 200, body = UserRoomsAnswer))
)]
pub(crate) async fn user_rooms(
    api: Data<Api>,
    access: Access,
    UserPath(user_id): UserPath,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.may_locate(&user_id)?;
    let after = page.after_room()?;
    let limit = page.limit()?;
    let mut found = api
        .presence
        .user_rooms(user_id.clone(), after, limit + 1)
        .await?;
    let next = page::cut(&mut found, limit, |last| {
        page::write(&[last.room_id.as_str()])
    });
    Ok(HttpResponse::Ok().json(UserRoomsAnswer::new(&user_id, &found, next)))
}

/// Say where people are
///
/// For each in the order of the question: the rooms that they are in, or when they were last seen.
/// A client sees only itself.
#[utoipa::path(
    post,
    path = "/whereabouts",
    tag = "users",
    request_body = WhereaboutsBody,
    responses(
        (status = 200, body = WhereaboutsAnswer),
        (status = 400, body = ErrorBody, description = "`invalid_request`; or `batch_too_large`: more people than `LEASEHOLD_MAX_BATCH_ITEMS`"),
    )
)]
pub(crate) async fn whereabouts(
    api: Data<Api>,
    access: Access,
    BatchJson(body): BatchJson<WhereaboutsBody>,
) -> Result<HttpResponse, ApiError> {
    let users = body.read()?;
    check_size(&api, users.len())?;
    for user in &users {
        access.may_locate(user)?;
    }
    let found = api.presence.whereabouts(users).await?;
    Ok(HttpResponse::Ok().json(WhereaboutsAnswer::new(&found)))
}

/// List a person's sessions in all rooms
///
/// The newest join first. Needs an admin or a server key.
#[utoipa::path(
    get,
    path = "/users/{userId}/sessions",
    tag = "history",
    params(("userId" = String, Path, min_length = 1, max_length = 256), PeriodQuery, Page),
    responses((status = 200, body = SessionsAnswer))
)]
pub(crate) async fn user_sessions(
    api: Data<Api>,
    access: Access,
    UserPath(user_id): UserPath,
    Query(period): Query<PeriodQuery>,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    let period = period.read()?;
    let before = page.after()?.map(read_place).transpose()?;
    let limit = page.limit()?;
    let mut found = api
        .presence
        .user_sessions(user_id, period, before, limit + 1)
        .await?;
    let next = page::cut(&mut found, limit, write_place);
    Ok(HttpResponse::Ok().json(SessionsAnswer::new(&found, next)))
}

/// Erase a person from the history
///
/// Their sessions end, and a pseudonym that is written down nowhere takes the place of their id; what they and
/// others said of them goes. Should they come back, their epochs still rise. Needs an admin or a server key.
#[utoipa::path(
    delete,
    path = "/users/{userId}/history",
    tag = "history",
    params(("userId" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 200, body = ErasedAnswer))
)]
pub(crate) async fn erase(
    api: Data<Api>,
    access: Access,
    UserPath(user_id): UserPath,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    let sessions_erased = api.presence.erase(user_id).await?;
    Ok(HttpResponse::Ok().json(ErasedAnswer { sessions_erased }))
}

fn write_place(session: &PastSession) -> String {
    page::write(&[
        &session.joined_at.timestamp_micros().to_string(),
        &session.joined_event_id.to_string(),
    ])
}

fn read_place([micros, event_id]: [String; 2]) -> Result<JoinPlace, ApiError> {
    let joined_at = micros
        .parse()
        .ok()
        .and_then(DateTime::from_timestamp_micros);
    match (joined_at, event_id.parse()) {
        (Some(joined_at), Ok(event_id)) => Ok(JoinPlace {
            joined_at,
            event_id,
        }),
        _ => Err(page::not_a_token()),
    }
}
