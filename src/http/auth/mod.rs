//! Who asks: a credential becomes an [`Access`], which every handler that is not public takes.
//!
//! One file a mechanism. What a caller may do is decided in [`crate::access`].

mod jwks;
mod rate_limit;
mod server_keys;
mod token;

use std::future::{Ready, ready};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use anyhow::Context;

pub use rate_limit::{RateLimit, RateSettings};
pub use token::{TokenSettings, mint};

use server_keys::ServerKeys;
use token::Tokens;

use super::{Api, ApiError};
use crate::access::Caller;
use crate::domain::{RoomId, UserId};
use secrecy::SecretString;

/// Names the scheme to a caller without a credential.
const CHALLENGE: &str = "Bearer realm=\"leasehold\"";

/// The same to one whose credential does not hold.
const CHALLENGE_INVALID: &str = "Bearer realm=\"leasehold\", error=\"invalid_token\"";

/// The parameter that stands in for the header where browsers cannot set one.
const QUERY_PARAMETER: &str = "access_token";

/// What authentication is configured; none at all means that everybody may do everything.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// Each with full access.
    pub server_keys: Vec<SecretString>,
    pub tokens: TokenSettings,
}

/// The credentials that hold.
pub struct Authentication {
    server_keys: ServerKeys,
    tokens: Tokens,
}

impl Authentication {
    /// Reads the keys.
    ///
    /// # Errors
    /// Names the setting whose key cannot be read.
    pub fn new(settings: AuthSettings) -> anyhow::Result<Self> {
        Ok(Self {
            server_keys: ServerKeys::new(settings.server_keys),
            tokens: Tokens::new(settings.tokens).context("the keys for client tokens")?,
        })
    }

    /// Whether there is any credential to ask for.
    pub fn is_required(&self) -> bool {
        !self.server_keys.is_empty() || !self.tokens.is_empty()
    }

    fn authenticate(&self, request: &HttpRequest) -> Result<Access, ApiError> {
        if !self.is_required() {
            return Ok(Access {
                caller: Caller::Anyone,
                expires_at: None,
            });
        }
        let credential = credential(request)?;
        if self.server_keys.contains(&credential) {
            return Ok(Access {
                caller: Caller::Server,
                expires_at: None,
            });
        }
        let (grant, expires_at) = self
            .tokens
            .verify(&credential)
            .map_err(|reason| ApiError::unauthorized(reason, CHALLENGE_INVALID))?;
        Ok(Access {
            caller: Caller::Client(grant),
            expires_at: Some(expires_at),
        })
    }
}

/// The bearer token of the header, or of the query where the address is one that browsers open as a stream.
fn credential(request: &HttpRequest) -> Result<String, ApiError> {
    if let Some(header) = request.headers().get(AUTHORIZATION) {
        return header
            .to_str()
            .ok()
            .and_then(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim().to_owned())
            .ok_or_else(|| {
                ApiError::unauthorized("the header must be Authorization: Bearer", CHALLENGE)
            });
    }
    let is_stream = request
        .match_pattern()
        .is_some_and(|path| path.ends_with("/events") || path.ends_with("/socket"));
    if is_stream {
        let query =
            actix_web::web::Query::<Vec<(String, String)>>::from_query(request.query_string());
        if let Ok(pairs) = query
            && let Some((_, token)) = pairs
                .into_inner()
                .into_iter()
                .find(|(name, _)| name == QUERY_PARAMETER)
        {
            return Ok(token);
        }
    }
    Err(ApiError::unauthorized(
        "a credential is required",
        CHALLENGE,
    ))
}

/// Who asks, proven, and within their rate. A handler that takes this is not public.
#[derive(Debug, Clone)]
pub struct Access {
    caller: Caller,
    /// In seconds of Unix time, by this host's clock.
    expires_at: Option<u64>,
}

impl Access {
    /// # Errors
    /// 403 where the caller may not be this user in this room.
    pub fn may_act_as(&self, user: &UserId, room: &RoomId) -> Result<(), ApiError> {
        allow(
            self.caller.may_act_as(user, room),
            "this credential does not let you act as this user in this room",
        )
    }

    /// # Errors
    /// 403 where the caller may not see who is in this room.
    pub fn may_read(&self, room: &RoomId) -> Result<(), ApiError> {
        allow(
            self.caller.may_read(room),
            "this credential does not let you read this room",
        )
    }

    /// # Errors
    /// 403 where the caller may not see which rooms there are that start like this.
    pub fn may_list(&self, prefix: &str) -> Result<(), ApiError> {
        allow(
            self.caller.may_list(prefix),
            "this credential does not let you list rooms with this prefix",
        )
    }

    /// # Errors
    /// 403 where the caller may not see where this user is.
    pub fn may_locate(&self, user: &UserId) -> Result<(), ApiError> {
        allow(
            self.caller.may_locate(user),
            "this credential does not let you see where this user is",
        )
    }

    /// # Errors
    /// 403 where the caller is no admin of this room.
    pub fn admin_of(&self, room: &RoomId) -> Result<(), ApiError> {
        allow(
            self.caller.may_administer(room),
            "this needs a server key or a token with the scope admin for this room",
        )
    }

    /// # Errors
    /// 403 where the caller is no admin of all rooms.
    pub fn admin(&self) -> Result<(), ApiError> {
        allow(
            self.caller.is_admin(),
            "this needs a server key or a token with the scope admin for all rooms",
        )
    }

    /// How long the credential still holds; `None` where it does not end. A stream ends with it.
    pub fn expires_in(&self) -> Option<Duration> {
        self.expires_at
            .map(|at| Duration::from_secs(at.saturating_sub(token::unix_time())))
    }
}

fn allow(is_allowed: bool, otherwise: &'static str) -> Result<(), ApiError> {
    if is_allowed {
        Ok(())
    } else {
        Err(ApiError::forbidden(otherwise))
    }
}

impl FromRequest for Access {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let Some(api) = request.app_data::<Data<Api>>() else {
            return ready(Err(ApiError::unavailable("the service is not set up")));
        };
        let access = api.auth.authenticate(request);
        if let Some(limit) = &api.rate_limit {
            let address = request.peer_addr().map(|address| address.ip());
            let admitted = match &access {
                // The service's own back end speaks for many.
                Ok(access) if access.caller == Caller::Server => Ok(()),
                Ok(Access {
                    caller: Caller::Client(grant),
                    ..
                }) => limit.admit_subject(&grant.subject),
                Ok(_) | Err(_) => limit.admit_address(address),
            };
            if let Err(error) = admitted {
                return ready(Err(error));
            }
        }
        ready(access)
    }
}
