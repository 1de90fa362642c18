//! Client tokens: JWTs, signed with a shared secret, a private key, or one of a published set.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, Header, crypto, decode_header};
use secrecy::{ExposeSecret, SecretString};

use super::claims::{ClaimRules, Claims, unix_time};
use super::jwks::KeySet;
use super::key_file::KeyFile;
use super::published::{PublishedKeys, PublishedSettings};
use crate::access::Grant;

/// The longest token that is looked at, in bytes: one with the largest `info` fits twice.
const MAX_BYTES: usize = 16_384;

/// The shortest shared secret: as long as the hash, or it could be guessed from one token.
const MIN_SECRET_BYTES: usize = 32;

/// Which keys sign client tokens, of which several may, and what the tokens must say.
#[derive(Debug, Clone, Default)]
pub struct TokenSettings {
    /// For HS256.
    pub hs256_secret: Option<SecretString>,
    /// A PEM file for RS256, ES256 or EdDSA; read again when it changes.
    pub public_key_file: Option<PathBuf>,
    /// A file with a JSON Web Key Set for them; read again when it changes.
    pub jwks_file: Option<PathBuf>,
    /// Where such a set is published.
    pub published: Option<PublishedSettings>,
    /// What every token must say.
    pub rules: ClaimRules,
}

/// The keys, each with the one algorithm that it is for.
pub(crate) struct Tokens {
    hs256: Option<DecodingKey>,
    files: Vec<KeyFile<KeySet>>,
    published: Option<Arc<PublishedKeys>>,
    rules: ClaimRules,
}

/// Why a token proves nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// A sentence, and nothing of the token.
    Refused(&'static str),
    /// The key that it names is being looked for where keys are published.
    Pending,
}

impl From<&'static str> for Unproven {
    fn from(reason: &'static str) -> Self {
        Self::Refused(reason)
    }
}

impl Tokens {
    /// Reads the keys, but for those that are published.
    pub(crate) fn new(settings: TokenSettings) -> anyhow::Result<Self> {
        let hs256 = match &settings.hs256_secret {
            Some(secret) => {
                require_length(secret)?;
                Some(DecodingKey::from_secret(secret.expose_secret().as_bytes())?)
            }
            None => None,
        };
        let mut files = Vec::new();
        if let Some(path) = settings.public_key_file {
            let setting = "LEASEHOLD_JWT_PUBLIC_KEY_FILE";
            files.push(KeyFile::open(setting, path, KeySet::parse_pem)?);
        }
        if let Some(path) = settings.jwks_file {
            files.push(KeyFile::open("LEASEHOLD_JWKS_FILE", path, KeySet::parse)?);
        }
        let published = settings.published.map(PublishedKeys::new);
        let has_public_keys = !files.is_empty() || published.is_some();
        if has_public_keys && settings.rules.audiences.is_empty() {
            tracing::warn!(
                "whoever signs tokens with these public keys may sign them for other services too, and \
                 this one takes them all; set LEASEHOLD_JWT_AUDIENCE"
            );
        }
        Ok(Self {
            hs256,
            files,
            published: published.map(Arc::new),
            rules: settings.rules,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hs256.is_none() && self.files.is_empty() && self.published.is_none()
    }

    pub(crate) fn published(&self) -> Option<&Arc<PublishedKeys>> {
        self.published.as_ref()
    }

    /// What the token grants and when that ends, in Unix time.
    ///
    /// # Errors
    /// [`Unproven`]
    pub(crate) fn verify(&self, token: &str) -> Result<(Grant, Duration), Unproven> {
        if token.len() > MAX_BYTES {
            return Err("the credential is too long".into());
        }
        let header = decode_header(token)
            .map_err(|_| "the credential is neither a server key nor a token")?;
        // RFC 7515: what is critical and not understood refuses the token. Nothing is understood.
        if header.crit.is_some() {
            return Err("the token's header has a crit, which is not understood".into());
        }
        let (message, signature) = token.rsplit_once('.').ok_or("the token cannot be read")?;
        self.require_signature(message, signature, &header)?;
        let claims = claims(message).ok_or("the token's claims must be a JSON object")?;
        Ok(self.rules.read(&claims, unix_time())?)
    }

    /// A key is only ever tried with its own algorithm: the token does not choose.
    fn require_signature(
        &self,
        message: &str,
        signature: &str,
        header: &Header,
    ) -> Result<(), Unproven> {
        let (algorithm, id) = (header.alg, header.kid.as_deref());
        let mut is_known = false;
        let mut signs = |key: &DecodingKey| {
            is_known = true;
            crypto::verify(signature, message.as_bytes(), key, algorithm).unwrap_or(false)
        };
        let is_genuine = match algorithm {
            Algorithm::HS256 => self.hs256.iter().any(signs),
            Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA => {
                let mut files = self.files.iter();
                if files.any(|file| file.keys().keys(algorithm, id).any(&mut signs)) {
                    return Ok(());
                }
                match &self.published {
                    Some(published) => published.tried(algorithm, id, signs)?,
                    None => false,
                }
            }
            _ => {
                return Err(
                    "the token's algorithm is not one of HS256, RS256, ES256, EdDSA".into(),
                );
            }
        };
        match (is_genuine, is_known) {
            (true, _) => Ok(()),
            (false, true) => Err("the token's signature is wrong".into()),
            (false, false) => Err("the token's key is unknown".into()),
        }
    }
}

fn claims(message: &str) -> Option<Claims> {
    let (_, payload) = message.split_once('.')?;
    let json = BASE64_URL_SAFE_NO_PAD.decode(payload).ok()?;
    serde_json::from_slice(&json).ok()
}

/// # Errors
/// Where it is too short.
pub(crate) fn require_length(secret: &SecretString) -> anyhow::Result<()> {
    match secret.expose_secret().len() {
        length if length < MIN_SECRET_BYTES => bail!(
            "LEASEHOLD_JWT_HS256_SECRET has {length} bytes, but must have at least {MIN_SECRET_BYTES}"
        ),
        _ => Ok(()),
    }
}
