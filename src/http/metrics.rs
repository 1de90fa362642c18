//! For those who watch the service: its figures.

use actix_web::HttpResponse;
use actix_web::web::Data;

use super::Api;

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
    api.presence.show_figures(&api.metrics).await;
    api.presence.measure(&api.metrics);
    api.metrics.tidy();
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(api.metrics.render())
}
