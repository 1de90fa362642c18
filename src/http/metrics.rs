//! For those who watch the service: its figures.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::Data;

use super::Api;

/// Metrics answer with older figures rather than late.
const CENSUS_TIMEOUT: Duration = Duration::from_secs(1);

/// Read the metrics
///
/// In the Prometheus text format.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(api: Data<Api>) -> HttpResponse {
    match tokio::time::timeout(CENSUS_TIMEOUT, api.presence.census()).await {
        Ok(Ok(census)) => api.metrics.presence.census(census),
        Ok(Err(error)) => tracing::warn!(%error, "metrics show the figures of an earlier count"),
        Err(_) => {
            tracing::warn!("the count took too long; metrics show the figures of an earlier one")
        }
    }
    api.presence.measure(&api.metrics);
    api.metrics.tidy();
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(api.metrics.render())
}
