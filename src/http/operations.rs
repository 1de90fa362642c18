//! For those who run the service: does it live, is it ready, what are its figures.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::Data;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Api, ApiError, ErrorBody};
use crate::store::StoreError;

/// A sweep may be missed so many times in a row before the service calls itself unready.
const MISSED_SWEEPS: u32 = 6;

/// Metrics answer with older figures rather than late.
const CENSUS_TIMEOUT: Duration = Duration::from_secs(1);

/// How the service is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Health)]
pub struct HealthAnswer {
    status: &'static str,
}

/// Ask whether the process lives
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operations",
    responses((status = 200, body = HealthAnswer))
)]
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(HealthAnswer { status: "ok" })
}

/// Ask whether the service can answer
///
/// The database answers with the schema of this program, and a sweep finished lately.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operations",
    responses(
        (status = 200, body = HealthAnswer),
        (status = 503, body = ErrorBody, description = "`unavailable`: the sentence says what is missing"),
    )
)]
pub async fn readyz(api: Data<Api>) -> Result<HttpResponse, ApiError> {
    let asked = async {
        let migrations = api.store.migrations().await?;
        if let Err(unfit) = migrations.require_fit() {
            return Ok(Err(unfit));
        }
        api.store.readiness().await.map(Ok)
    };
    let readiness = tokio::time::timeout(api.timeout, asked)
        .await
        .map_err(|_| ApiError::unavailable("the database does not answer"))?
        .map_err(|error: StoreError| ApiError::from(&error))?
        .map_err(|unfit| ApiError::unavailable(unfit.to_string()))?;
    if let Some(interval) = api.sweep_interval {
        let allowed = (interval * MISSED_SWEEPS).max(Duration::from_secs(30));
        let age = readiness.last_swept_at.map(|at| readiness.as_of - at);
        if age.is_none_or(|age| age.to_std().is_ok_and(|age| age > allowed)) {
            return Err(ApiError::unavailable(match age {
                Some(age) => format!("the last sweep finished {} s ago", age.num_seconds()),
                None => "no sweep has finished yet".to_owned(),
            }));
        }
    }
    Ok(HttpResponse::Ok().json(HealthAnswer { status: "ready" }))
}

/// Read the metrics
///
/// In the Prometheus text format.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub async fn metrics(api: Data<Api>) -> HttpResponse {
    match tokio::time::timeout(CENSUS_TIMEOUT, api.store.census()).await {
        Ok(Ok(census)) => api.metrics.census(census),
        Ok(Err(error)) => tracing::warn!(%error, "metrics show the figures of an earlier count"),
        Err(_) => {
            tracing::warn!("the count took too long; metrics show the figures of an earlier one")
        }
    }
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(api.metrics.render())
}
