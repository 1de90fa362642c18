//! Making endpoints, changing and deleting them, by HTTP and by file.

use std::io::Write;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{FLAGS, LATER, SECRET, hooked, put, state};
use crate::support::{App, Database, Receiver, Service};

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_shown_as_it_was_made_and_goes_with_all_of_it() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let made = put(
        &app,
        "a%2Fb",
        &json!({ "url": "https://hooks.example.com/in?x=1", "secret": SECRET,
                 "prefix": "team-", "kinds": ["joined", "ended"] }),
    )
    .await;
    let position = made["position"].as_str().unwrap().to_owned();
    assert_eq!(
        made,
        json!({ "name": "a/b", "url": "https://hooks.example.com/in?x=1", "room": null,
                "prefix": "team-", "kinds": ["joined", "ended"], "status": "active",
                "position": position, "pendingDeliveries": 0, "pendingChanges": 0,
                "oldestPendingMs": null, "failures": 0, "lastSuccessMs": null,
                "lastFailureMs": null, "lastFailure": null, "previousSecretUntilMs": null })
    );
    let shown: Value = app.get("/webhooks/a%2Fb").await.json().await.unwrap();
    assert_eq!(shown, made);
    // All of it is replaced but the secret, the position and the status.
    let changed = put(
        &app,
        "a%2Fb",
        &json!({ "url": "https://hooks.example.com/" }),
    )
    .await;
    assert_eq!(changed["kinds"], Value::Null);
    assert_eq!(changed["prefix"], Value::Null);
    assert_eq!(changed["position"], made["position"]);
    assert_eq!(changed["previousSecretUntilMs"], Value::Null);

    put(
        &app,
        "c",
        &json!({ "url": "https://hooks.example.com/", "secret": SECRET }),
    )
    .await;
    let page: Value = app.get("/webhooks?limit=1").await.json().await.unwrap();
    assert_eq!(page["webhooks"][0]["name"], "a/b");
    let next = page["next"].as_str().unwrap();
    let rest: Value = app
        .get(&format!("/webhooks?after={next}"))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(rest["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(rest["webhooks"][0]["name"], "c");
    assert_eq!(rest["next"], Value::Null);

    assert_eq!(app.delete("/webhooks/a%2Fb").await.status(), 204);
    assert_eq!(app.delete("/webhooks/a%2Fb").await.status(), 204);
    let gone = app.get("/webhooks/a%2Fb").await;
    assert_eq!(gone.status(), 404);
    assert_eq!(
        gone.json::<Value>().await.unwrap()["code"],
        "webhook_not_found"
    );
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_cannot_be_is_refused_and_the_sentence_names_the_field() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let url = "https://hooks.example.com/";
    for (body, field) in [
        (json!({ "secret": SECRET }), "url is required"),
        (json!({ "url": url }), "secret is required"),
        (
            json!({ "url": "hooks.example.com", "secret": SECRET }),
            "url must",
        ),
        (
            json!({ "url": "ftp://hooks.example.com", "secret": SECRET }),
            "url must",
        ),
        (
            json!({ "url": "http://a:b@hooks.example.com/", "secret": SECRET }),
            "url must",
        ),
        (
            json!({ "url": format!("{url}{}", "a".repeat(2_048)), "secret": SECRET }),
            "url must",
        ),
        (json!({ "url": url, "secret": "password" }), "secret must"),
        (
            json!({ "url": url, "secret": SECRET, "room": "" }),
            "room must",
        ),
        (
            json!({ "url": url, "secret": SECRET, "room": "a", "prefix": "b" }),
            "room and prefix",
        ),
        (
            json!({ "url": url, "secret": SECRET, "prefix": "\u{0}" }),
            "prefix must",
        ),
        (
            json!({ "url": url, "secret": SECRET, "kinds": [] }),
            "kinds must",
        ),
        (
            json!({ "url": url, "secret": SECRET, "kinds": ["left"] }),
            "kinds must",
        ),
        (
            json!({ "url": url, "secret": SECRET, "after": "yesterday" }),
            "after must",
        ),
        (json!({ "url": 7, "secret": SECRET }), "url"),
    ] {
        let request = app.client.put(format!("{}/webhooks/hook", app.url));
        let response = request.json(&body).send().await.unwrap();
        assert_eq!(response.status(), 400, "{body}");
        let answer: Value = response.json().await.unwrap();
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(field), "{body}: {error}");
        assert!(!error.contains(SECRET), "{error}");
    }
    assert_eq!(app.get("/webhooks/hook").await.status(), 404);
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_address_is_used_from_the_next_delivery_on() {
    let database = Database::new().await;
    let (before, after) = (Receiver::content().await, Receiver::content().await);
    let app = hooked(&database, &before, &[]).await;
    app.join("r", "alice").await;
    before.until(1).await;
    put(&app, "hook", &json!({ "url": after.url })).await;
    app.join("r", "bob").await;
    let seen = after.until(1).await;
    assert!(seen[0].is_signed(SECRET));
    assert!(!before.deliveries().iter().any(|d| d.body.contains("bob")));
    database.verify().await;
}

fn file(content: &Value) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.to_string().as_bytes()).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_makes_endpoints_at_the_start_and_leaves_positions_and_statuses_as_they_are() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let webhook = |secret: &str| json!({ "webhooks": [{ "name": "hook", "url": receiver.url, "secret": secret, "after": "oldest" }] });
    let first = file(&webhook(SECRET));
    let flag = format!("--webhooks-file={}", first.path().display());
    let app = App::spawn_with(&database, &[&FLAGS[..], &[&flag]].concat()).await;
    app.join("r", "alice").await;
    receiver.until(1).await;
    app.client
        .post(format!("{}/webhooks/hook/disable", app.url))
        .send()
        .await
        .unwrap();
    app.join("r", "bob").await;
    let before = state(&app).await;
    app.stop().await;

    let second = file(&webhook(LATER));
    let flag = format!("--webhooks-file={}", second.path().display());
    let app = App::spawn_with(&database, &[&FLAGS[..], &[&flag]].concat()).await;
    let after = state(&app).await;
    assert_eq!(after["status"], "disabled");
    assert_eq!(after["position"], before["position"]);
    assert!(after["previousSecretUntilMs"].is_i64());
    app.client
        .post(format!("{}/webhooks/hook/resume", app.url))
        .send()
        .await
        .unwrap();
    let bob = |seen: &[crate::support::Delivery]| seen.last().unwrap().body.contains("bob");
    let seen = receiver.until_all("bob", bob).await;
    assert!(seen.last().unwrap().is_signed(LATER));
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_wrong_is_refused_at_the_start_without_its_secrets() {
    let database = Database::new().await;
    for (content, expected) in [
        (json!({}), "webhooks"),
        (
            json!({ "webhooks": [{ "name": "hook" }] }),
            "of the webhook hook: url is required",
        ),
        (
            json!({ "webhooks": [{ "name": "hook", "url": "https://hooks.example.com/" }] }),
            "the webhook hook needs a secret",
        ),
        (
            json!({ "webhooks": [{ "name": "hook", "url": "http://10.0.0.1/", "secret": SECRET }] }),
            "LEASEHOLD_WEBHOOKS_ALLOW",
        ),
        (
            json!({ "webhooks": [{ "name": "hook", "url": "https://hooks.example.com/", "secret": "sesame" }] }),
            "secret must",
        ),
    ] {
        let file = file(&content);
        let flag = format!("--webhooks-file={}", file.path().display());
        let serving = Service::try_serve("warn", &database.url(), &[&flag]).await;
        let said = serving.err().expect("a start that fails");
        assert!(said.contains("LEASEHOLD_WEBHOOKS_FILE"), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains(SECRET) && !said.contains("sesame"), "{said}");
    }
    database.verify().await;
}
