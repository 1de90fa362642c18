//! A file with a JSON Web Key Set, read again when it changes: keys can be rotated without a restart.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};

/// How often the file is looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The file as it was last read.
pub(crate) struct Jwks {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    looked_at: Instant,
    stamp: Stamp,
    keys: Vec<PublicKey>,
}

/// What changes when the file does.
type Stamp = Option<(SystemTime, u64)>;

struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Jwks {
    pub(crate) fn open(path: PathBuf) -> anyhow::Result<Self> {
        let stamp = stamp(&path);
        let keys = read(&path)
            .with_context(|| format!("LEASEHOLD_JWKS_FILE {} cannot be used", path.display()))?;
        Ok(Self {
            state: Mutex::new(State {
                looked_at: Instant::now(),
                stamp,
                keys,
            }),
            path,
        })
    }

    /// The keys for this algorithm: the one with this id where the token names one.
    pub(crate) fn keys(&self, algorithm: Algorithm, id: Option<&str>) -> Vec<DecodingKey> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked_at.elapsed() >= LOOK_EVERY {
            state.looked_at = Instant::now();
            self.refresh(&mut state);
        }
        state
            .keys
            .iter()
            .filter(|key| key.algorithm == algorithm && (id.is_none() || key.id.as_deref() == id))
            .map(|key| key.key.clone())
            .collect()
    }

    /// A file that cannot be read changes nothing: it may be half written.
    fn refresh(&self, state: &mut State) {
        let found = stamp(&self.path);
        if found == state.stamp {
            return;
        }
        match read(&self.path) {
            Ok(keys) => {
                tracing::info!(keys = keys.len(), "the key set was read again");
                state.keys = keys;
                state.stamp = found;
            }
            Err(error) => {
                tracing::warn!(%error, "the key set cannot be read; the keys of before still hold");
            }
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(path: &Path) -> anyhow::Result<Vec<PublicKey>> {
    let set: JwkSet = serde_json::from_slice(&std::fs::read(path)?)
        .context("it must be a JSON Web Key Set: {\"keys\": [...]}")?;
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
