//! The API as OpenAPI 3.1, from the handlers themselves.

use std::sync::LazyLock;

use actix_web::HttpResponse;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ContentBuilder, OpenApi as Document, Ref, RefOr, ResponseBuilder,
};
use utoipa::{Modify, OpenApi};

use super::{
    admission, batches, changes, client, docs, events, health, history, lobby, members, metrics,
    moderation, pages, rooms, socket, users, webhooks,
};
use crate::wire::{Code, ErrorBody, EventMessage, WhereaboutsMessage, socket as socket_wire};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Leasehold",
        description = "Who is in the room, as a fact in Postgres: membership by lease and epoch. \
                       Instants are Unix milliseconds of the database's clock."
    ),
    tags(
        (name = "members", description = "Being in a room"),
        (name = "rooms", description = "Seeing who is there"),
        (name = "live", description = "Hearing of changes"),
        (name = "users", description = "Seeing where somebody is"),
        (name = "batches", description = "Many members in one call"),
        (name = "moderation", description = "Ending other people's sessions"),
        (name = "webhooks", description = "Having changes delivered"),
        (name = "history", description = "Who was there when"),
        (name = "operations", description = "Running the service"),
    ),
    paths(
        members::join,
        members::heartbeat,
        members::move_cursor,
        members::leave,
        members::disconnect,
        rooms::participants,
        rooms::room,
        rooms::rooms,
        users::user_rooms,
        users::whereabouts,
        users::user_sessions,
        users::erase,
        batches::heartbeats,
        batches::leaves,
        moderation::remove,
        moderation::close,
        moderation::expel,
        moderation::set_metadata,
        admission::lock,
        admission::unlock,
        admission::blocks,
        history::generations,
        history::generation_sessions,
        history::outages,
        events::events,
        events::events_of_rooms,
        lobby::lobby_events,
        socket::socket,
        socket::open_socket,
        changes::changes,
        changes::change_events,
        webhooks::set_webhook,
        webhooks::list_webhooks,
        webhooks::webhook,
        webhooks::remove_webhook,
        webhooks::disable_webhook,
        webhooks::resume_webhook,
        health::healthz,
        health::readyz,
        metrics::metrics,
        openapi,
        client::client,
        client::client_file,
        pages::start,
        pages::console,
        pages::console_file,
        pages::demo,
        pages::demo_file,
        pages::shared_file,
        docs::docs,
        docs::docs_file,
    ),
    components(schemas(
        ErrorBody,
        EventMessage,
        socket_wire::Request,
        socket_wire::Authenticate,
        socket_wire::Answer,
        socket_wire::Refusal,
        socket_wire::Stale,
        socket_wire::Unsubscribed,
        WhereaboutsMessage
    )),
    modifiers(&CommonAnswers)
)]
struct Handlers;

/// What every address that takes a credential, or a body, may answer.
struct CommonAnswers;

impl Modify for CommonAnswers {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
            "A server key, or a client token (JWT). Not needed where no authentication is configured.",
        ));
        document
            .components
            .get_or_insert_with(Components::new)
            .add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));

        for item in document.paths.paths.values_mut() {
            let operations = [
                &mut item.get,
                &mut item.post,
                &mut item.put,
                &mut item.patch,
                &mut item.delete,
            ];
            for operation in operations.into_iter().flatten() {
                let tags = operation.tags.iter().flatten();
                if tags.into_iter().any(|tag| tag == "operations") {
                    continue;
                }
                operation.security = Some(vec![SecurityRequirement::new(
                    "bearer",
                    Vec::<String>::new(),
                )]);
                let mut statuses = vec![400, 401, 403, 429, 503];
                if operation.request_body.is_some() {
                    statuses.extend([408, 413, 415]);
                }
                let mut irrelevant = vec![Code::Blocked, Code::BatchTooLarge];
                if operation.request_body.is_none() {
                    irrelevant.extend([Code::MetadataTooLarge, Code::CursorTooLarge]);
                }
                for status in statuses {
                    operation
                        .responses
                        .responses
                        .entry(status.to_string())
                        .or_insert_with(|| RefOr::T(common_answer(status, &irrelevant)));
                }
            }
        }
    }
}

/// `irrelevant` are codes of this status that only other operations answer, or that they name themselves.
fn common_answer(status: u16, irrelevant: &[Code]) -> utoipa::openapi::Response {
    let codes: Vec<String> = Code::ALL
        .iter()
        .filter(|code| code.status() == status && !irrelevant.contains(code))
        .map(|code| format!("`{}`: {}", code.as_str(), code.meaning()))
        .collect();
    let schema = RefOr::Ref(Ref::from_schema_name("Error"));
    ResponseBuilder::new()
        .description(codes.join(" "))
        .content(
            "application/json",
            ContentBuilder::new().schema(Some(schema)).build(),
        )
        .build()
}

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = Handlers::openapi()
        .to_pretty_json()
        .expect("the document holds only maps with text keys");
    text.push('\n');
    text
});

/// As it is served and kept in `docs/openapi.json`.
pub fn document_text() -> &'static str {
    &TEXT
}

/// Read this document
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "operations",
    responses((status = 200, body = Object, content_type = "application/json"))
)]
pub(crate) async fn openapi() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(document_text())
}
