//! The JavaScript client, for pages that take it from the service that they ask.

use actix_web::HttpResponse;
use actix_web::http::header;
use actix_web::web::Path;

use super::ApiError;
use crate::wire::ErrorBody;

/// The modules of `clients/javascript/src`, as they are.
macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        const MODULES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../clients/javascript/src/", $name)))),*
        ];
    };
}

modules![
    "backoff.js",
    "connection.js",
    "cursor.js",
    "device.js",
    "emitter.js",
    "event-stream.js",
    "index.js",
    "outcome.js",
    "page.js",
    "platform.js",
    "requests.js",
    "room.js",
    "roster.js",
    "session.js",
    "socket.js",
    "stream.js",
    "timers.js",
    "tokens.js",
    "watch.js",
];

/// Take the JavaScript client
///
/// An ES module: `import { joinRoom } from "http://…/client.js"`.
#[utoipa::path(
    get,
    path = "/client.js",
    tag = "operations",
    responses((status = 200, body = String, content_type = "text/javascript"))
)]
pub(crate) async fn client() -> HttpResponse {
    module("export * from \"./client/index.js\";\n")
}

/// Take the JavaScript client: one of its modules
///
/// `socket.js` is the transport by WebSocket, which is not among what `/client.js` exports.
#[utoipa::path(
    get,
    path = "/client/{file}",
    tag = "operations",
    params(("file" = String, Path)),
    responses(
        (status = 200, body = String, content_type = "text/javascript"),
        (status = 404, body = ErrorBody, description = "`not_found`"),
    )
)]
pub(crate) async fn client_file(file: Path<String>) -> Result<HttpResponse, ApiError> {
    let found = MODULES.iter().find(|(name, _)| *name == file.as_str());
    let (_, text) = found.ok_or_else(ApiError::unknown_route)?;
    Ok(module(text))
}

/// Asked for again at each load, or a page would mix the modules of two releases.
fn module(text: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/javascript; charset=utf-8")
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(text)
}
