//! Where every request that is not public comes by: who asks, and whether it is too often.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};

use super::rate_limit::RateLimit;
use super::{Access, Authentication, RateSettings};
use crate::http::ApiError;
use crate::http::client_address::client_address;
use crate::stream::Client;

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
            let client = match &access {
                Ok(access) => access.client(request),
                Err(_) => Client::at(client_address(request)),
            };
            limit.admit(&client)?;
        }
        access
    }

    /// Counts a message of a client on an open socket as a request.
    ///
    /// # Errors
    /// 429
    pub(crate) fn admit_message(&self, client: &Client) -> Result<(), ApiError> {
        let limit = self.rate_limit.as_ref();
        limit.map_or(Ok(()), |limit| limit.admit(client))
    }

    /// Who holds this credential, which came in a message.
    ///
    /// # Errors
    /// 401 where it does not hold.
    pub(crate) fn verify(&self, credential: &str) -> Result<Access, ApiError> {
        self.authentication.verify(credential)
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
