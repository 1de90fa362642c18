//! The route table: every address, and who answers there.

use actix_web::guard;
use actix_web::web::{self, ServiceConfig};
use actix_web::{FromRequest, Handler, Responder, Route};

use super::pulse::{PULSE_PATH, pulse};
use super::{
    Api, ApiError, admission, batches, changes, client, docs, events, health, history, lobby,
    members, metrics, moderation, openapi, pages, rooms, socket, users, webhooks,
};

/// Every address of the service. Those whose handler takes no [`Access`](super::Access) are public.
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
        at(
            "/rooms/{roomId}/lock",
            [put(admission::lock), delete(admission::unlock)],
        ),
        at("/rooms/{roomId}/blocks", [get(admission::blocks)]),
        at("/rooms/{roomId}/join", [post(members::join)]),
        at("/rooms/{roomId}/leave", [post(members::leave)]),
        at("/rooms/{roomId}/disconnect", [post(members::disconnect)]),
        at(
            "/rooms/{roomId}/participants/{userId}",
            [delete(moderation::remove), patch(moderation::set_metadata)],
        ),
        at("/rooms/{roomId}/generations", [get(history::generations)]),
        at(
            "/rooms/{roomId}/generations/{generation}/sessions",
            [get(history::generation_sessions)],
        ),
        at("/outages", [get(history::outages)]),
        at("/users/{userId}/rooms", [get(users::user_rooms)]),
        at(
            "/users/{userId}/sessions",
            [get(users::user_sessions), delete(moderation::expel)],
        ),
        at("/users/{userId}/history", [delete(users::erase)]),
        at("/whereabouts", [post(users::whereabouts)]),
        at("/heartbeats", [post(batches::heartbeats)]),
        at("/leaves", [post(batches::leaves)]),
        at("/rooms/{roomId}/events", [get(events::events)]),
        at("/rooms/{roomId}/socket", [get(socket::socket)]),
        at("/events", [get(events::events_of_rooms)]),
        at("/socket", [get(socket::open_socket)]),
        at("/lobby/events", [get(lobby::lobby_events)]),
        at("/changes", [get(changes::changes)]),
        at("/changes/events", [get(changes::change_events)]),
        at("/webhooks", [get(webhooks::list_webhooks)]),
        at(
            "/webhooks/{name}",
            [
                put(webhooks::set_webhook),
                get(webhooks::webhook),
                delete(webhooks::remove_webhook),
            ],
        ),
        at(
            "/webhooks/{name}/disable",
            [post(webhooks::disable_webhook)],
        ),
        at("/webhooks/{name}/resume", [post(webhooks::resume_webhook)]),
        at("/healthz", [get(health::healthz)]),
        at("/readyz", [get(health::readyz)]),
        at("/metrics", [get(metrics::metrics)]),
        at("/openapi.json", [get(openapi::openapi)]),
        at("/client.js", [get(client::client)]),
        at("/client/{file}", [get(client::client_file)]),
        at("/", [get(pages::start)]),
        at("/console", [get(pages::console)]),
        at("/console/{file}", [get(pages::console_file)]),
        at("/demo", [get(pages::demo)]),
        at("/demo/{file}", [get(pages::demo_file)]),
        at("/shared/{file}", [get(pages::shared_file)]),
        at("/docs", [get(docs::docs)]),
        at("/docs/{file:.*}", [get(docs::docs_file)]),
    ]
}

/// Registers every address, with its metrics.
pub(crate) fn routes(config: &mut ServiceConfig, api: &Api) {
    let metrics = &api.metrics.requests;
    config.app_data(metrics.route("unmatched", []));
    for address in addresses() {
        let allow = address.allow();
        let methods = address.answers.iter().map(|answer| answer.methods);
        let metrics = metrics.route(address.path, methods);
        let mut resource = web::resource(address.path).app_data(metrics);
        for answer in address.answers {
            resource = resource.route(answer.route);
        }
        config.service(resource.default_service(web::to(move || {
            let error = ApiError::method_not_allowed(&allow);
            async move { Err::<&'static str, _>(error) }
        })));
    }
    let pulse = web::resource(PULSE_PATH).route(web::post().to(pulse));
    config.service(pulse.default_service(web::to(unknown_route)));
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
    Args: FromRequest + 'static,
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
    Args: FromRequest + 'static,
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
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    Answer {
        methods: &["DELETE"],
        route: web::delete().to(handler),
    }
}

fn put<F, Args>(handler: F) -> Answer
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    Answer {
        methods: &["PUT"],
        route: web::put().to(handler),
    }
}

fn patch<F, Args>(handler: F) -> Answer
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    Answer {
        methods: &["PATCH"],
        route: web::patch().to(handler),
    }
}
