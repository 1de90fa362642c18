//! Settings of authentication: which credentials hold, and what happens without any.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::{ArgAction, Args};
use secrecy::{ExposeSecret, SecretString};

use super::value::{millis, on_or_off};
use crate::http::auth::{AuthSettings, ClaimRules, KeySetUrl, PublishedSettings, TokenSettings};

/// Who may use the service.
#[derive(Debug, Clone, Args)]
pub struct AuthArgs {
    /// Keys with full access, separated by commas
    #[arg(long, env = "LEASEHOLD_SERVER_KEYS", hide_env_values = true)]
    pub server_keys: Option<SecretString>,

    /// A file with keys with full access, one a line; read again when it changes
    #[arg(long, env = "LEASEHOLD_SERVER_KEYS_FILE")]
    pub server_keys_file: Option<PathBuf>,

    /// The secret that signs client tokens with HS256, at least 32 bytes
    #[arg(long, env = "LEASEHOLD_JWT_HS256_SECRET", hide_env_values = true)]
    pub jwt_hs256_secret: Option<SecretString>,

    /// A PEM file with the public key of client tokens, for RS256, ES256 or EdDSA; read again when it changes
    #[arg(long, env = "LEASEHOLD_JWT_PUBLIC_KEY_FILE")]
    pub jwt_public_key_file: Option<PathBuf>,

    /// A file with the JSON Web Key Set of client tokens, for RS256, ES256 or EdDSA; read again when it changes
    #[arg(long, env = "LEASEHOLD_JWKS_FILE")]
    pub jwks_file: Option<PathBuf>,

    /// Where such a set is published, http or https; fetched at start, now and then, and for a key that is not in it
    #[arg(long, env = "LEASEHOLD_JWKS_URL")]
    pub jwks_url: Option<KeySetUrl>,

    /// How often a published set is fetched
    #[arg(long, env = "LEASEHOLD_JWKS_REFRESH", default_value = "5m",
          value_parser = millis("LEASEHOLD_JWKS_REFRESH", 1_000..=86_400_000))]
    pub jwks_refresh: Duration,

    /// Audiences of which a token must name one, separated by commas; not asked for if left out
    #[arg(long, env = "LEASEHOLD_JWT_AUDIENCE", value_delimiter = ',')]
    pub jwt_audience: Vec<String>,

    /// Issuers of which a token must name one, separated by commas; not asked for if left out
    #[arg(long, env = "LEASEHOLD_JWT_ISSUER", value_delimiter = ',')]
    pub jwt_issuer: Vec<String>,

    /// By how much the clocks of signers may differ: a token holds for so long before its nbf and after its exp
    #[arg(long, env = "LEASEHOLD_JWT_LEEWAY", default_value = "10s",
          value_parser = millis("LEASEHOLD_JWT_LEEWAY", 0..=300_000))]
    pub jwt_leeway: Duration,

    /// Whether what ends in * in a token's rooms is a prefix; off takes it for an id as any other
    #[arg(long, env = "LEASEHOLD_JWT_ROOM_PATTERNS", default_value = "on", action = ArgAction::Set,
          value_parser = on_or_off("LEASEHOLD_JWT_ROOM_PATTERNS"))]
    pub jwt_room_patterns: bool,

    /// Serve beyond this machine although no authentication is configured
    #[arg(long, env = "LEASEHOLD_INSECURE_NO_AUTH")]
    pub insecure_no_auth: bool,
}

impl AuthArgs {
    /// What is configured.
    pub fn settings(&self) -> AuthSettings {
        let keys = self.server_keys.iter();
        let keys = keys.flat_map(|keys| keys.expose_secret().split(','));
        let keys = keys.map(str::trim).filter(|key| !key.is_empty());
        let server_keys = keys.map(SecretString::from).collect();
        AuthSettings {
            server_keys,
            server_keys_file: self.server_keys_file.clone(),
            tokens: TokenSettings {
                // An empty variable is how some tools say that there is none.
                hs256_secret: self
                    .jwt_hs256_secret
                    .clone()
                    .filter(|secret| !secret.expose_secret().is_empty()),
                public_key_file: self.jwt_public_key_file.clone(),
                jwks_file: self.jwks_file.clone(),
                published: self.jwks_url.clone().map(|url| PublishedSettings {
                    url,
                    interval: self.jwks_refresh,
                }),
                rules: ClaimRules {
                    audiences: named(&self.jwt_audience),
                    issuers: named(&self.jwt_issuer),
                    leeway: self.jwt_leeway,
                    room_patterns: self.jwt_room_patterns,
                },
            },
        }
    }

    /// Refuses to serve other machines without authentication.
    ///
    /// # Errors
    /// Where that would happen and nobody said that it should.
    pub fn check_exposure(&self, bind: SocketAddr, is_required: bool) -> anyhow::Result<()> {
        if is_required || self.insecure_no_auth || bind.ip().is_loopback() {
            return Ok(());
        }
        bail!(
            "LEASEHOLD_BIND is {bind}, which other machines reach, but no authentication is configured; \
             set LEASEHOLD_SERVER_KEYS or a key for client tokens, bind 127.0.0.1, \
             or say --insecure-no-auth where the network keeps others out"
        );
    }
}

/// Without what an empty variable leaves.
fn named(list: &[String]) -> Vec<String> {
    let list = list.iter().map(|name| name.trim().to_owned());
    list.filter(|name| !name.is_empty()).collect()
}
