//! A JSON Web Key Set: the keys of it that can verify client tokens.

use std::path::PathBuf;

use anyhow::Context;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};

use super::key_file::KeyFile;

/// A file with a set.
pub(crate) struct Jwks(KeyFile<Vec<PublicKey>>);

struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Jwks {
    pub(crate) fn open(path: PathBuf) -> anyhow::Result<Self> {
        Ok(Self(KeyFile::open("LEASEHOLD_JWKS_FILE", path, parse)?))
    }

    /// The keys for this algorithm: the one with this id where the token names one.
    pub(crate) fn keys(&self, algorithm: Algorithm, id: Option<&str>) -> Vec<DecodingKey> {
        let keys = self.0.keys();
        keys.iter()
            .filter(|key| key.algorithm == algorithm && (id.is_none() || key.id.as_deref() == id))
            .map(|key| key.key.clone())
            .collect()
    }
}

fn parse(text: &[u8]) -> anyhow::Result<Vec<PublicKey>> {
    let set: JwkSet =
        serde_json::from_slice(text).context("it must be a JSON Web Key Set: {\"keys\": [...]}")?;
    Ok(set.keys.iter().filter_map(public_key).collect())
}

/// Only what can verify RS256 or EdDSA; a set may hold keys for other purposes.
fn public_key(jwk: &Jwk) -> Option<PublicKey> {
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        _ => return None,
    };
    if matches!(&jwk.common.public_key_use, Some(PublicKeyUse::Encryption)) {
        return None;
    }
    Some(PublicKey {
        id: jwk.common.key_id.clone(),
        algorithm,
        key: DecodingKey::from_jwk(jwk).ok()?,
    })
}
