//! The API as OpenAPI 3.1, from the handlers themselves, and a page to browse it.

use std::sync::{Arc, LazyLock};

use actix_web::HttpResponse;
use actix_web::http::header;
use actix_web::web::Path;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ContentBuilder, OpenApi as Document, Ref, RefOr, ResponseBuilder,
};
use utoipa::{Modify, OpenApi};

use super::{
    ApiError, Code, ErrorBody, batches, changes, events, history, members, moderation, operations,
    rooms, socket, users,
};

/// Nothing from elsewhere; the page sets styles of its own.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
        users::user_sessions,
        batches::heartbeats,
        batches::leaves,
        moderation::remove,
        moderation::close,
        history::generations,
        history::generation_sessions,
        events::events,
        socket::socket,
        changes::changes,
        operations::healthz,
        operations::readyz,
        operations::metrics,
        openapi,
        docs,
        docs_file,
    ),
    components(schemas(ErrorBody)),
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
            for operation in [&mut item.get, &mut item.post, &mut item.delete]
                .into_iter()
                .flatten()
            {
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
        .filter(|code| code.status().as_u16() == status && !irrelevant.contains(code))
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

/// The whole document.
pub fn document() -> Document {
    Handlers::openapi()
}

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = document()
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
pub async fn openapi() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(document_text())
}

/// Browse this document
#[utoipa::path(
    get,
    path = "/docs",
    tag = "operations",
    responses((status = 308, description = "The page is at `/docs/`"))
)]
pub async fn docs() -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((header::LOCATION, "/docs/"))
        .finish()
}

/// Browse this document: the page and what it loads
#[utoipa::path(
    get,
    path = "/docs/{file}",
    tag = "operations",
    params(("file" = String, Path)),
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (status = 404, body = ErrorBody, description = "`not_found`"),
    )
)]
pub async fn docs_file(file: Path<String>) -> Result<HttpResponse, ApiError> {
    let config = utoipa_swagger_ui::Config::new(["/openapi.json"])
        // Or the page would ask a server elsewhere to judge the document.
        .validator_url("none")
        .try_it_out_enabled(true);
    let name = match file.as_str() {
        "" => "index.html",
        name => name,
    };
    let found = utoipa_swagger_ui::serve(name, Arc::new(config))
        .map_err(|_| ApiError::unknown_route())?
        .ok_or_else(ApiError::unknown_route)?;
    Ok(HttpResponse::Ok()
        .content_type(found.content_type)
        .insert_header((header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::X_FRAME_OPTIONS, "DENY"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .body(found.bytes.into_owned()))
}
