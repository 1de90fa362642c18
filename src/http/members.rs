//! What a member does: join, heartbeat, cursor, leave.

use std::time::Instant;

use actix_web::web::{Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::access_log::note;
use super::request::{
    Json, JsonOrText, RoomPath, cursor, device_id, epoch, metadata, present, user_id,
};
use super::rooms::ParticipantAnswer;
use super::{Access, Api, ApiError, ErrorBody};
use crate::domain::{DeviceId, RoomId, UserId};
use crate::store::{Disconnect, Heartbeat, IfPresent, Join, Joined, Leave};

/// Who joins, and how.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinBody {
    /// 1 to 256 characters, no control characters.
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    /// Left out: the one unnamed device.
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
    /// Within the bounds of the server; its default if left out.
    lease_ms: Option<i64>,
    /// Any JSON object of at most 4 KiB.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
    /// Any JSON object of at most 1 KiB.
    #[schema(value_type = Option<Object>)]
    cursor: Option<Box<RawValue>>,
    if_present: Option<IfPresentBody>,
}

/// What to do where the user is in the room already: take the place of the session on the same device, or refuse.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = IfPresent)]
enum IfPresentBody {
    Replace,
    Reject,
}

/// What a join is answered with beside the session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JoinQuery {
    #[param(inline)]
    include: Option<Include>,
}

/// The room's list as of the join, from the same transaction.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Include {
    Participants,
}

/// The session that began.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinAnswer<'a> {
    room_id: &'a str,
    user_id: &'a str,
    /// As it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<&'a str>,
    epoch: i64,
    generation: i64,
    lease_ms: u32,
    /// How often to send a heartbeat.
    heartbeat_ms: u32,
    expires_at_ms: i64,
    as_of_ms: i64,
    /// With `include=participants`: the room's version at `asOfMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    /// With `include=participants`: who is in the room at `asOfMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    participants: Option<Vec<ParticipantAnswer<'a>>>,
}

/// A sign of life, and what it changes.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatBody {
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    #[schema(required, nullable = false, minimum = 0)]
    epoch: Option<i64>,
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
    /// Another length from now on.
    lease_ms: Option<i64>,
    /// Left out: stays as it was; null clears.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    cursor: Option<Option<Box<RawValue>>>,
    /// Left out: stays as it was; null clears.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Option<Box<RawValue>>>,
}

/// Where a member's cursor is now.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CursorBody {
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    #[schema(required, nullable = false, minimum = 0)]
    epoch: Option<i64>,
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
    /// Any JSON object of at most 1 KiB; null clears.
    #[serde(default, deserialize_with = "present")]
    #[schema(required, value_type = Option<Object>)]
    cursor: Option<Option<Box<RawValue>>>,
}

/// Which session.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBody {
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    #[schema(required, nullable = false, minimum = 0)]
    epoch: Option<i64>,
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
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
        (status = 403, body = ErrorBody, description = "`forbidden`; or `blocked`: the user was removed and may not join yet"),
        (status = 409, body = ErrorBody, description = "`already_present`, `room_full`, `too_many_devices` or `too_many_rooms`"),
    )
)]
pub async fn join(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Query(query): Query<JoinQuery>,
    Json(body): Json<JoinBody>,
) -> Result<HttpResponse, ApiError> {
    let join = read_join(&api, room_id.clone(), body)?;
    let (user_id, lease_ms) = (join.user_id.clone(), join.lease_ms);
    note(&request, &room_id, &user_id, None);
    access.may_act_as(&user_id, &room_id)?;
    let device_id = join.device_id.clone();
    let (joined, listed) = match query.include {
        Some(Include::Participants) => {
            let (joined, listed) = api.presence.join_and_list(join).await??;
            (joined, Some(listed))
        }
        None => (api.presence.join(join).await??, None),
    };
    note(&request, &room_id, &user_id, Some(joined.epoch));
    let answer = JoinAnswer::new(&api, (&room_id, &user_id, &device_id), lease_ms, &joined);
    Ok(HttpResponse::Ok().json(JoinAnswer {
        version: listed.as_ref().and_then(|l| Some(l.room?.version)),
        participants: listed.as_ref().map(|listed| {
            let people = listed.participants.iter();
            people
                .map(|person| ParticipantAnswer::new(person, &api.leases, listed.as_of))
                .collect()
        }),
        ..answer
    }))
}

