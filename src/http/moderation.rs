//! Ending other people's sessions: a removal and the closing of a room.

use actix_web::web::{Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access_log::note;
use super::path::{ParticipantPath, RoomPath};
use super::{Access, Api, ApiError};
use crate::domain::Removal;
use crate::wire::ErrorBody;

/// The longest block: a year, in milliseconds.
const MAX_BLOCK_MS: i64 = 365 * 24 * 60 * 60 * 1_000;

/// Which session to remove, and for how long joins are refused.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct RemovalQuery {
    /// Only the session with this epoch; all sessions of the person if left out.
    #[param(minimum = 0)]
    epoch: Option<i64>,
    /// For how many milliseconds joins are refused with `blocked`; 0 lifts an earlier block.
    #[param(minimum = 0, maximum = 31_536_000_000_i64)]
    block_for_ms: Option<i64>,
}

/// Remove a person from a room
///
/// Now, and by row: whatever the person's devices do meanwhile. 204 also where they were not there.
/// Needs an admin of the room or a server key.
#[utoipa::path(
    delete,
    path = "/rooms/{roomId}/participants/{userId}",
    tag = "moderation",
    params(
        ("roomId" = String, Path, min_length = 1, max_length = 256),
        ("userId" = String, Path, min_length = 1, max_length = 256),
        RemovalQuery,
    ),
    responses(
        (status = 204, description = "The person is not in the room"),
        (status = 409, body = ErrorBody, description = "The session of `epoch` is stale; nothing changed, and no block began"),
    )
)]
pub async fn remove(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    ParticipantPath(room_id, user_id): ParticipantPath,
    Query(query): Query<RemovalQuery>,
) -> Result<HttpResponse, ApiError> {
    note(&request, &room_id, &user_id, query.epoch);
    access.admin_of(&room_id)?;
    if query.epoch.is_some_and(|epoch| epoch < 0) {
        return Err(ApiError::invalid("epoch must not be negative"));
    }
    if query
        .block_for_ms
        .is_some_and(|ms| !(0..=MAX_BLOCK_MS).contains(&ms))
    {
        return Err(ApiError::invalid(format!(
            "blockForMs must be from 0 to {MAX_BLOCK_MS}"
        )));
    }
    let removal = Removal {
        room_id,
        user_id,
        epoch: query.epoch,
        block_ms: query.block_for_ms,
    };
    match api.presence.remove(removal).await? {
        Ok(_) => Ok(HttpResponse::NoContent().finish()),
        Err(reason) => Err(reason.into()),
    }
}

/// Close a room
///
/// All sessions end as `room_closed`; a later join opens the next generation. 204 also where nobody
/// was there. Needs an admin of the room or a server key.
#[utoipa::path(
    delete,
    path = "/rooms/{roomId}",
    operation_id = "close_room",
    tag = "moderation",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 204, description = "Nobody is in the room"))
)]
pub async fn close(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    api.presence.close_room(room_id).await?;
    Ok(HttpResponse::NoContent().finish())
}
