//! Tokens for development, signed with the shared secret.

use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Map, Value};

use super::claims::unix_time;
use super::token::require_length;
use crate::access::Scope;

/// A token that is to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The userId that its holder is.
    pub subject: String,
    /// Rooms that it reaches, by their ids. With no rooms and no prefixes: all for an admin, none for others.
    pub room_ids: Vec<String>,
    /// Rooms that it reaches, by how their ids begin.
    pub room_prefixes: Vec<String>,
    /// What its holder may do.
    pub scope: Scope,
    /// Shown beside the holder's metadata.
    pub info: Option<Map<String, Value>>,
    /// How many members a room may have for the holder to join it.
    pub max_members: Option<i32>,
    /// Whom it is for.
    pub audience: Option<String>,
    /// Whom it is of.
    pub issuer: Option<String>,
    /// For how long it holds.
    pub lifetime: Duration,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Claims<'a> {
    sub: &'a str,
    exp: u64,
    scope: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    room_ids: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    room_prefixes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_members: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
}

/// Makes the token.
///
/// # Errors
/// Where the secret is too short.
pub fn mint(secret: &SecretString, token: &NewToken) -> anyhow::Result<String> {
    require_length(secret)?;
    let claims = Claims {
        sub: &token.subject,
        exp: (unix_time() + token.lifetime).as_secs(),
        scope: token.scope.as_str(),
        room_ids: &token.room_ids,
        room_prefixes: &token.room_prefixes,
        info: token.info.as_ref(),
        max_members: token.max_members,
        aud: token.audience.as_deref(),
        iss: token.issuer.as_deref(),
    };
    let key = EncodingKey::from_secret(secret.expose_secret().as_bytes())?;
    Ok(encode(&Header::new(Algorithm::HS256), &claims, &key)?)
}
