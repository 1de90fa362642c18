//! What a token may say of its time, of whom it is for and of its holder.

use std::time::Duration;

use jsonwebtoken::get_current_timestamp;
use serde_json::{Value, json};

use super::{but, claims, hs256, status};
use crate::support::{App, Database, SECRET};

/// The answer to this token, with the sentence where there is one.
async fn answer(app: &App, claims: &Value) -> (u16, String) {
    let request = app.client.get(format!("{}/rooms/r/participants", app.url));
    let answer = request.bearer_auth(hs256(claims)).send().await.unwrap();
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    (
        status,
        body["error"].as_str().unwrap_or_default().to_owned(),
    )
}

/// Each is refused, with a sentence that has these words.
async fn refuses(app: &App, words: &str, claims: impl IntoIterator<Item = Value>) {
    for claims in claims {
        let (status, sentence) = answer(app, &claims).await;
        assert_eq!(status, 401, "{claims}");
        assert!(sentence.contains(words), "{claims}: {sentence}");
    }
}

#[tokio::test]
async fn the_times_of_a_token_are_numbers_with_or_without_a_fraction() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    #[expect(clippy::cast_precision_loss, reason = "a second is precise enough")]
    let now = get_current_timestamp() as f64;
    for exp in [json!(now + 600.25), json!(1e300), json!(u64::MAX)] {
        assert_eq!(
            status(&app, &hs256(&but("exp", exp.clone()))).await,
            200,
            "{exp}"
        );
        // And on a stream, which ends with it.
        let stream = format!(
            "{}/rooms/r/events?access_token={}",
            app.url,
            hs256(&but("exp", exp))
        );
        assert_eq!(app.client.get(stream).send().await.unwrap().status(), 200);
    }
    for claims in [
        but("nbf", json!(now - 0.5)),
        but("nbf", json!(0)),
        but("iat", json!(now - 0.125)),
        // What does not hold yet says so in its nbf.
        but("iat", json!(now + 600.5)),
    ] {
        assert_eq!(status(&app, &hs256(&claims)).await, 200, "{claims}");
    }

    refuses(&app, "must have an exp", [but("exp", Value::Null)]).await;
    refuses(
        &app,
        "has expired",
        [but("exp", json!(0)), but("exp", json!(now - 10.5))],
    )
    .await;
    refuses(
        &app,
        "does not hold yet",
        [but("nbf", json!(now + 60.5)), but("nbf", json!(1e300))],
    )
    .await;
    for claim in ["exp", "nbf", "iat"] {
        let nonsense = [
            json!(-1),
            json!(-0.5),
            json!(-1e300),
            json!((now + 600.0).to_string()),
            json!("2030-01-01T00:00:00Z"),
            json!(true),
            json!([now + 600.0]),
            json!({}),
        ];
        refuses(
            &app,
            "must be numbers of seconds",
            nonsense.map(|value| but(claim, value)),
        )
        .await;
    }
    app.stop().await;
}

#[tokio::test]
async fn clocks_may_differ_by_the_leeway_and_no_more() {
    let database = Database::new().await;
    let usual = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    let flags = ["--jwt-hs256-secret", SECRET, "--jwt-leeway"];
    let strict = App::spawn_with(&database, &[&flags[..], &["0"]].concat()).await;
    let lenient = App::spawn_with(&database, &[&flags[..], &["2m"]].concat()).await;
    let now = get_current_timestamp();
    for (claim, of_usual, of_lenient) in [("exp", now - 5, now - 100), ("nbf", now + 8, now + 100)]
    {
        let (by_seconds, by_minutes) = (
            hs256(&but(claim, json!(of_usual))),
            hs256(&but(claim, json!(of_lenient))),
        );
        for (app, token, expected) in [
            (&strict, &by_seconds, 401),
            (&usual, &by_seconds, 200),
            (&usual, &by_minutes, 401),
            (&lenient, &by_minutes, 200),
        ] {
            assert_eq!(status(app, token).await, expected, "{claim}");
        }
    }
}

