//! HTTP: the only module that names actix. The route table, and what the handlers share.

mod access_log;
mod error;
mod members;
mod operations;
mod request;
mod rooms;

use std::time::Duration;

use actix_web::guard;
use actix_web::web::{self, ServiceConfig};
use actix_web::{Handler, Resource, Responder, Route};

pub use access_log::log;
pub use error::ApiError;

use crate::domain::LeaseRules;
use crate::presence::Presence;
use crate::store::Store;
use crate::telemetry::Metrics;

/// What the handlers share.
pub struct Api {
    pub presence: Presence,
    /// For what is asked too rarely to be gathered.
    pub store: Store,
    pub leases: LeaseRules,
    pub metrics: Metrics,
    pub sweep_interval: Option<Duration>,
    pub timeout: Duration,
    pub max_metadata_bytes: usize,
    pub max_cursor_bytes: usize,
    pub body_limit: usize,
}

/// Every address of the service.
pub fn routes(config: &mut ServiceConfig) {
    config
        .service(at("/rooms/{room_id}", get(rooms::room)))
        .service(at("/rooms/{room_id}/join", post(members::join)))
        .service(at("/rooms/{room_id}/heartbeat", post(members::heartbeat)))
        .service(at("/rooms/{room_id}/cursor", post(members::cursor)))
        .service(at("/rooms/{room_id}/leave", post(members::leave)))
        .service(at(
            "/rooms/{room_id}/participants",
            get(rooms::participants),
        ))
        .service(at("/healthz", get(operations::healthz)))
        .service(at("/readyz", get(operations::readyz)))
        .service(at("/metrics", get(operations::metrics)))
        .default_service(web::to(unknown_route));
}

async fn unknown_route() -> Result<&'static str, ApiError> {
    Err(ApiError::unknown_route())
}

/// A method of an address, with what its refusal of others says.
struct Answer {
    route: Route,
    allow: &'static str,
}

fn get<F, Args>(handler: F) -> Answer
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    let guard = guard::Any(guard::Get()).or(guard::Head());
    Answer {
        route: web::route().guard(guard).to(handler),
        allow: "GET, HEAD",
    }
}

fn post<F, Args>(handler: F) -> Answer
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    Answer {
        route: web::post().to(handler),
        allow: "POST",
    }
}

fn at(path: &str, answer: Answer) -> Resource {
    let allow = answer.allow;
    web::resource(path)
        .route(answer.route)
        .default_service(web::to(move || async move {
            Err::<&'static str, _>(ApiError::method_not_allowed(allow))
        }))
}

/// A query that cannot be read is answered like any other bad input.
pub fn query_config() -> web::QueryConfig {
    web::QueryConfig::default().error_handler(|error, _| {
        ApiError::invalid(format!("the query cannot be read: {error}")).into()
    })
}
