//! The entrance, before any route: requests of pages that may not ask, and by names that may not be used.

use actix_web::dev::RequestHead;
use actix_web::http::header::{HOST, ORIGIN};

use super::ApiError;
use super::origin::{Authority, Origin, OriginPattern};

/// Whom browsers let in who do not know whom they ask for.
#[derive(Debug)]
pub(super) struct Entrance {
    /// Of pages that may ask from elsewhere.
    pub(super) origins: Vec<OriginPattern>,
    /// Whether the service answers only by names of the machine that asks. A page whose name leads to this
    /// machine for a moment would be at home here, and without authentication there is nothing else to stop it.
    pub(super) loopback_names_only: bool,
}

impl Entrance {
    /// # Errors
    /// 403, with what to set.
    pub(super) fn admit(&self, head: &RequestHead) -> Result<(), ApiError> {
        // HTTP/1.0 has none, and no browser leaves it out.
        let is_named = head.uri.authority().is_some() || head.headers.contains_key(HOST);
        let is_strange = |at: Option<Authority<'_>>| !at.is_some_and(|at| at.is_loopback());
        if self.loopback_names_only && is_named && is_strange(address(head)) {
            return Err(ApiError::forbidden(
                "without authentication this service answers only by the names localhost, 127.0.0.1 and ::1; \
                 ask for one of them, configure authentication, or say --insecure-no-auth",
            ));
        }
        for origin in head.headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let is_at_home = || {
                let pair = Origin::parse(origin).zip(address(head));
                pair.is_some_and(|(origin, at)| origin.is_at(at))
            };
            let is_named = self.origins.iter().any(|named| named.matches(origin));
            if !is_named && !is_at_home() {
                return Err(ApiError::forbidden(
                    "pages of this origin may not ask; name it in LEASEHOLD_CORS_ORIGINS if they should",
                ));
            }
        }
        Ok(())
    }
}

/// What was asked for. What a proxy says of it can be said by anybody.
fn address(head: &RequestHead) -> Option<Authority<'_>> {
    match head.uri.authority() {
        Some(authority) => Authority::parse(authority.as_str()),
        None => Authority::parse(head.headers.get(HOST)?.to_str().ok()?),
    }
}
