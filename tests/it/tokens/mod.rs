//! Credentials that hold, and all the ways in which one does not.

mod claims;
mod holding;
mod key_files;
mod published;
mod rooms;

use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use super::support::{App, SECRET};

const RSA: &[u8] = include_bytes!("../keys/rsa.pem");
const RSA_PUBLIC: &[u8] = include_bytes!("../keys/rsa.pub.pem");
const ES: &[u8] = include_bytes!("../keys/es256.pem");
const ED: &[u8] = include_bytes!("../keys/ed25519.pem");

fn key(name: &str) -> String {
    format!("{}/tests/it/keys/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn claims() -> Value {
    json!({ "sub": "alice", "exp": get_current_timestamp() + 600, "rooms": ["r"], "scope": "member" })
}

/// The claims with one changed, or left out where null.
fn but(field: &str, value: Value) -> Value {
    let mut claims = claims();
    let fields = claims.as_object_mut().unwrap();
    if value.is_null() {
        fields.remove(field);
    } else {
        fields.insert(field.to_owned(), value);
    }
    claims
}

fn sign(algorithm: Algorithm, claims: &Value, key: &EncodingKey) -> String {
    encode(&Header::new(algorithm), claims, key).unwrap()
}

fn hs256(claims: &Value) -> String {
    sign(
        Algorithm::HS256,
        claims,
        &EncodingKey::from_secret(SECRET.as_bytes()).unwrap(),
    )
}

async fn status(app: &App, token: &str) -> u16 {
    let request = app.client.get(format!("{}/rooms/r/participants", app.url));
    request
        .bearer_auth(token)
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

/// Waits until this credential is answered so.
async fn until(app: &App, credential: &str, expected: u16) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while status(app, credential).await != expected {
        assert!(
            std::time::Instant::now() < deadline,
            "{credential} is never {expected}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
