//! For those who run the service: does it live, is it ready.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::Data;
use chrono::TimeDelta;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Api, ApiError};
use crate::wire::ErrorBody;

/// The sweep may be missed so many times in a row before the service calls itself unready.
const MISSED_SWEEPS: u32 = 6;

/// How the service is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Health)]
pub(crate) struct HealthAnswer {
    status: &'static str,
}

/// Ask whether the process lives
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operations",
    responses((status = 200, body = HealthAnswer))
)]
pub(crate) async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(HealthAnswer { status: "ok" })
}

/// Ask whether the service can answer
///
/// The database answers with the schema of this program, and a sweep finished lately or is under way.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operations",
    responses(
        (status = 200, body = HealthAnswer),
        (status = 503, body = ErrorBody, description = "`unavailable`: the sentence says what is missing"),
    )
)]
pub(crate) async fn readyz(api: Data<Api>) -> Result<HttpResponse, ApiError> {
    if api.drain.has_begun() {
        return Err(ApiError::unavailable("this instance is about to stop"));
    }
    let (migrations, readiness) = api.presence.readiness().await?;
    migrations
        .require_fit()
        .map_err(|unfit| ApiError::unavailable(unfit.to_string()))?;
    if let (Some(interval), Some(readiness)) = (api.sweep_interval, readiness) {
        let allowed = (interval * MISSED_SWEEPS).max(Duration::from_secs(30));
        // Not of chrono's range: for ever.
        let allowed = TimeDelta::from_std(allowed).unwrap_or(TimeDelta::MAX);
        if !readiness.is_swept(allowed) {
            return Err(ApiError::unavailable(match readiness.last_swept_at {
                Some(at) => {
                    let age = (readiness.as_of - at).num_seconds();
                    format!("the last sweep finished {age} s ago")
                }
                None => "no sweep has finished yet".to_owned(),
            }));
        }
    }
    Ok(HttpResponse::Ok().json(HealthAnswer { status: "ready" }))
}
