//! What is known of a person: where they are, and where they were.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::history::SessionsAnswer;
use super::page::{self, Page};
use super::request::UserPath;
use super::{Access, Api, ApiError};
use crate::store::{JoinPlace, PastSession, Period};

/// Where a person is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserRoomsAnswer<'a> {
    user_id: &'a str,
    /// In order of the room's id.
    rooms: Vec<UserRoomAnswer<'a>>,
    next: Option<String>,
}

/// A room with a live session of the person; of several the newest.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserRoom)]
struct UserRoomAnswer<'a> {
    room_id: &'a str,
    generation: i64,
    epoch: i64,
    /// `connected` or `reconnecting`.
    status: &'static str,
    joined_at_ms: i64,
    last_seen_ms: i64,
    expires_at_ms: i64,
}

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
pub async fn user_rooms(
    api: Data<Api>,
    access: Access,
    UserPath(user_id): UserPath,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.may_locate(&user_id)?;
    let after = page.after_room()?;
    let limit = page.limit()?;
    let whose = user_id.clone();
    let mut found = api
        .presence
        .alone(move |store| {
            let (whose, after) = (whose.clone(), after.clone());
            async move { store.user_rooms(&whose, after.as_ref(), limit + 1).await }
        })
        .await?;
    let next = page::cut(&mut found, limit, |last| page::write(&[&last.room_id]));
    let rooms = found
        .iter()
        .map(|room| UserRoomAnswer {
            room_id: &room.room_id,
            generation: room.generation,
            epoch: room.epoch,
            status: api
                .leases
                .status(
                    room.as_of,
                    room.last_seen_at,
                    room.lease_ms.cast_unsigned(),
                    room.disconnected_at.is_some(),
                )
                .as_str(),
            joined_at_ms: room.joined_at.timestamp_millis(),
            last_seen_ms: room.last_seen_at.timestamp_millis(),
            expires_at_ms: room.lease_expires_at.timestamp_millis(),
        })
        .collect();
    Ok(HttpResponse::Ok().json(UserRoomsAnswer {
        user_id: user_id.as_str(),
        rooms,
        next,
    }))
}

/// Which of a person's sessions: those under way at some instant of the period.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PeriodQuery {
    /// In Unix milliseconds; from the oldest if left out.
    from: Option<i64>,
    /// In Unix milliseconds; to the newest if left out.
    to: Option<i64>,
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
pub async fn user_sessions(
    api: Data<Api>,
    access: Access,
    UserPath(user_id): UserPath,
    Query(period): Query<PeriodQuery>,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    let period = Period {
        from: period.from.map(|ms| instant("from", ms)).transpose()?,
        to: period.to.map(|ms| instant("to", ms)).transpose()?,
    };
    let before = page.after()?.map(read_place).transpose()?;
    let limit = page.limit()?;
    let mut found = api
        .presence
        .alone(move |store| {
            let user_id = user_id.clone();
            async move {
                store
                    .user_sessions(&user_id, period, before, limit + 1)
                    .await
            }
        })
        .await?;
    let next = page::cut(&mut found, limit, write_place);
    Ok(HttpResponse::Ok().json(SessionsAnswer::new(&found, next)))
}

fn instant(field: &str, ms: i64) -> Result<DateTime<Utc>, ApiError> {
    DateTime::from_timestamp_millis(ms).ok_or_else(|| {
        ApiError::invalid(format!("{field} must be an instant in Unix milliseconds"))
    })
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
        _ => Err(page::not_a_cursor()),
    }
}
