//! What browsers tell pages of other origins, where the operator names them.

use std::rc::Rc;

use actix_cors::Cors;
use actix_web::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};

use super::origin::OriginPattern;

/// Seconds for which a browser may remember what it was told.
const MAX_AGE: usize = 600;

/// Lets pages of these origins ask. No cookies: a credential is in the header, and no other header can do harm.
pub(crate) fn cors(origins: &[OriginPattern]) -> Cors {
    let cors = Cors::default()
        .allowed_methods(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
        .allow_any_header()
        .expose_headers([
            RETRY_AFTER.as_str(),
            WWW_AUTHENTICATE.as_str(),
            "x-request-id",
        ])
        .max_age(MAX_AGE);
    if origins.contains(&OriginPattern::Any) {
        return cors.allow_any_origin();
    }
    let origins: Rc<[OriginPattern]> = origins.into();
    cors.allowed_origin_fn(move |origin, _| {
        let origin = origin.to_str().unwrap_or_default();
        origins.iter().any(|named| named.matches(origin))
    })
}
