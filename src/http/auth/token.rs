//! Client tokens: JWTs, signed with a shared secret, a private key, or one of a published set.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::jwks::Jwks;
use super::key_file::KeyFile;
use crate::access::{Grant, RoomPattern, Scope};
use crate::domain::UserId;

/// The longest token that is looked at, in bytes.
const MAX_BYTES: usize = 8_192;

/// The shortest shared secret: as long as the hash, or it could be guessed from one token.
const MIN_SECRET_BYTES: usize = 32;

/// Which keys sign client tokens; several may.
#[derive(Debug, Clone, Default)]
pub struct TokenSettings {
    /// For HS256.
    pub hs256_secret: Option<SecretString>,
    /// A PEM file for RS256 or EdDSA; read again when it changes.
    pub public_key_file: Option<PathBuf>,
    /// A file with a JSON Web Key Set for RS256 or EdDSA; read again when it changes.
    pub jwks_file: Option<PathBuf>,
}

/// The keys, each with the one algorithm that it is for.
#[derive(Default)]
pub(crate) struct Tokens {
    hs256: Option<DecodingKey>,
    public: Option<KeyFile<(Algorithm, DecodingKey)>>,
    jwks: Option<Jwks>,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    exp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rooms: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
}

impl Tokens {
    pub(crate) fn new(settings: TokenSettings) -> anyhow::Result<Self> {
        let hs256 = match settings.hs256_secret {
            Some(secret) if secret.expose_secret().len() < MIN_SECRET_BYTES => bail!(
                "LEASEHOLD_JWT_HS256_SECRET has {} bytes, but must have at least {MIN_SECRET_BYTES}",
                secret.expose_secret().len()
            ),
            Some(secret) => Some(DecodingKey::from_secret(secret.expose_secret().as_bytes())?),
            None => None,
        };
        let open = |path| KeyFile::open("LEASEHOLD_JWT_PUBLIC_KEY_FILE", path, parse_pem);
        let public = settings.public_key_file.map(open).transpose()?;
        let jwks = settings.jwks_file.map(Jwks::open).transpose()?;
        Ok(Self {
            hs256,
            public,
            jwks,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hs256.is_none() && self.public.is_none() && self.jwks.is_none()
    }

    /// What the token grants and when it ends, in seconds of Unix time.
    ///
    /// # Errors
    /// A sentence that says why it does not hold, and nothing of the token.
    pub(crate) fn verify(&self, token: &str) -> Result<(Grant, u64), &'static str> {
        if token.len() > MAX_BYTES {
            return Err("the credential is too long");
        }
        let header = decode_header(token)
            .map_err(|_| "the credential is neither a server key nor a token")?;
        // A key is only ever tried with its own algorithm: the token does not choose.
        let (algorithm, keys): (Algorithm, Vec<DecodingKey>) = match header.alg {
            Algorithm::HS256 => (Algorithm::HS256, self.hs256.iter().cloned().collect()),
            algorithm @ (Algorithm::RS256 | Algorithm::EdDSA) => {
                let public = self.public.iter().map(KeyFile::keys);
                let mut keys: Vec<_> = public
                    .filter(|public| public.0 == algorithm)
                    .map(|public| public.1.clone())
                    .collect();
                if let Some(jwks) = &self.jwks {
                    keys.extend(jwks.keys(algorithm, header.kid.as_deref()));
                }
                (algorithm, keys)
            }
            _ => return Err("the token's algorithm is not one of HS256, RS256, EdDSA"),
        };
        let mut validation = Validation::new(algorithm);
        validation.leeway = 0;
        validation.validate_nbf = true;
        validation.validate_aud = false;
        validation.set_required_spec_claims(&["exp", "sub"]);
        let mut reason = "the token's key is unknown";
        for key in keys {
            match decode::<Claims>(token, &key, &validation) {
                Ok(data) => return grant(data.claims),
                Err(error) => reason = explain(error.kind()),
            }
        }
        Err(reason)
    }
}

fn grant(claims: Claims) -> Result<(Grant, u64), &'static str> {
    let subject = UserId::parse(claims.sub).map_err(|_| "the token's sub is not a valid userId")?;
    let scopes = match &claims.scope {
        // Other words may be meant for other services.
        Some(words) => words.split_whitespace().filter_map(Scope::parse).collect(),
        None => vec![Scope::Member],
    };
    let rooms = claims
        .rooms
        .map(|rooms| rooms.iter().map(|room| RoomPattern::parse(room)).collect());
    Ok((
        Grant {
            subject,
            scopes,
            rooms,
        },
        claims.exp,
    ))
}

fn explain(kind: &jsonwebtoken::errors::ErrorKind) -> &'static str {
    use jsonwebtoken::errors::ErrorKind;
    match kind {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token does not hold yet",
        ErrorKind::InvalidSignature => "the token's signature is wrong",
        ErrorKind::MissingRequiredClaim(_) => "the token must have the claims exp and sub",
        ErrorKind::Json(_) => {
            "the token's claims cannot be read: sub is a string, exp a number, rooms a list of strings, scope a string"
        }
        _ => "the token cannot be read",
    }
}

fn parse_pem(pem: &[u8]) -> anyhow::Result<(Algorithm, DecodingKey)> {
    let ed = DecodingKey::from_ed_pem(pem).map(|key| (Algorithm::EdDSA, key));
    let rsa = || DecodingKey::from_rsa_pem(pem).map(|key| (Algorithm::RS256, key));
    ed.or_else(|_| rsa())
        .map_err(|_| anyhow!("it must be a PEM file with a public key for RS256 or EdDSA"))
}

/// Now, in seconds of Unix time, by this host's clock: tokens are judged by it, leases never.
pub(crate) fn unix_time() -> u64 {
    jsonwebtoken::get_current_timestamp()
}

/// Makes a token for development, signed with the shared secret.
///
/// # Errors
/// Where the secret is too short.
pub fn mint(
    secret: &SecretString,
    subject: String,
    rooms: Option<Vec<String>>,
    scope: Scope,
    lifetime_seconds: u64,
) -> anyhow::Result<String> {
    if secret.expose_secret().len() < MIN_SECRET_BYTES {
        bail!("LEASEHOLD_JWT_HS256_SECRET must have at least {MIN_SECRET_BYTES} bytes");
    }
    let claims = Claims {
        sub: subject,
        exp: unix_time() + lifetime_seconds,
        rooms,
        scope: Some(scope.as_str().to_owned()),
    };
    let key = EncodingKey::from_secret(secret.expose_secret().as_bytes())?;
    Ok(encode(&Header::new(Algorithm::HS256), &claims, &key)?)
}
