//! Credentials that hold, and all the ways in which one does not.

use std::time::Duration;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use super::support::{App, Database, SECRET};

const RSA: &[u8] = include_bytes!("keys/rsa.pem");
const RSA_PUBLIC: &[u8] = include_bytes!("keys/rsa.pub.pem");
const ED: &[u8] = include_bytes!("keys/ed25519.pem");

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

#[tokio::test]
async fn a_token_that_does_not_hold_is_refused() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    let now = get_current_timestamp();
    assert_eq!(status(&app, &hs256(&claims())).await, 200);

    let other = EncodingKey::from_secret(b"another secret of at least 32 bytes").unwrap();
    let hs384 = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    let (payload, genuine) = (hs256(&but("sub", json!("bob"))), hs256(&claims()));
    let swapped = {
        let mut parts: Vec<&str> = genuine.split('.').collect();
        parts[1] = payload.split('.').nth(1).unwrap();
        parts.join(".")
    };
    // {"alg":"none","typ":"JWT"} and {"sub":"alice","rooms":["r"],"exp":9999999999}
    let none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.\
                eyJzdWIiOiJhbGljZSIsInJvb21zIjpbInIiXSwiZXhwIjo5OTk5OTk5OTk5fQ.";
    for (what, token) in [
        ("expired", hs256(&but("exp", json!(now - 1)))),
        ("without an end", hs256(&but("exp", Value::Null))),
        (
            "with an end that is no number",
            hs256(&but("exp", json!("never"))),
        ),
        ("not yet valid", hs256(&but("nbf", json!(now + 600)))),
        ("without a subject", hs256(&but("sub", Value::Null))),
        (
            "with a subject that is no id",
            hs256(&but("sub", json!("a\nb"))),
        ),
        (
            "with rooms that are no list",
            hs256(&but("rooms", json!("r"))),
        ),
        ("of another key", sign(Algorithm::HS256, &claims(), &other)),
        (
            "of another algorithm",
            sign(Algorithm::HS384, &claims(), &hs384),
        ),
        ("with other claims than were signed", swapped),
        ("unsigned", none.to_owned()),
        (
            "of a key that is not configured",
            sign(
                Algorithm::RS256,
                &claims(),
                &EncodingKey::from_rsa_pem(RSA).unwrap(),
            ),
        ),
        ("empty", String::new()),
        ("no token", "x.y.z".to_owned()),
    ] {
        assert_eq!(status(&app, &token).await, 401, "{what}");
    }
    for (what, claims) in [
        ("other rooms", but("rooms", json!(["r2", "x*"]))),
        ("no rooms", but("rooms", Value::Null)),
        (
            "scopes of something else",
            but("scope", json!("read write")),
        ),
    ] {
        assert_eq!(status(&app, &hs256(&claims)).await, 403, "{what}");
    }
    for claims in [
        but("rooms", json!(["*"])),
        but("scope", Value::Null),
        but("scope", json!("x observer")),
    ] {
        assert_eq!(status(&app, &hs256(&claims)).await, 200, "{claims}");
    }
    app.stop().await;
}

#[tokio::test]
async fn a_public_key_is_never_taken_for_a_secret() {
    let database = Database::new().await;
    let flags = [
        "--jwt-public-key-file",
        &key("rsa.pub.pem"),
        "--jwt-hs256-secret",
        SECRET,
    ];
    let app = App::spawn_with(&database, &flags).await;
    let genuine = sign(
        Algorithm::RS256,
        &claims(),
        &EncodingKey::from_rsa_pem(RSA).unwrap(),
    );
    assert_eq!(status(&app, &genuine).await, 200);

    let confused = EncodingKey::from_secret(RSA_PUBLIC).unwrap();

    assert_eq!(
        status(&app, &sign(Algorithm::HS256, &claims(), &confused)).await,
        401
    );
    app.stop().await;
}

#[tokio::test]
async fn a_token_may_be_signed_with_an_edwards_curve() {
    let database = Database::new().await;
    let app = App::spawn_with(
        &database,
        &["--jwt-public-key-file", &key("ed25519.pub.pem")],
    )
    .await;
    let genuine = sign(
        Algorithm::EdDSA,
        &claims(),
        &EncodingKey::from_ed_pem(ED).unwrap(),
    );
    assert_eq!(status(&app, &genuine).await, 200);
    assert_eq!(status(&app, &hs256(&claims())).await, 401);
    app.stop().await;
}

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

#[tokio::test]
async fn a_query_is_no_place_for_a_credential_but_for_streams() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--server-keys", "key"]).await;
    assert_eq!(
        app.get("/rooms/r/participants?access_token=key")
            .await
            .status(),
        401
    );
    app.stop().await;
}

#[tokio::test]
async fn a_huge_credential_is_refused_without_a_fault() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    assert_eq!(status(&app, &"x".repeat(20_000)).await, 401);
    let request = reqwest::Client::new().get(format!("{}/rooms/r/participants", app.url));
    // The server may stop reading such a head, and close.
    if let Ok(response) = request.bearer_auth("x".repeat(1_048_576)).send().await {
        assert!(response.status().is_client_error(), "{}", response.status());
    }
    assert_eq!(status(&app, &hs256(&claims())).await, 200);
    app.stop().await;
}

#[tokio::test]
async fn a_key_that_cannot_serve_is_refused_at_the_start() {
    use super::support::serve_args;
    use leasehold::app::Application;
    let database = Database::new().await;
    let absent = key("absent.pem");
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().to_str().unwrap();
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
        ("--jwks-file", empty, "LEASEHOLD_JWKS_FILE"),
        ("--server-keys-file", empty, "LEASEHOLD_SERVER_KEYS_FILE"),
    ] {
        let outcome = Application::build(&serve_args(&[flag, value]), database.url().into()).await;
        let error = format!("{:#}", outcome.map(|_| ()).unwrap_err());
        assert!(error.contains(names), "{error}");
    }
}

#[tokio::test]
async fn settings_that_are_secret_do_not_show() {
    let args =
        super::support::serve_args(&["--server-keys", "sesame-1", "--jwt-hs256-secret", SECRET]);
    let shown = format!("{args:?}");
    assert!(
        !shown.contains("sesame") && !shown.contains(SECRET),
        "{shown}"
    );
}
