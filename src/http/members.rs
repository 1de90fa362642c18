//! Being in a room: joining, renewing, leaving.

use std::time::Instant;

use actix_web::web::{Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::access_log::{note, note_session};
use super::body::{Json, JsonOrText};
use super::path::RoomPath;
use super::{Access, Api, ApiError};
use crate::domain::{Heartbeat, SessionKey, StaleReason};
use crate::wire::{CursorBody, ErrorBody, HeartbeatBody, JoinAnswer, JoinBody, SessionBody};

/// What a join is answered with beside the session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct JoinQuery {
    #[param(inline)]
    include: Option<Include>,
}

/// The room's list as of the join, from the same transaction.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Include {
    Participants,
}

/// Join a room
///
/// Each join of a user in a room has a higher epoch; it replaces the session on the same device.
#[utoipa::path(
    post,
    path = "/rooms/{roomId}/join",
    tag = "members",
    params(("roomId" = String, Path, min_length = 1, max_length = 256), JoinQuery),
    request_body = JoinBody,
    responses(
        (status = 200, body = JoinAnswer),
        (status = 403, body = ErrorBody, description = "`forbidden`, `room_locked`; or `blocked`: the user was removed, or the room closed, and may not be joined yet"),
        (status = 409, body = ErrorBody, description = "`already_present`, `room_full`, `too_many_devices` or `too_many_rooms`; or how the session ended that was begun by the first join with this `joinId`"),
    )
)]
pub(crate) async fn join(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Query(query): Query<JoinQuery>,
    Json(body): Json<JoinBody>,
) -> Result<HttpResponse, ApiError> {
    let join = body.read(room_id, &api.fields)?;
    note(&request, &join.room_id, &join.user_id, None);
    access.may_act_as(&join.user_id, &join.room_id)?;
    let join = access.vouch(join)?;
    let (joined, listed) = match query.include {
        Some(Include::Participants) => {
            let (joined, listed) = api.presence.join_and_list(join.clone()).await??;
            (joined, Some(listed))
        }
        None => (api.presence.join(join.clone()).await??, None),
    };
    note(&request, &join.room_id, &join.user_id, Some(joined.epoch));
    Ok(HttpResponse::Ok().json(JoinAnswer::new(&join, &joined, listed.as_deref())))
}

/// Renew a lease
///
/// Only the current epoch of a device can, and only while its lease lives.
#[utoipa::path(
    post,
    path = "/rooms/{roomId}/heartbeat",
    tag = "members",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    request_body = HeartbeatBody,
    responses(
        (status = 204, description = "Renewed"),
        (status = 409, body = ErrorBody, description = "The session is stale; `code` says how it ended"),
    )
)]
pub(crate) async fn heartbeat(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Json(body): Json<HeartbeatBody>,
) -> Result<HttpResponse, ApiError> {
    let heartbeat = body.read(room_id, &api.fields)?;
    note_session(&request, &heartbeat.session);
    access.may_act_for(&heartbeat.session)?;
    renew(&api, heartbeat).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Move a cursor
///
/// Counts as a heartbeat, and never creates a member.
#[utoipa::path(
    post,
    path = "/rooms/{roomId}/cursor",
    operation_id = "cursor",
    tag = "members",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    request_body = CursorBody,
    responses(
        (status = 204, description = "Moved"),
        (status = 409, body = ErrorBody, description = "The session is stale; `code` says how it ended"),
    )
)]
pub(crate) async fn move_cursor(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Json(body): Json<CursorBody>,
) -> Result<HttpResponse, ApiError> {
    let heartbeat = body.read(room_id, &api.fields)?;
    note_session(&request, &heartbeat.session);
    access.may_act_for(&heartbeat.session)?;
    renew(&api, heartbeat).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Leave a room
///
/// 204 where well-formed; a stale epoch changes nothing. The body may be labelled `text/plain`,
/// so that a page can send it while it unloads.
#[utoipa::path(
    post,
    path = "/rooms/{roomId}/leave",
    tag = "members",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    request_body(content((SessionBody = "application/json"), (String = "text/plain"))),
    responses((status = 204, description = "The session is not in the room"))
)]
pub(crate) async fn leave(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    JsonOrText(body): JsonOrText<SessionBody>,
) -> Result<HttpResponse, ApiError> {
    let session = body.read(room_id)?;
    note_session(&request, &session);
    access.may_act_for(&session)?;
    depart(&api, session).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Report a lost transport
///
/// The member is `reconnecting` at once, and the lease decides; a heartbeat undoes it.
#[utoipa::path(
    post,
    path = "/rooms/{roomId}/disconnect",
    tag = "members",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    request_body(content((SessionBody = "application/json"), (String = "text/plain"))),
    responses(
        (status = 204, description = "Marked"),
        (status = 409, body = ErrorBody, description = "The session is stale; `code` says how it ended"),
    )
)]
pub(crate) async fn disconnect(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    JsonOrText(body): JsonOrText<SessionBody>,
) -> Result<HttpResponse, ApiError> {
    let session = body.read(room_id)?;
    note_session(&request, &session);
    access.may_act_for(&session)?;
    let outcome = api.presence.disconnect(session).await?;
    match outcome {
        Ok(()) => Ok(HttpResponse::NoContent().finish()),
        Err(reason) => {
            api.metrics.presence.stale_session(reason);
            Err(reason.into())
        }
    }
}

/// Renews one lease, and counts it.
pub(crate) async fn renew(api: &Api, heartbeat: Heartbeat) -> Result<(), ApiError> {
    let started = Instant::now();
    let outcome = api.presence.heartbeat(heartbeat).await;
    api.metrics.presence.heartbeat_took(started.elapsed());
    outcome?.map_err(|reason| {
        api.metrics.presence.stale_session(reason);
        reason.into()
    })
}

/// Ends one session where its epoch is current, and counts it where it is not.
pub(crate) async fn depart(api: &Api, session: SessionKey) -> Result<(), ApiError> {
    let Err(reason) = api.presence.leave(session).await? else {
        return Ok(());
    };
    api.metrics.presence.stale_session(reason);
    match reason {
        // It may be current where the room is.
        StaleReason::Misdirected => Err(reason.into()),
        _ => Ok(()),
    }
}