#[tokio::test]
async fn a_token_is_for_this_service_and_of_an_issuer_that_it_trusts_where_they_are_set() {
    let database = Database::new().await;
    let flags = [
        "--jwt-hs256-secret",
        SECRET,
        "--jwt-audience",
        "presence, presence-eu",
        "--jwt-issuer",
        "https://id.example/",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let token = |audience: Value, issuer: Value| {
        let mut claims = claims();
        claims["aud"] = audience;
        claims["iss"] = issuer;
        claims
    };
    let issuer = || json!("https://id.example/");
    for audience in [
        json!("presence"),
        json!("presence-eu"),
        json!(["chat", "presence"]),
    ] {
        assert_eq!(answer(&app, &token(audience, issuer())).await.0, 200);
    }
    let others = [
        json!("chat"),
        json!("presence, presence-eu"),
        json!("Presence"),
        json!([]),
        json!(["chat", 7, ["presence"]]),
        json!({ "presence": true }),
        Value::Null,
    ];
    refuses(
        &app,
        "aud",
        others.map(|audience| token(audience, issuer())),
    )
    .await;
    refuses(&app, "aud", [claims()]).await;
    let others = [json!("https://id.example"), json!(""), Value::Null];
    refuses(
        &app,
        "iss",
        others.map(|issuer| token(json!("presence"), issuer)),
    )
    .await;

    let anybody = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    assert_eq!(
        answer(&anybody, &token(json!("chat"), json!("x"))).await.0,
        200
    );
}

#[tokio::test]
async fn what_a_token_says_of_its_holder_must_be_what_it_can_be() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    let of_size = |bytes: usize| json!({ "a": "x".repeat(bytes - r#"{"a":""}"#.len()) });
    for claims in [
        but("info", json!({})),
        but(
            "info",
            json!({ "name": "Mörderätor 💐", "roles": ["host"] }),
        ),
        but("info", of_size(4_096)),
        but("maxMembers", json!(1)),
        but("maxMembers", json!(i32::MAX)),
    ] {
        assert_eq!(status(&app, &hs256(&claims)).await, 200);
    }
    let wrong = [
        json!("host"),
        json!(["host"]),
        json!(7),
        json!(true),
        of_size(4_097),
    ];
    refuses(
        &app,
        "info must be a JSON object of at most 4096 bytes",
        wrong.map(|info| but("info", info)),
    )
    .await;
    refuses(&app, "U+0000", [but("info", json!({ "a": ["\0"] }))]).await;
    let wrong = [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("5"),
        json!(u32::MAX),
        json!(u64::MAX),
        json!([5]),
    ];
    refuses(
        &app,
        "maxMembers must be a whole number",
        wrong.map(|most| but("maxMembers", most)),
    )
    .await;
    for claim in ["rooms", "roomIds", "roomPrefixes"] {
        let wrong = [json!("r"), json!(["r", 7]), json!({ "r": true })];
        refuses(
            &app,
            "lists of strings",
            wrong.map(|rooms| but(claim, rooms)),
        )
        .await;
    }
    refuses(
        &app,
        "scope must be a string",
        [but("scope", json!(["member"]))],
    )
    .await;
    app.stop().await;
}

#[tokio::test]
async fn a_stream_ends_when_its_token_does_with_the_leeway() {
    let database = Database::new().await;
    let flags = ["--jwt-hs256-secret", SECRET, "--jwt-leeway", "3s"];
    let app = App::spawn_with(&database, &flags).await;
    let late = but("exp", json!(get_current_timestamp() - 1));
    let url = format!("{}/rooms/r/events?access_token={}", app.url, hs256(&late));
    let stream = app.client.get(url).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let ended = tokio::time::timeout(Duration::from_secs(20), stream.text()).await;
    let events = ended.expect("it ends").unwrap();
    assert!(events.contains("event: snapshot"), "{events}");
    assert_eq!(status(&app, &hs256(&late)).await, 401);
    app.stop().await;
}
