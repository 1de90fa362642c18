//! What a member does: join, heartbeat, cursor, leave.

use std::time::Instant;

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::access_log::note;
use super::request::{Json, JsonOrText, RoomPath, device_id, epoch, object, present, user_id};
use super::{Api, ApiError};
use crate::domain::{DeviceId, RoomId, UserId};
use crate::store::{Heartbeat, IfPresent, Join, Leave};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinBody {
    user_id: Option<String>,
    device_id: Option<String>,
    lease_ms: Option<i64>,
    metadata: Option<Box<RawValue>>,
    cursor: Option<Box<RawValue>>,
    if_present: Option<IfPresentBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum IfPresentBody {
    Replace,
    Reject,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JoinAnswer<'a> {
    room_id: &'a str,
    user_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<&'a str>,
    epoch: i64,
    generation: i64,
    lease_ms: u32,
    heartbeat_ms: u32,
    expires_at_ms: i64,
    as_of_ms: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatBody {
    user_id: Option<String>,
    epoch: Option<i64>,
    device_id: Option<String>,
    lease_ms: Option<i64>,
    #[serde(default, deserialize_with = "present")]
    cursor: Option<Option<Box<RawValue>>>,
    #[serde(default, deserialize_with = "present")]
    metadata: Option<Option<Box<RawValue>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CursorBody {
    user_id: Option<String>,
    epoch: Option<i64>,
    device_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    cursor: Option<Option<Box<RawValue>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveBody {
    user_id: Option<String>,
    epoch: Option<i64>,
    device_id: Option<String>,
}

/// `POST /rooms/{roomId}/join`
pub async fn join(
    api: Data<Api>,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Json(body): Json<JoinBody>,
) -> Result<HttpResponse, ApiError> {
    let user_id = user_id(body.user_id)?;
    note(&request, &room_id, &user_id, None);
    let lease_ms = lease(&api, body.lease_ms)?.unwrap_or(api.leases.default_ms);
    let join = Join {
        room_id: room_id.clone(),
        user_id: user_id.clone(),
        device_id: device_id(body.device_id)?,
        lease_ms,
        metadata: object("metadata", body.metadata, api.max_metadata_bytes)?,
        cursor: object("cursor", body.cursor, api.max_cursor_bytes)?,
        if_present: match body.if_present {
            Some(IfPresentBody::Reject) => IfPresent::Reject,
            Some(IfPresentBody::Replace) | None => IfPresent::Replace,
        },
    };
    let device_id = join.device_id.clone();
    let joined = api.presence.join(join).await??;
    note(&request, &room_id, &user_id, Some(joined.epoch));
    Ok(HttpResponse::Ok().json(JoinAnswer {
        room_id: room_id.as_str(),
        user_id: user_id.as_str(),
        device_id: device_id.name(),
        epoch: joined.epoch,
        generation: joined.generation,
        lease_ms,
        heartbeat_ms: api.leases.heartbeat_ms(lease_ms),
        expires_at_ms: joined.lease_expires_at.timestamp_millis(),
        as_of_ms: joined.as_of.timestamp_millis(),
    }))
}

/// `POST /rooms/{roomId}/heartbeat`
pub async fn heartbeat(
    api: Data<Api>,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Json(body): Json<HeartbeatBody>,
) -> Result<HttpResponse, ApiError> {
    let session = session(&request, room_id, body.user_id, body.device_id, body.epoch)?;
    let cursor = match body.cursor {
        Some(raw) => Some(object("cursor", raw, api.max_cursor_bytes)?),
        None => None,
    };
    let metadata = match body.metadata {
        Some(raw) => Some(object("metadata", raw, api.max_metadata_bytes)?),
        None => None,
    };
    renew(
        &api,
        Heartbeat {
            lease_ms: lease(&api, body.lease_ms)?,
            cursor,
            metadata,
            ..session
        },
    )
    .await
}

/// `POST /rooms/{roomId}/cursor`
pub async fn cursor(
    api: Data<Api>,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Json(body): Json<CursorBody>,
) -> Result<HttpResponse, ApiError> {
    let session = session(&request, room_id, body.user_id, body.device_id, body.epoch)?;
    let raw = body
        .cursor
        .ok_or_else(|| ApiError::invalid("cursor is required; null clears it"))?;
    let cursor = Some(object("cursor", raw, api.max_cursor_bytes)?);
    renew(&api, Heartbeat { cursor, ..session }).await
}

async fn renew(api: &Api, heartbeat: Heartbeat) -> Result<HttpResponse, ApiError> {
    let started = Instant::now();
    let outcome = api.presence.heartbeat(heartbeat).await;
    api.metrics.heartbeat_took(started.elapsed());
    match outcome? {
        Ok(()) => Ok(HttpResponse::NoContent().finish()),
        Err(reason) => {
            api.metrics.stale_session(reason);
            Err(reason.into())
        }
    }
}

/// `POST /rooms/{roomId}/leave`: 204 where well-formed; a stale epoch changes nothing.
pub async fn leave(
    api: Data<Api>,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    JsonOrText(body): JsonOrText<LeaveBody>,
) -> Result<HttpResponse, ApiError> {
    let Heartbeat {
        room_id,
        user_id,
        device_id,
        epoch,
        ..
    } = session(&request, room_id, body.user_id, body.device_id, body.epoch)?;
    if let Err(reason) = api
        .presence
        .leave(Leave {
            room_id,
            user_id,
            device_id,
            epoch,
        })
        .await?
    {
        api.metrics.stale_session(reason);
    }
    Ok(HttpResponse::NoContent().finish())
}

/// The session that a request is about, as a heartbeat that changes nothing else.
fn session(
    request: &HttpRequest,
    room_id: RoomId,
    user: Option<String>,
    device: Option<String>,
    number: Option<i64>,
) -> Result<Heartbeat, ApiError> {
    let user_id: UserId = user_id(user)?;
    let device_id: DeviceId = device_id(device)?;
    let epoch = epoch(number)?;
    note(request, &room_id, &user_id, Some(epoch));
    Ok(Heartbeat {
        room_id,
        user_id,
        device_id,
        epoch,
        lease_ms: None,
        cursor: None,
        metadata: None,
    })
}

/// A `leaseMs` within the server's bounds, if one was sent.
fn lease(api: &Api, field: Option<i64>) -> Result<Option<u32>, ApiError> {
    let Some(asked) = field else { return Ok(None) };
    let (min, max) = (api.leases.min_ms, api.leases.max_ms);
    match u32::try_from(asked) {
        Ok(lease_ms) if (min..=max).contains(&lease_ms) => Ok(Some(lease_ms)),
        _ => Err(ApiError::invalid(format!(
            "leaseMs must be from {min} to {max}"
        ))),
    }
}
