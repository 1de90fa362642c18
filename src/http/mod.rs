//! HTTP: the only module that names actix. The route table, and what the handlers share.

mod access_log;
pub mod auth;
mod batches;
mod changes;
mod code;
mod cors;
mod document;
mod error;
mod event_json;
mod events;
mod history;
mod members;
mod moderation;
mod operations;
mod page;
mod request;
mod rooms;
mod socket;
mod users;

use std::time::Duration;

use actix_web::guard;
use actix_web::web::{self, ServiceConfig};
use actix_web::{Handler, Responder, Route};
use tokio_util::sync::CancellationToken;

pub use access_log::log;
pub use auth::Access;
pub use code::Code;
pub use cors::cors;
pub use document::{document, document_text};
pub use error::{ApiError, ErrorBody};

use self::auth::{Authentication, RateLimit};
use crate::domain::LeaseRules;
use crate::presence::Presence;
use crate::store::Store;
use crate::stream::Live;
use crate::telemetry::Metrics;
use crate::wake::Wakes;

/// What the handlers share.
pub struct Api {
    pub presence: Presence,
    pub live: Live,
    pub wakes: Wakes,
    /// How often a stream without news shows that it lives.
    pub keep_alive: Duration,
    /// How often the feed is read where nothing wakes its reader.
    pub poll: Duration,
    /// Done when the service stops: what would go on for ever ends.
    pub stop: CancellationToken,
    /// For what is asked too rarely to be gathered.
    pub store: Store,
    pub auth: Authentication,
    /// `None` where every client may ask as often as it likes.
    pub rate_limit: Option<RateLimit>,
    pub leases: LeaseRules,
    pub metrics: Metrics,
    pub sweep_interval: Option<Duration>,
    pub timeout: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    pub max_metadata_bytes: usize,
    pub max_cursor_bytes: usize,
    pub max_batch_items: usize,
    pub body_limit: usize,
    pub batch_body_limit: usize,
}

/// Every address of the service. Those whose handler takes no [`Access`] are public.
fn addresses() -> Vec<Address> {
    vec![
        // Paths are tried in this order: the busiest come first.
        at("/rooms/{roomId}/heartbeat", [post(members::heartbeat)]),
        at("/rooms/{roomId}/cursor", [post(members::move_cursor)]),
        at("/rooms/{roomId}/participants", [get(rooms::participants)]),
        at("/rooms", [get(rooms::rooms)]),
        at(
            "/rooms/{roomId}",
            [get(rooms::room), delete(moderation::close)],
        ),
        at("/rooms/{roomId}/join", [post(members::join)]),
        at("/rooms/{roomId}/leave", [post(members::leave)]),
        at("/rooms/{roomId}/disconnect", [post(members::disconnect)]),
        at(
            "/rooms/{roomId}/participants/{userId}",
            [delete(moderation::remove)],
        ),
        at("/rooms/{roomId}/generations", [get(history::generations)]),
        at(
            "/rooms/{roomId}/generations/{generation}/sessions",
            [get(history::generation_sessions)],
        ),
        at("/users/{userId}/rooms", [get(users::user_rooms)]),
        at("/users/{userId}/sessions", [get(users::user_sessions)]),
        at("/heartbeats", [post(batches::heartbeats)]),
        at("/leaves", [post(batches::leaves)]),
        at("/rooms/{roomId}/events", [get(events::events)]),
        at("/rooms/{roomId}/socket", [get(socket::socket)]),
        at("/changes", [get(changes::changes)]),
        at("/healthz", [get(operations::healthz)]),
        at("/readyz", [get(operations::readyz)]),
        at("/metrics", [get(operations::metrics)]),
        at("/openapi.json", [get(document::openapi)]),
        at("/docs", [get(document::docs)]),
        at("/docs/{file:.*}", [get(document::docs_file)]),
    ]
}

/// Registers every address.
pub fn routes(config: &mut ServiceConfig) {
    for address in addresses() {
        let allow = address.allow();
        let mut resource = web::resource(address.path);
        for answer in address.answers {
            resource = resource.route(answer.route);
        }
        config.service(resource.default_service(web::to(move || {
            let error = ApiError::method_not_allowed(&allow);
            async move { Err::<&'static str, _>(error) }
        })));
    }
    config.default_service(web::to(unknown_route));
}

/// The method and path of every address, for what must not miss one.
pub fn table() -> Vec<(&'static str, &'static str)> {
    addresses()
        .iter()
        .flat_map(|address| {
            let answers = address.answers.iter();
            answers.map(|answer| (answer.methods[0], address.path))
        })
        .collect()
}

async fn unknown_route() -> Result<&'static str, ApiError> {
    Err(ApiError::unknown_route())
}

/// A path and what it answers.
struct Address {
    path: &'static str,
    answers: Vec<Answer>,
}

impl Address {
    fn allow(&self) -> String {
        let methods = self.answers.iter().flat_map(|answer| answer.methods);
        methods.copied().collect::<Vec<_>>().join(", ")
    }
}

/// The methods that one handler answers.
struct Answer {
    methods: &'static [&'static str],
    route: Route,
}

fn at(path: &'static str, answers: impl Into<Vec<Answer>>) -> Address {
    Address {
        path,
        answers: answers.into(),
    }
}

fn get<F, Args>(handler: F) -> Answer
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    let guard = guard::Any(guard::Get()).or(guard::Head());
    Answer {
        methods: &["GET", "HEAD"],
        route: web::route().guard(guard).to(handler),
    }
}

fn post<F, Args>(handler: F) -> Answer
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    Answer {
        methods: &["POST"],
        route: web::post().to(handler),
    }
}

fn delete<F, Args>(handler: F) -> Answer
where
    F: Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: Responder + 'static,
{
    Answer {
        methods: &["DELETE"],
        route: web::delete().to(handler),
    }
}

/// A query that cannot be read is answered like any other bad input.
pub fn query_config() -> web::QueryConfig {
    web::QueryConfig::default().error_handler(|error, _| {
        ApiError::invalid(format!("the query cannot be read: {error}")).into()
    })
}