impl<'a> JoinAnswer<'a> {
    /// Without the room's list.
    pub fn new(
        api: &Api,
        (room_id, user_id, device_id): (&'a RoomId, &'a UserId, &'a DeviceId),
        lease_ms: u32,
        joined: &Joined,
    ) -> Self {
        Self {
            room_id: room_id.as_str(),
            user_id: user_id.as_str(),
            device_id: device_id.name(),
            epoch: joined.epoch,
            generation: joined.generation,
            lease_ms,
            heartbeat_ms: api.leases.heartbeat_ms(lease_ms),
            expires_at_ms: joined.lease_expires_at.timestamp_millis(),
            as_of_ms: joined.as_of.timestamp_millis(),
            version: None,
            participants: None,
        }
    }
}

/// A join as its body asks for it.
pub fn read_join(api: &Api, room_id: RoomId, body: JoinBody) -> Result<Join, ApiError> {
    Ok(Join {
        room_id,
        user_id: user_id(body.user_id)?,
        lease_ms: lease(api, body.lease_ms)?.unwrap_or(api.leases.default_ms),
        device_id: device_id(body.device_id)?,
        metadata: metadata(api, body.metadata)?,
        cursor: cursor(api, body.cursor)?,
        if_present: match body.if_present {
            Some(IfPresentBody::Reject) => IfPresent::Reject,
            Some(IfPresentBody::Replace) | None => IfPresent::Replace,
        },
    })
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
pub async fn heartbeat(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Json(body): Json<HeartbeatBody>,
) -> Result<HttpResponse, ApiError> {
    let heartbeat = read_heartbeat(&api, room_id, body)?;
    note_session(&request, &heartbeat);
    access.may_act_as(&heartbeat.user_id, &heartbeat.room_id)?;
    renew(&api, heartbeat).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A heartbeat as its body asks for it.
pub fn read_heartbeat(
    api: &Api,
    room_id: RoomId,
    body: HeartbeatBody,
) -> Result<Heartbeat, ApiError> {
    let session = session(room_id, body.user_id, body.device_id, body.epoch)?;
    let cursor = match body.cursor {
        Some(raw) => Some(cursor(api, raw)?),
        None => None,
    };
    let metadata = match body.metadata {
        Some(raw) => Some(metadata(api, raw)?),
        None => None,
    };
    Ok(Heartbeat {
        lease_ms: lease(api, body.lease_ms)?,
        cursor,
        metadata,
        ..session
    })
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
pub async fn move_cursor(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Json(body): Json<CursorBody>,
) -> Result<HttpResponse, ApiError> {
    let heartbeat = read_cursor(&api, room_id, body)?;
    note_session(&request, &heartbeat);
    access.may_act_as(&heartbeat.user_id, &heartbeat.room_id)?;
    renew(&api, heartbeat).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A cursor as its body asks for it: a heartbeat that sets it.
pub fn read_cursor(api: &Api, room_id: RoomId, body: CursorBody) -> Result<Heartbeat, ApiError> {
    let session = session(room_id, body.user_id, body.device_id, body.epoch)?;
    let raw = body
        .cursor
        .ok_or_else(|| ApiError::invalid("cursor is required; null clears it"))?;
    let cursor = Some(cursor(api, raw)?);
    Ok(Heartbeat { cursor, ..session })
}

/// Renews one lease, and counts it.
pub async fn renew(api: &Api, heartbeat: Heartbeat) -> Result<(), ApiError> {
    let started = Instant::now();
    let outcome = api.presence.heartbeat(heartbeat).await;
    api.metrics.heartbeat_took(started.elapsed());
    outcome?.map_err(|reason| {
        api.metrics.stale_session(reason);
        reason.into()
    })
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
pub async fn leave(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    JsonOrText(body): JsonOrText<SessionBody>,
) -> Result<HttpResponse, ApiError> {
    let session = read_session(room_id, body)?;
    note_session(&request, &session);
    access.may_act_as(&session.user_id, &session.room_id)?;
    depart(&api, session).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Ends one session where its epoch is current, and counts it where it is not.
pub async fn depart(api: &Api, session: Heartbeat) -> Result<(), ApiError> {
    let left = api
        .presence
        .leave(Leave {
            room_id: session.room_id,
            user_id: session.user_id,
            device_id: session.device_id,
            epoch: session.epoch,
        })
        .await?;
    if let Err(reason) = left {
        api.metrics.stale_session(reason);
    }
    Ok(())
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
pub async fn disconnect(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    JsonOrText(body): JsonOrText<SessionBody>,
) -> Result<HttpResponse, ApiError> {
    let session = read_session(room_id, body)?;
    note_session(&request, &session);
    access.may_act_as(&session.user_id, &session.room_id)?;
    let outcome = api
        .presence
        .disconnect(Disconnect {
            room_id: session.room_id,
            user_id: session.user_id,
            device_id: session.device_id,
            epoch: session.epoch,
        })
        .await?;
    match outcome {
        Ok(()) => Ok(HttpResponse::NoContent().finish()),
        Err(reason) => {
            api.metrics.stale_session(reason);
            Err(reason.into())
        }
    }
}

/// The session that a body names, as a heartbeat that changes nothing else.
pub fn read_session(room_id: RoomId, body: SessionBody) -> Result<Heartbeat, ApiError> {
    session(room_id, body.user_id, body.device_id, body.epoch)
}

fn session(
    room_id: RoomId,
    user: Option<String>,
    device: Option<String>,
    number: Option<i64>,
) -> Result<Heartbeat, ApiError> {
    Ok(Heartbeat {
        room_id,
        user_id: user_id(user)?,
        device_id: device_id(device)?,
        epoch: epoch(number)?,
        lease_ms: None,
        cursor: None,
        metadata: None,
    })
}

fn note_session(request: &HttpRequest, session: &Heartbeat) {
    let (room, user) = (&session.room_id, &session.user_id);
    note(request, room, user, Some(session.epoch));
}

/// A `leaseMs` within the server's bounds, if one was sent.
pub fn lease(api: &Api, field: Option<i64>) -> Result<Option<u32>, ApiError> {
    let Some(asked) = field else { return Ok(None) };
    let (min, max) = (api.leases.min_ms, api.leases.max_ms);
    match u32::try_from(asked) {
        Ok(lease_ms) if (min..=max).contains(&lease_ms) => Ok(Some(lease_ms)),
        _ => Err(ApiError::invalid(format!(
            "leaseMs must be from {min} to {max}"
        ))),
    }
}
