//! The server: what wraps the routes, and how long anything may take.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::middleware::{Condition, from_fn};
use actix_web::web::{Data, QueryConfig};
use actix_web::{App, HttpServer};
use anyhow::Context;

use super::auth::Gate;
use super::{Api, ApiError, BodyLimits, access_log, cors, routes};

/// How the server listens.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Port 0 takes a free one.
    pub bind: SocketAddr,
    /// Threads that serve; 0 for one a core.
    pub workers: usize,
    /// Of pages that may ask from elsewhere; `*` for all of them.
    pub origins: Vec<String>,
    /// How large a body may be, and how long a request's head, and then its body, may take to arrive.
    pub bodies: BodyLimits,
    /// How long a connection without a request is kept open.
    pub idle_timeout: Duration,
    /// How long requests under way have to finish when the server stops.
    pub shutdown_timeout: Duration,
}

/// A server that is bound to its address, and that address with the port that was taken for port 0.
///
/// # Errors
/// Where the address cannot be had.
pub fn server(
    settings: ServerSettings,
    api: Data<Api>,
    gate: Data<Gate>,
) -> anyhow::Result<(Server, SocketAddr)> {
    let (origins, bodies) = (settings.origins, settings.bodies);
    let mut server = HttpServer::new(move || {
        App::new()
            .app_data(api.clone())
            .app_data(gate.clone())
            .app_data(bodies)
            .app_data(query_config())
            .wrap(Condition::new(!origins.is_empty(), cors::cors(&origins)))
            .wrap(from_fn(access_log::log))
            .configure(|config| routes::routes(config, &api))
    })
    .disable_signals()
    .keep_alive(settings.idle_timeout)
    .client_request_timeout(bodies.timeout)
    .shutdown_timeout(settings.shutdown_timeout.as_secs());
    if settings.workers > 0 {
        server = server.workers(settings.workers);
    }
    let bind = settings.bind;
    let server = server.bind(bind).with_context(|| {
        format!("cannot listen on {bind}; set LEASEHOLD_BIND to a free address")
    })?;
    let address = server.addrs()[0];
    Ok((server.run(), address))
}

/// A query that cannot be read is answered like any other bad input.
fn query_config() -> QueryConfig {
    QueryConfig::default().error_handler(|error, _| {
        ApiError::invalid(format!("the query cannot be read: {error}")).into()
    })
}
