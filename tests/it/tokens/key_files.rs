//! Keys in files: read again when they change, and refused at the start where they cannot serve.

use std::time::Duration;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::{ED, ES, RSA, claims, key, sign, status, until};
use crate::support::{App, Database};

#[tokio::test]
async fn a_key_set_is_read_again_when_it_changes() {
    let database = Database::new().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jwks.json");
    let (rsa, ed) = (
        EncodingKey::from_rsa_pem(RSA).unwrap(),
        EncodingKey::from_ed_pem(ED).unwrap(),
    );
    let write = |id: &str, key: &EncodingKey, algorithm| {
        let mut jwk = Jwk::from_encoding_key(key, algorithm).unwrap();
        jwk.common.key_id = Some(id.to_owned());
        // Renamed into place, as those who rotate keys do.
        let fresh = path.with_extension("new");
        std::fs::write(&fresh, json!({ "keys": [jwk] }).to_string()).unwrap();
        std::fs::rename(&fresh, &path).unwrap();
    };
    write("one", &rsa, Algorithm::RS256);
    let app = App::spawn_with(&database, &["--jwks-file", path.to_str().unwrap()]).await;
    let token = |id: &str, key: &EncodingKey, algorithm| {
        let mut header = Header::new(algorithm);
        header.kid = Some(id.to_owned());
        encode(&header, &claims(), key).unwrap()
    };
    let old = token("one", &rsa, Algorithm::RS256);
    let new = token("two", &ed, Algorithm::EdDSA);
    assert_eq!(status(&app, &old).await, 200);
    assert_eq!(
        status(&app, &token("two", &rsa, Algorithm::RS256)).await,
        401,
        "another id"
    );
    assert_eq!(status(&app, &new).await, 401);

    write("two", &ed, Algorithm::EdDSA);

    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while status(&app, &new).await != 200 {
        assert!(
            std::time::Instant::now() < deadline,
            "the new key is not read"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(status(&app, &old).await, 401, "the old key no longer holds");

    std::fs::write(&path, "{").unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(
        status(&app, &new).await,
        200,
        "a broken file changes nothing"
    );
    app.stop().await;
}

#[tokio::test]
async fn server_keys_in_a_file_are_read_again_when_it_changes() {
    let database = Database::new().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    std::fs::write(&path, "old\n").unwrap();
    let flags = [
        "--server-keys-file",
        path.to_str().unwrap(),
        "--server-keys",
        "fixed",
    ];
    let app = App::spawn_with(&database, &flags).await;
    assert_eq!(status(&app, "old").await, 200);
    assert_eq!(status(&app, "new").await, 401);

    std::fs::write(&path, "old\nnew\n").unwrap();
    until(&app, "new", 200).await;
    assert_eq!(status(&app, "old").await, 200, "both, while one takes over");

    std::fs::write(&path, "new\n").unwrap();
    until(&app, "old", 401).await;
    assert_eq!(status(&app, "new").await, 200);

    // Another file in its place, as old and as large.
    let (fresh, modified) = (
        path.with_extension("new"),
        path.metadata().unwrap().modified(),
    );
    std::fs::write(&fresh, "two\n").unwrap();
    let file = std::fs::File::options().write(true).open(&fresh).unwrap();
    file.set_modified(modified.unwrap()).unwrap();
    std::fs::rename(&fresh, &path).unwrap();
    until(&app, "new", 401).await;

    for useless in ["", "\n \n"] {
        std::fs::write(&path, useless).unwrap();
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert_eq!(status(&app, "two").await, 200, "no key is no change");
        assert_eq!(status(&app, "").await, 401);
    }
    std::fs::remove_file(&path).unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(status(&app, "two").await, 200);
    assert_eq!(status(&app, "fixed").await, 200);
    app.stop().await;
}

#[tokio::test]
async fn a_public_key_in_a_file_is_read_again_when_it_changes() {
    let database = Database::new().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key.pem");
    std::fs::copy(key("rsa.pub.pem"), &path).unwrap();
    let flags = ["--jwt-public-key-file", path.to_str().unwrap()];
    let app = App::spawn_with(&database, &flags).await;
    let rsa = EncodingKey::from_rsa_pem(RSA).unwrap();
    let ed = EncodingKey::from_ed_pem(ED).unwrap();
    let old = sign(Algorithm::RS256, &claims(), &rsa);
    let new = sign(Algorithm::EdDSA, &claims(), &ed);
    assert_eq!(status(&app, &old).await, 200);
    assert_eq!(status(&app, &new).await, 401);

    std::fs::copy(key("ed25519.pub.pem"), &path).unwrap();
    until(&app, &new, 200).await;
    assert_eq!(status(&app, &old).await, 401, "the old key no longer holds");

    std::fs::write(&path, "-----BEGIN").unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(
        status(&app, &new).await,
        200,
        "a broken file changes nothing"
    );
    app.stop().await;
}

/// Keys for other purposes, of other kinds, too weak, and none at all.
fn unusable() -> Vec<Value> {
    let public = |pem: &[u8], algorithm| {
        let key = match algorithm {
            Algorithm::RS256 => EncodingKey::from_rsa_pem(pem),
            Algorithm::ES256 => EncodingKey::from_ec_pem(pem),
            _ => EncodingKey::from_ed_pem(pem),
        };
        json!(Jwk::from_encoding_key(&key.unwrap(), algorithm).unwrap())
    };
    let with = |mut key: Value, field: &str, value: Value| {
        key[field] = value;
        key
    };
    let rsa = public(RSA, Algorithm::RS256);
    let short: String = rsa["n"].as_str().unwrap().chars().take(171).collect();
    vec![
        with(rsa.clone(), "use", json!("enc")),
        with(rsa.clone(), "use", json!("other")),
        with(rsa.clone(), "alg", json!("PS256")),
        with(rsa.clone(), "alg", json!("RSA-OAEP")),
        with(rsa.clone(), "key_ops", json!(["encrypt", "wrapKey"])),
        with(rsa.clone(), "kid", json!(7)),
        with(rsa.clone(), "n", json!("?")),
        with(rsa.clone(), "n", json!("")),
        with(rsa, "n", json!(short)),
        with(public(ES, Algorithm::ES256), "crv", json!("P-384")),
        with(public(ES, Algorithm::ES256), "x", json!("AAAA")),
        with(public(ED, Algorithm::EdDSA), "crv", json!("X25519")),
        json!({ "kty": "oct", "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75" }),
        json!({ "kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA" }),
        json!({}),
        json!("key"),
    ]
}

#[tokio::test]
async fn keys_of_a_set_that_are_for_something_else_are_passed_over() {
    let database = Database::new().await;
    let mut keys = unusable();
    let es = EncodingKey::from_ec_pem(ES).unwrap();
    let usable = Jwk::from_encoding_key(&es, Algorithm::ES256).unwrap();
    keys.push(json!(usable));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, json!({ "keys": keys }).to_string()).unwrap();
    let flags = ["--jwks-file", file.path().to_str().unwrap()];
    let app = App::spawn_with(&database, &flags).await;
    let rsa = EncodingKey::from_rsa_pem(RSA).unwrap();
    let ed = EncodingKey::from_ed_pem(ED).unwrap();
    assert_eq!(
        status(&app, &sign(Algorithm::ES256, &claims(), &es)).await,
        200
    );
    for token in [
        sign(Algorithm::RS256, &claims(), &rsa),
        sign(Algorithm::PS256, &claims(), &rsa),
        sign(Algorithm::EdDSA, &claims(), &ed),
    ] {
        assert_eq!(status(&app, &token).await, 401);
    }
    app.stop().await;
}

#[tokio::test]
async fn a_key_that_cannot_serve_is_refused_at_the_start() {
    use crate::support::serve_args;
    use leasehold::app::Application;
    let database = Database::new().await;
    let absent = key("absent.pem");
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().to_str().unwrap();
    let useless = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&useless, json!({ "keys": unusable() }).to_string()).unwrap();
    let useless = useless.path().to_str().unwrap();
    for (flag, value, names) in [
        ("--jwt-hs256-secret", "short", "LEASEHOLD_JWT_HS256_SECRET"),
        (
            "--jwt-public-key-file",
            absent.as_str(),
            "LEASEHOLD_JWT_PUBLIC_KEY_FILE",
        ),
        (
            "--jwt-public-key-file",
            empty,
            "LEASEHOLD_JWT_PUBLIC_KEY_FILE",
        ),
        (
            "--jwt-public-key-file",
            &key("rsa-1024.pub.pem"),
            "2048 bits",
        ),
        ("--jwt-public-key-file", &key("es384.pub.pem"), "ES256"),
        ("--jwks-file", empty, "LEASEHOLD_JWKS_FILE"),
        ("--jwks-file", useless, "it holds no key that verifies"),
        ("--server-keys-file", empty, "LEASEHOLD_SERVER_KEYS_FILE"),
    ] {
        let outcome = Application::build(&serve_args(&[flag, value]), database.url().into()).await;
        let error = format!("{:#}", outcome.map(|_| ()).unwrap_err());
        assert!(error.contains(names), "{error}");
    }
}
