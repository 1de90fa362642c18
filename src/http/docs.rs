//! A page to browse the API's document; everything that it loads comes from this binary.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header;
use actix_web::web::Path;

use super::ApiError;
use crate::wire::ErrorBody;

/// Nothing from elsewhere; the page sets styles of its own.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
