//! From a credential to whoever holds it.

use std::path::PathBuf;

use actix_web::HttpRequest;
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::Query;
use anyhow::Context;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::Access;
use super::published::PublishedKeys;
use super::server_keys::ServerKeys;
use super::token::{TokenSettings, Tokens, Unproven};
use crate::access::Caller;
use crate::http::ApiError;

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
    /// A file with more of them, one a line; read again when it changes.
    pub server_keys_file: Option<PathBuf>,
    /// What signs client tokens.
    pub tokens: TokenSettings,
}

/// The credentials that hold.
pub struct Authentication {
    server_keys: ServerKeys,
    tokens: Tokens,
}

impl Authentication {
    /// Reads the keys. Published ones that cannot be had now are fetched later: an identity provider that is
    /// away for a moment keeps no service from starting.
    ///
    /// # Errors
    /// Names the setting whose key cannot be read.
    pub async fn new(settings: AuthSettings) -> anyhow::Result<Self> {
        let authentication = Self {
            server_keys: ServerKeys::new(settings.server_keys, settings.server_keys_file)?,
            tokens: Tokens::new(settings.tokens).context("the keys for client tokens")?,
        };
        if let Some(published) = authentication.tokens.published() {
            published.refresh().await;
        }
        Ok(authentication)
    }

    /// What fetches published keys, until `stop`.
    pub fn refreshing(
        &self,
        stop: CancellationToken,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let published = self.tokens.published().cloned();
        published.map(|published| PublishedKeys::run(published, stop))
    }

    /// Whether there is any credential to ask for.
    pub fn is_required(&self) -> bool {
        !self.server_keys.is_empty() || !self.tokens.is_empty()
    }

    pub(super) fn authenticate(&self, request: &HttpRequest) -> Result<Access, ApiError> {
        match self.is_required() {
            true => self.verify(&credential(request)?),
            false => Ok(Access::unlimited(Caller::Anyone)),
        }
    }

    /// Who holds this credential, however it came.
    pub(super) fn verify(&self, credential: &str) -> Result<Access, ApiError> {
        if !self.is_required() {
            return Ok(Access::unlimited(Caller::Anyone));
        }
        if self.server_keys.contains(credential) {
            return Ok(Access::unlimited(Caller::Server));
        }
        let (grant, expires_at) = self.tokens.verify(credential).map_err(|why| match why {
            Unproven::Refused(reason) => ApiError::unauthorized(reason, CHALLENGE_INVALID),
            Unproven::Pending => ApiError::unavailable(
                "the token's key is not known yet, and is looked for; try again",
            ),
        })?;
        Ok(Access::until(Caller::Client(grant), expires_at))
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
        let query = Query::<Vec<(String, String)>>::from_query(request.query_string());
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
