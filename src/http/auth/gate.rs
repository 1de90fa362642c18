//! Where every request that is not public comes by: who asks, and whether it is too often.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};

use super::rate_limit::RateLimit;
use super::{Access, Authentication, RateSettings};
use crate::access::Caller;
use crate::http::ApiError;

/// The credentials that hold, and how often one client may ask.
pub struct Gate {
    authentication: Authentication,
    /// `None` where every client may ask as often as it likes.
    rate_limit: Option<RateLimit>,
}

impl Gate {
    /// Without a limit where `rate` is `None`.
    pub fn new(authentication: Authentication, rate: Option<RateSettings>) -> Self {
        Self {
            authentication,
            rate_limit: rate.map(RateLimit::new),
        }
    }

    fn admit(&self, request: &HttpRequest) -> Result<Access, ApiError> {
        let access = self.authentication.authenticate(request);
        if let Some(limit) = &self.rate_limit {
            match access.as_ref().map(Access::caller) {
                // The service's own back end speaks for many.
                Ok(Caller::Server) => {}
                Ok(Caller::Client(grant)) => limit.admit_subject(&grant.subject)?,
                Ok(Caller::Anyone) | Err(_) => {
                    limit.admit_address(request.peer_addr().map(|address| address.ip()))?;
                }
            }
        }
        access
    }
}

impl FromRequest for Access {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(match request.app_data::<Data<Gate>>() {
            Some(gate) => gate.admit(request),
            None => Err(ApiError::unavailable("the service is not set up")),
        })
    }
}
