//! The pages that the service shows beside its API: where to begin, the console, the demo.

use actix_web::HttpResponse;
use actix_web::body::MessageBody;
use actix_web::http::header;
use actix_web::web::{Data, Path};

use super::embedded::{Files, answer, embedded, file};
use super::{Api, ApiError};
use crate::wire::ErrorBody;

/// Nothing from elsewhere, nothing within the page's own text. The worker is the one that the JavaScript
/// client keeps its time with.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; worker-src blob:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

const START: &str = include_str!("../../web/index.html");
const SHARED: Files = embedded!["web/shared", "icon.svg", "page.css", "start.js"];

const CONSOLE: &str = include_str!("../../web/console/index.html");
const CONSOLE_FILES: Files = embedded![
    "web/console",
    "api.js",
    "chart.js",
    "clock.js",
    "confirm.js",
    "console.css",
    "directory.js",
    "dialog.css",
    "dom.js",
    "ends.js",
    "follow.js",
    "format.js",
    "history.js",
    "leases.js",
    "lists.css",
    "main.js",
    "metrics.js",
    "moderation.js",
    "overview.js",
    "parts.js",
    "past.js",
    "people.js",
    "person-dialog.js",
    "person.js",
    "room-tabs.js",
    "room.js",
    "rooms.js",
    "route.js",
    "session-table.js",
    "sign-in.js",
    "signals.css",
    "signals.js",
    "stage.js",
    "time-scale.js",
    "timeline.css",
    "timeline.js",
    "virtual-list.js",
    "webhooks.js",
    "window.js",
];

const DEMO: &str = include_str!("../../web/demo/index.html");
const DEMO_FILES: Files = embedded![
    "web/demo",
    "address.js",
    "demo.css",
    "lease.js",
    "line.js",
    "log.css",
    "log.js",
    "main.js",
    "meanings.js",
    "people.js",
    "stage.js",
    "troubles.js",
];

/// Which pages there are, beside the one to begin with.
#[derive(Debug, Clone, Copy)]
pub struct Pages {
    /// The console, at `/console`.
    pub console: bool,
    /// The demo, at `/demo`.
    pub demo: bool,
}

/// Where to begin
///
/// A page with links to the demo and the console, where they are on, and to `/docs`.
#[utoipa::path(
    get,
    path = "/",
    tag = "operations",
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub(crate) async fn start(api: Data<Api>) -> HttpResponse {
    let mut text = START.to_owned();
    for (name, is_on) in [("console", api.pages.console), ("demo", api.pages.demo)] {
        if !is_on {
            text = without(&text, name);
        }
    }
    page(text)
}

/// Look into a running service
///
/// A page that asks the API, with a key or token that is pasted where authentication is configured.
#[utoipa::path(
    get,
    path = "/console",
    tag = "operations",
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (status = 404, body = ErrorBody, description = "`not_found`: it is switched off"),
    )
)]
pub(crate) async fn console(api: Data<Api>) -> Result<HttpResponse, ApiError> {
    if_on(api.pages.console)?;
    Ok(page(CONSOLE))
}

/// Look into a running service: what the page loads
#[utoipa::path(
    get,
    path = "/console/{file}",
    tag = "operations",
    params(("file" = String, Path)),
    responses(
        (status = 200, content((String = "text/javascript"), (String = "text/css"))),
        (status = 404, body = ErrorBody, description = "`not_found`"),
    )
)]
pub(crate) async fn console_file(
    api: Data<Api>,
    name: Path<String>,
) -> Result<HttpResponse, ApiError> {
    if_on(api.pages.console)?;
    file(CONSOLE_FILES, &name)
}

/// See presence at work
///
/// A page that joins the room that its address names.
#[utoipa::path(
    get,
    path = "/demo",
    tag = "operations",
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (status = 404, body = ErrorBody, description = "`not_found`: it is switched off"),
    )
)]
pub(crate) async fn demo(api: Data<Api>) -> Result<HttpResponse, ApiError> {
    if_on(api.pages.demo)?;
    Ok(page(DEMO))
}

/// See presence at work: what the page loads
#[utoipa::path(
    get,
    path = "/demo/{file}",
    tag = "operations",
    params(("file" = String, Path)),
    responses(
        (status = 200, content((String = "text/javascript"), (String = "text/css"))),
        (status = 404, body = ErrorBody, description = "`not_found`"),
    )
)]
pub(crate) async fn demo_file(
    api: Data<Api>,
    name: Path<String>,
) -> Result<HttpResponse, ApiError> {
    if_on(api.pages.demo)?;
    file(DEMO_FILES, &name)
}

/// What all pages load
#[utoipa::path(
    get,
    path = "/shared/{file}",
    tag = "operations",
    params(("file" = String, Path)),
    responses(
        (status = 200, content((String = "text/javascript"), (String = "text/css"), (String = "image/svg+xml"))),
        (status = 404, body = ErrorBody, description = "`not_found`"),
    )
)]
pub(crate) async fn shared_file(name: Path<String>) -> Result<HttpResponse, ApiError> {
    file(SHARED, &name)
}

fn if_on(is_on: bool) -> Result<(), ApiError> {
    is_on.then_some(()).ok_or_else(ApiError::unknown_route)
}

fn page(text: impl MessageBody + 'static) -> HttpResponse {
    answer("index.html")
        .insert_header((header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY))
        .insert_header((header::X_FRAME_OPTIONS, "DENY"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .body(text)
}

/// The text without what stands between `<!-- name -->` and `<!-- /name -->`.
fn without(text: &str, name: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let mut parts = text.split(begin.as_str());
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once(end.as_str()).map_or("", |(_, rest)| rest));
    [first].into_iter().chain(rest).collect()
}
