//! The JavaScript client, for pages that take it from the service that they ask.

use actix_web::HttpResponse;
use actix_web::web::Path;

use super::ApiError;
use super::embedded::{Files, answer, embedded, file};
use crate::wire::ErrorBody;

const MODULES: Files = embedded![
    "clients/javascript/src",
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
    answer("client.js").body("export * from \"./client/index.js\";\n")
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
pub(crate) async fn client_file(name: Path<String>) -> Result<HttpResponse, ApiError> {
    file(MODULES, &name)
}
