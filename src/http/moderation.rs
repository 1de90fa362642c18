//! Ending other people's sessions, and changing what is shown of them.

use actix_web::web::{Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access_log::note;
use super::body::Json;
use super::path::{ParticipantPath, RoomPath, UserPath};
use super::{Access, Api, ApiError};
use crate::domain::{Decision, Expulsion, Removal, RoomClosing, UserId};
use crate::wire::{ErrorBody, MetadataBody};

/// The longest block: a year, in milliseconds.
const MAX_BLOCK_MS: i64 = 365 * 24 * 60 * 60 * 1_000;

/// The longest reason, in characters.
const MAX_REASON: usize = 500;

/// Which session to remove.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemovalQuery {
    /// Only the session with this epoch; all sessions of the person if left out.
    #[param(minimum = 0)]
    epoch: Option<i64>,
}

/// For how long it holds, and what the history keeps of it.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct DecisionQuery {
    /// For how many milliseconds joins are refused with `blocked`; 0 lifts an earlier block.
    #[param(minimum = 0, maximum = 31_536_000_000_i64)]
    block_for_ms: Option<i64>,
    /// Who decided it: 1 to 256 characters; a token's subject if left out.
    #[param(min_length = 1, max_length = 256)]
    by: Option<String>,
    /// Why: 1 to 500 characters.
    #[param(min_length = 1, max_length = 500)]
    reason: Option<String>,
}

impl DecisionQuery {
    fn block_ms(&self) -> Result<Option<i64>, ApiError> {
        match self.block_for_ms {
            Some(ms) if !(0..=MAX_BLOCK_MS).contains(&ms) => Err(ApiError::invalid(format!(
                "blockForMs must be from 0 to {MAX_BLOCK_MS}"
            ))),
            block_ms => Ok(block_ms),
        }
    }

    fn decision(self, access: &Access) -> Result<Decision, ApiError> {
        let by = match self.by {
            Some(by) => Some(UserId::parse(by).map_err(|_| {
                ApiError::invalid(
                    "by must have 1 to 256 characters, none of them a control character",
                )
            })?),
            None => access.subject().cloned(),
        };
        let is_fit = |reason: &String| {
            (1..=MAX_REASON).contains(&reason.chars().count())
                && !reason.chars().any(char::is_control)
        };
        if self.reason.as_ref().is_some_and(|reason| !is_fit(reason)) {
            return Err(ApiError::invalid(format!(
                "reason must have 1 to {MAX_REASON} characters, none of them a control character"
            )));
        }
        Ok(Decision {
            by,
            reason: self.reason,
        })
    }
}

/// Remove a person from a room
///
/// Now, and by row: whatever the person's devices do meanwhile. 204 also where they were not there.
/// While a block holds they may not read the room either. Needs an admin of the room or a server key.
#[utoipa::path(
    delete,
    path = "/rooms/{roomId}/participants/{userId}",
    tag = "moderation",
    params(
        ("roomId" = String, Path, min_length = 1, max_length = 256),
        ("userId" = String, Path, min_length = 1, max_length = 256),
        RemovalQuery,
        DecisionQuery,
    ),
    responses(
        (status = 204, description = "The person is not in the room"),
        (status = 409, body = ErrorBody, description = "The session of `epoch` is stale; nothing changed, and no block began"),
    )
)]
pub(crate) async fn remove(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    ParticipantPath(room_id, user_id): ParticipantPath,
    Query(query): Query<RemovalQuery>,
    Query(decision): Query<DecisionQuery>,
) -> Result<HttpResponse, ApiError> {
    note(&request, &room_id, &user_id, query.epoch);
    access.admin_of(&room_id)?;
    if query.epoch.is_some_and(|epoch| epoch < 0) {
        return Err(ApiError::invalid("epoch must not be negative"));
    }
    let removal = Removal {
        room_id,
        user_id,
        epoch: query.epoch,
        block_ms: decision.block_ms()?,
        decision: decision.decision(&access)?,
    };
    match api.presence.remove(removal).await? {
        Ok(_) => Ok(HttpResponse::NoContent().finish()),
        Err(reason) => Err(reason.into()),
    }
}

/// Close a room
///
/// All sessions end as `room_closed`; a later join opens the next generation, with `blockForMs` not
/// before that is over. 204 also where nobody was there. Needs an admin of the room or a server key.
#[utoipa::path(
    delete,
    path = "/rooms/{roomId}",
    operation_id = "close_room",
    tag = "moderation",
    params(("roomId" = String, Path, min_length = 1, max_length = 256), DecisionQuery),
    responses((status = 204, description = "Nobody is in the room"))
)]
pub(crate) async fn close(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
    Query(decision): Query<DecisionQuery>,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    let closing = RoomClosing {
        room_id,
        block_ms: decision.block_ms()?,
        decision: decision.decision(&access)?,
    };
    api.presence.close_room(closing).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Remove a person from all rooms
///
/// At once, also against joins that are under way; 204 also where they were in none. Needs an admin
/// of all rooms or a server key.
#[utoipa::path(
    delete,
    path = "/users/{userId}/sessions",
    operation_id = "remove_everywhere",
    tag = "moderation",
    params(("userId" = String, Path, min_length = 1, max_length = 256), DecisionQuery),
    responses((status = 204, description = "The person is in no room"))
)]
pub(crate) async fn expel(
    api: Data<Api>,
    access: Access,
    UserPath(user_id): UserPath,
    Query(decision): Query<DecisionQuery>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    let expulsion = Expulsion {
        user_id,
        block_ms: decision.block_ms()?,
        decision: decision.decision(&access)?,
    };
    api.presence.expel(expulsion).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Change a member's metadata
///
/// Renews no lease: a back end that changes what is shown keeps nobody alive who is gone. Needs an
/// admin of the room or a server key.
#[utoipa::path(
    patch,
    path = "/rooms/{roomId}/participants/{userId}",
    operation_id = "set_metadata",
    tag = "moderation",
    params(
        ("roomId" = String, Path, min_length = 1, max_length = 256),
        ("userId" = String, Path, min_length = 1, max_length = 256),
    ),
    request_body = MetadataBody,
    responses(
        (status = 204, description = "Changed"),
        (status = 404, body = ErrorBody, description = "`member_not_found`: the person is not in the room"),
        (status = 409, body = ErrorBody, description = "The session of `epoch` is stale; `code` says how it ended"),
    )
)]
pub(crate) async fn set_metadata(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    ParticipantPath(room_id, user_id): ParticipantPath,
    Json(body): Json<MetadataBody>,
) -> Result<HttpResponse, ApiError> {
    note(&request, &room_id, &user_id, None);
    access.admin_of(&room_id)?;
    let change = body.read(room_id, user_id, &api.fields)?;
    match api.presence.set_metadata(change).await? {
        Ok(true) => Ok(HttpResponse::NoContent().finish()),
        Ok(false) => Err(ApiError::member_not_found()),
        Err(reason) => Err(reason.into()),
    }
}
