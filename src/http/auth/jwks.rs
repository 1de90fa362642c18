//! Public keys of client tokens: those of a JSON Web Key Set or a PEM file that can verify one.

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::Deserialize;
use serde_json::Value;

/// The most keys of a set that one token is tried with.
const MAX_TRIED: usize = 8;

/// The shortest RSA modulus, in bits: RFC 7518 asks for it.
const MIN_RSA_BITS: usize = 2_048;

/// Public keys that can verify client tokens; at least one.
pub(crate) struct KeySet(Vec<PublicKey>);

struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// The outline of a set, whose keys are read one by one: some may be for other purposes.
#[derive(Deserialize)]
struct Outline {
    keys: Vec<Value>,
}

impl KeySet {
    /// A JSON Web Key Set.
    ///
    /// # Errors
    /// Where it is none, or no key of it can be used.
    pub(crate) fn parse(text: &[u8]) -> anyhow::Result<Self> {
        let outline: Outline = serde_json::from_slice(text)
            .context("it must be a JSON Web Key Set: {\"keys\": [...]}")?;
        let keys = outline.keys.into_iter();
        let keys = keys.filter_map(|key| PublicKey::of(&serde_json::from_value(key).ok()?));
        let keys: Vec<_> = keys.collect();
        if keys.is_empty() {
            bail!(
                "it holds no key that verifies RS256 (2048 bits or more), ES256 or EdDSA (Ed25519)"
            );
        }
        Ok(Self(keys))
    }

    /// A PEM file with one public key.
    ///
    /// # Errors
    /// Where it is none, or cannot be used.
    pub(crate) fn parse_pem(pem: &[u8]) -> anyhow::Result<Self> {
        let key = DecodingKey::from_ed_pem(pem)
            .or_else(|_| DecodingKey::from_ec_pem(pem))
            .or_else(|_| DecodingKey::from_rsa_pem(pem))
            .ok();
        let key = key.and_then(|key| PublicKey::of(&Jwk::from_decoding_key(&key, None).ok()?));
        let key = key.context(
            "it must be a PEM file with a public key for RS256 (2048 bits or more), ES256 or EdDSA (Ed25519)",
        )?;
        Ok(Self(vec![key]))
    }

    /// The keys for this algorithm: those with this id, or without any, where the token names one.
    pub(crate) fn keys(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
    ) -> impl Iterator<Item = &DecodingKey> {
        let is_meant = move |key: &&PublicKey| {
            key.algorithm == algorithm
                && (id.is_none() || key.id.is_none() || key.id.as_deref() == id)
        };
        let keys = self.0.iter().filter(is_meant).take(MAX_TRIED);
        keys.map(|key| &key.key)
    }
}

impl PublicKey {
    /// `None` where it is for another purpose, or too weak for this one.
    fn of(jwk: &Jwk) -> Option<Self> {
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(key) if bits(&key.n)? >= MIN_RSA_BITS => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                Algorithm::ES256
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            _ => return None,
        };
        let common = &jwk.common;
        let is_for_it = common
            .key_algorithm
            .is_none_or(|named| named == KeyAlgorithm::from(algorithm))
            && matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
            && common
                .key_operations
                .as_ref()
                .is_none_or(|all| all.contains(&KeyOperations::Verify));
        let key = DecodingKey::from_jwk(jwk).ok()?;
        // Of a point that is not on its curve no verifier can be made.
        crypto::verify("", b"", &key, algorithm).ok()?;
        is_for_it.then(|| Self {
            id: common.key_id.clone(),
            algorithm,
            key,
        })
    }
}

/// Of an unsigned number in base64.
fn bits(number: &str) -> Option<usize> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(number).ok()?;
    let leading = bytes.iter().take_while(|&&byte| byte == 0).count();
    let first = bytes.get(leading)?;
    Some((bytes.len() - leading) * 8 - first.leading_zeros() as usize)
}
