//! Many at once, for a gateway that holds many sockets: each item has its own outcome.

use actix_web::HttpResponse;
use actix_web::web::Data;
use futures_util::future::join_all;

use super::body::BatchJson;
use super::members::{depart, renew};
use super::{Access, Api, ApiError};
use crate::wire::{
    BatchAnswer, Code, ErrorBody, HeartbeatsBody, InvalidRequest, ItemAnswer, LeavesBody,
    read_heartbeat, read_leave,
};

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
pub(crate) async fn heartbeats(
    api: Data<Api>,
    access: Access,
    BatchJson(body): BatchJson<HeartbeatsBody>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    check_size(&api, body.heartbeats.len())?;
    let outcomes = body.heartbeats.iter().map(async |item| {
        let heartbeat = read_heartbeat(item, &api.fields)?;
        renew(&api, heartbeat).await
    });
    Ok(answer(&api, join_all(outcomes).await))
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
pub(crate) async fn leaves(
    api: Data<Api>,
    access: Access,
    BatchJson(body): BatchJson<LeavesBody>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    check_size(&api, body.leaves.len())?;
    let outcomes = body
        .leaves
        .iter()
        .map(async |item| depart(&api, read_leave(item)?).await);
    Ok(answer(&api, join_all(outcomes).await))
}

pub(crate) fn check_size(api: &Api, items: usize) -> Result<(), ApiError> {
    let limit = api.max_batch_items;
    if items > limit {
        let message = format!("a batch must have at most {limit} items, this one has {items}");
        return Err(InvalidRequest::over_limit(Code::BatchTooLarge, message).into());
    }
    Ok(())
}

fn answer(api: &Api, outcomes: Vec<Result<(), ApiError>>) -> HttpResponse {
    let results = outcomes.into_iter().map(|outcome| match outcome {
        Ok(()) => ItemAnswer::DONE,
        Err(error) => {
            api.metrics.requests.refused(error.code());
            ItemAnswer::refused(error.code(), error.to_string())
        }
    });
    HttpResponse::Ok().json(BatchAnswer {
        results: results.collect(),
    })
}
