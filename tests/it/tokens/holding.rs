//! Tokens that hold, and those that do not.

use jsonwebtoken::{Algorithm, EncodingKey, get_current_timestamp};
use serde_json::{Value, json};

use super::{ED, ES, RSA, RSA_PUBLIC, but, claims, hs256, key, sign, status};
use crate::support::{App, Database, SECRET};

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
        ("expired", hs256(&but("exp", json!(now - 11)))),
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
async fn a_token_may_be_signed_with_the_curve_p_256() {
    let database = Database::new().await;
    let flags = ["--jwt-public-key-file", &key("es256.pub.pem")];
    let app = App::spawn_with(&database, &flags).await;
    let es256 = |claims: &Value| {
        sign(
            Algorithm::ES256,
            claims,
            &EncodingKey::from_ec_pem(ES).unwrap(),
        )
    };
    assert_eq!(status(&app, &es256(&claims())).await, 200);
    let (other, genuine) = (es256(&but("sub", json!("bob"))), es256(&claims()));
    let (message, _) = other.rsplit_once('.').unwrap();
    let (_, signature) = genuine.rsplit_once('.').unwrap();
    let swapped = format!("{message}.{signature}");
    assert_eq!(status(&app, &swapped).await, 401);
    assert_eq!(status(&app, &hs256(&claims())).await, 401);
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
async fn settings_that_are_secret_do_not_show() {
    let args =
        crate::support::serve_args(&["--server-keys", "sesame-1", "--jwt-hs256-secret", SECRET]);
    let shown = format!("{args:?}");
    assert!(
        !shown.contains("sesame") && !shown.contains(SECRET),
        "{shown}"
    );
}
