//! Which pages of other origins may ask: those that the operator names.

use actix_cors::Cors;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};

/// Seconds for which a browser may remember what it was told.
const MAX_AGE: usize = 600;

/// Lets pages of these origins ask; `*` for all of them. No cookies: a credential is in the header.
pub(crate) fn cors(origins: &[String]) -> Cors {
    let cors = Cors::default()
        .allowed_methods(["GET", "POST", "DELETE"])
        .allowed_headers([AUTHORIZATION, CONTENT_TYPE])
        .expose_headers([RETRY_AFTER.as_str(), "x-request-id"])
        .max_age(MAX_AGE);
    if origins.iter().any(|origin| origin == "*") {
        return cors.allow_any_origin();
    }
    origins
        .iter()
        .fold(cors, |cors, origin| cors.allowed_origin(origin))
}
