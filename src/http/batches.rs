//! Many at once, for a gateway that holds many sockets: each item has its own outcome.

use actix_web::web::Data;
use actix_web::{HttpResponse, ResponseError};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::members::{depart, lease, renew};
use super::request::{
    BatchJson, cursor, device_id, epoch, metadata, parse, present, room_id, user_id,
};
use super::{Access, Api, ApiError, Code, ErrorBody};
use crate::store::Heartbeat;

/// Up to 1,000 signs of life.
#[derive(Deserialize, ToSchema)]
pub struct HeartbeatsBody {
    #[schema(value_type = Vec<HeartbeatItem>, max_items = 1_000)]
    heartbeats: Vec<Box<RawValue>>,
}

/// Up to 1,000 departures.
#[derive(Deserialize, ToSchema)]
pub struct LeavesBody {
    #[schema(value_type = Vec<LeaveItem>, max_items = 1_000)]
    leaves: Vec<Box<RawValue>>,
}

/// A heartbeat as of `/rooms/{roomId}/heartbeat`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HeartbeatItem {
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    room_id: Option<String>,
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    #[schema(required, nullable = false, minimum = 0)]
    epoch: Option<i64>,
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
    lease_ms: Option<i64>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    cursor: Option<Option<Box<RawValue>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Option<Box<RawValue>>>,
}

/// A departure as of `/rooms/{roomId}/leave`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LeaveItem {
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    room_id: Option<String>,
    #[schema(required, nullable = false, min_length = 1, max_length = 256)]
    user_id: Option<String>,
    #[schema(required, nullable = false, minimum = 0)]
    epoch: Option<i64>,
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    device_id: Option<String>,
}

/// What became of each item, in order.
#[derive(Serialize, ToSchema)]
pub struct BatchAnswer {
    results: Vec<ItemAnswer>,
}

/// What the item alone would have been answered with.
#[derive(Serialize, ToSchema)]
#[schema(as = ItemResult)]
struct ItemAnswer {
    /// 204, or the status of the error.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Result<(), ApiError>> for ItemAnswer {
    fn from(outcome: Result<(), ApiError>) -> Self {
        match outcome {
            Ok(()) => Self {
                status: 204,
                code: None,
                error: None,
            },
            Err(error) => Self {
                status: error.status_code().as_u16(),
                code: Some(error.code()),
                error: Some(error.to_string()),
            },
        }
    }
}

/// Renew many leases
///
/// Needs an admin or a server key.
#[utoipa::path(
    post,
    path = "/heartbeats",
    tag = "batches",
    request_body = HeartbeatsBody,
    responses(
        (status = 200, body = BatchAnswer),
        (status = 400, body = ErrorBody, description = "`invalid_request`; or `batch_too_large`: more items than `LEASEHOLD_MAX_BATCH_ITEMS`"),
    )
)]
pub async fn heartbeats(
    api: Data<Api>,
    access: Access,
    BatchJson(body): BatchJson<HeartbeatsBody>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    check_size(&api, body.heartbeats.len())?;
    let outcomes = body.heartbeats.iter().map(async |raw| {
        let item: HeartbeatItem = parse(raw.get().as_bytes())?;
        let session = session(item.room_id, item.user_id, item.device_id, item.epoch)?;
        let heartbeat = Heartbeat {
            lease_ms: lease(&api, item.lease_ms)?,
            cursor: item.cursor.map(|raw| cursor(&api, raw)).transpose()?,
            metadata: item.metadata.map(|raw| metadata(&api, raw)).transpose()?,
            ..session
        };
        renew(&api, heartbeat).await
    });
    Ok(answer(join_all(outcomes).await))
}

/// Leave many rooms
///
/// Needs an admin or a server key.
#[utoipa::path(
    post,
    path = "/leaves",
    tag = "batches",
    request_body = LeavesBody,
    responses(
        (status = 200, body = BatchAnswer),
        (status = 400, body = ErrorBody, description = "`invalid_request`; or `batch_too_large`: more items than `LEASEHOLD_MAX_BATCH_ITEMS`"),
    )
)]
pub async fn leaves(
    api: Data<Api>,
    access: Access,
    BatchJson(body): BatchJson<LeavesBody>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    check_size(&api, body.leaves.len())?;
    let outcomes = body.leaves.iter().map(async |raw| {
        let item: LeaveItem = parse(raw.get().as_bytes())?;
        let session = session(item.room_id, item.user_id, item.device_id, item.epoch)?;
        depart(&api, session).await
    });
    Ok(answer(join_all(outcomes).await))
}

fn check_size(api: &Api, items: usize) -> Result<(), ApiError> {
    let limit = api.max_batch_items;
    if items > limit {
        let message = format!("a batch must have at most {limit} items, this one has {items}");
        return Err(ApiError::over_limit(Code::BatchTooLarge, message));
    }
    Ok(())
}

fn session(
    room: Option<String>,
    user: Option<String>,
    device: Option<String>,
    number: Option<i64>,
) -> Result<Heartbeat, ApiError> {
    Ok(Heartbeat {
        room_id: room_id(room)?,
        user_id: user_id(user)?,
        device_id: device_id(device)?,
        epoch: epoch(number)?,
        lease_ms: None,
        cursor: None,
        metadata: None,
    })
}

fn answer(outcomes: Vec<Result<(), ApiError>>) -> HttpResponse {
    HttpResponse::Ok().json(BatchAnswer {
        results: outcomes.into_iter().map(ItemAnswer::from).collect(),
    })
}
