//! Deliveries are what the feed says, signed as Standard Webhooks wants it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{FLAGS, LATER, SECRET, hooked, put, state, told};
use crate::support::{App, Database, Receiver, Reply, command, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_has_the_changes_as_the_feed_has_them_and_verifies_with_the_reference_library() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("räum", "alice").await;
    assert_eq!(app.leave("räum", "alice", 1).await.status(), 204);
    let all = |seen: &[_]| {
        seen.iter()
            .map(|d: &crate::support::Delivery| d.changes().len())
            .sum::<usize>()
            == 4
    };
    let deliveries = receiver.until_all("four changes", all).await;
    for delivery in &deliveries {
        assert!(delivery.is_signed(SECRET));
        assert!(!delivery.is_signed(LATER));
        assert_eq!(delivery.header("content-type"), "application/json");
    }
    let sent = receiver.changes_of("räum");
    assert_eq!(
        told(&sent),
        [
            "room_opened -",
            "joined alice",
            "ended alice",
            "room_closed -"
        ]
    );
    let feed: Value = app.get("/changes").await.json().await.unwrap();
    assert_eq!(feed["changes"], json!(sent));
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_has_the_same_id_and_body_and_a_signature_of_its_own_time() {
    let database = Database::new().await;
    let receiver = Receiver::answering(|delivery| match delivery.repeats {
        0..2 => Reply::Status(500),
        _ => Reply::Status(200),
    })
    .await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("r", "alice").await;
    let tries = receiver.until(3).await;
    // What comes meanwhile is another delivery, and comes after.
    app.join("r", "bob").await;
    receiver.until(4).await;
    for retry in &tries {
        assert_eq!(retry.id(), tries[0].id());
        assert_eq!(retry.body, tries[0].body);
        assert!(retry.is_signed(SECRET));
    }
    let time = |n: usize| tries[n].header("webhook-timestamp").parse::<i64>().unwrap();
    assert!(time(2) > time(0), "{} and {}", time(0), time(2));
    assert_ne!(
        tries[2].header("webhook-signature"),
        tries[0].header("webhook-signature")
    );
    assert!(tries[2].at - tries[1].at > tries[1].at - tries[0].at);
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_secrets_sign_while_they_rotate_and_are_shown_to_nobody() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let app = hooked(&database, &receiver, &[]).await;
    let rotated = put(
        &app,
        "hook",
        &json!({ "url": receiver.url, "secret": LATER }),
    )
    .await;
    assert!(rotated["previousSecretUntilMs"].is_i64(), "{rotated}");
    app.join("r", "alice").await;
    let first = &receiver.until(1).await[0];
    assert!(first.is_signed(SECRET) && first.is_signed(LATER));

    // A day later.
    database
        .execute(
            "update leasehold.webhooks set previous_secret_until = now(), revision = revision + 1",
        )
        .await;
    app.join("other", "alice").await;
    let second = &receiver.until(2).await[1];
    assert!(!second.is_signed(SECRET) && second.is_signed(LATER));

    let listed = app.get("/webhooks").await.text().await.unwrap();
    for text in [state(&app).await.to_string(), rotated.to_string(), listed] {
        for secret in [SECRET, LATER] {
            assert!(!text.contains(&secret[6..]), "{text}");
        }
    }
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_sent_only_what_it_asked_for() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &FLAGS).await;
    let mut receivers = Vec::new();
    for (name, filter) in [
        ("room", json!({ "room": "team-1" })),
        ("prefix", json!({ "prefix": "team-" })),
        ("kinds", json!({ "kinds": ["ended"] })),
    ] {
        let receiver = Receiver::content().await;
        let mut body = json!({ "url": receiver.url, "secret": SECRET });
        for (field, value) in filter.as_object().unwrap() {
            body[field] = value.clone();
        }
        put(&app, name, &body).await;
        receivers.push(receiver);
    }
    for room in ["team-1", "team-2", "hall"] {
        app.join(room, "alice").await;
        app.leave(room, "alice", 1).await;
    }
    for (receiver, expected) in receivers.iter().zip([4, 8, 3]) {
        let count = |seen: &[crate::support::Delivery]| {
            seen.iter().map(|d| d.changes().len()).sum::<usize>()
        };
        let seen = receiver
            .until_all("all changes", |seen| count(seen) >= expected)
            .await;
        assert_eq!(count(&seen), expected);
    }
    assert!(
        receivers[0]
            .deliveries()
            .iter()
            .all(|d| d.room() == "team-1")
    );
    assert!(
        receivers[1]
            .deliveries()
            .iter()
            .all(|d| d.room().starts_with("team-"))
    );
    let kinds = receivers[2]
        .deliveries()
        .into_iter()
        .flat_map(|d| d.changes());
    assert!(kinds.into_iter().all(|change| change["kind"] == "ended"));
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_example_is_sent_by_a_command_which_says_what_was_answered() {
    let is_content = Arc::new(AtomicBool::new(true));
    let content = Arc::clone(&is_content);
    let receiver = Receiver::answering(move |_| match content.load(Ordering::SeqCst) {
        true => Reply::Status(204),
        false => Reply::Status(302),
    })
    .await;
    let send = |allow: &'static str| {
        let url = receiver.url.clone();
        tokio::task::spawn_blocking(move || {
            let arguments = ["webhook-test", &url, "--secret", SECRET, allow];
            command(&arguments).output().unwrap()
        })
    };
    let sent = send("--webhooks-allow=127.0.0.1").await.unwrap();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(text(&sent.stdout).contains("was taken"));
    assert!(receiver.deliveries()[0].is_signed(SECRET));

    is_content.store(false, Ordering::SeqCst);
    let sent = send("--webhooks-allow=127.0.0.1").await.unwrap();
    assert!(!sent.status.success());
    assert!(text(&sent.stderr).contains("302; redirects are not followed"));

    let sent = send("--webhooks-allow=10.0.0.0/8").await.unwrap();
    assert!(!sent.status.success());
    assert!(text(&sent.stderr).contains("LEASEHOLD_WEBHOOKS_ALLOW"));
    assert_eq!(receiver.count(), 2);
}
