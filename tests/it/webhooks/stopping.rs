//! Endpoints that are switched off, by themselves, by somebody or by time, and how they go on.

use serde_json::{Value, json};

use super::{hooked, state, told, until};
use crate::support::{App, Database, Receiver, Reply};

async fn post(app: &App, path: &str) -> (u16, Value) {
    let response = app
        .client
        .post(format!("{}{path}", app.url))
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_410_is_sent_nothing_more_and_misses_nothing_when_it_goes_on() {
    let database = Database::new().await;
    let receiver = Receiver::answering(|delivery| {
        let is_first = delivery.body.contains("alice") && delivery.repeats == 0;
        Reply::Status(if is_first { 410 } else { 200 })
    })
    .await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("r", "alice").await;
    until(&app, "gone", |state| state["status"] == "gone").await;
    app.join("r", "bob").await;
    app.join("s", "bob").await;
    let metrics = app.get("/metrics").await.text().await.unwrap();
    assert!(
        metrics.contains("leasehold_webhooks{status=\"gone\"} 1"),
        "{metrics}"
    );
    assert_eq!(receiver.count(), 1);

    let (status, resumed) = post(&app, "/webhooks/hook/resume").await;
    assert_eq!((status, &resumed["status"]), (200, &json!("active")));
    let bob = || receiver.changes_of("r").len() == 3 && receiver.changes_of("s").len() == 2;
    let seen = receiver.until_all("bob", |_| bob()).await;
    let again: Vec<_> = seen.iter().filter(|d| d.repeats == 1).collect();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].id(), seen[0].id());
    assert_eq!(
        told(&receiver.changes_of("r")),
        ["room_opened -", "joined alice", "joined bob"]
    );
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_an_endpoint_is_disabled_arrives_in_order_when_it_is_resumed() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("r", "alice").await;
    receiver.until(1).await;
    let (status, disabled) = post(&app, "/webhooks/hook/disable").await;
    assert_eq!((status, &disabled["status"]), (200, &json!("disabled")));
    let before = receiver.changes_of("r").len();
    for n in 0..250 {
        app.join("r", &format!("user-{n}")).await;
    }
    let stands = state(&app).await;
    assert_eq!(receiver.changes_of("r").len(), before, "{stands}");

    post(&app, "/webhooks/hook/resume").await;
    receiver
        .until_all("all changes", |_| receiver.changes_of("r").len() >= 252)
        .await;
    let expected: Vec<String> = ["room_opened -".to_owned(), "joined alice".to_owned()]
        .into_iter()
        .chain((0..250).map(|n| format!("joined user-{n}")))
        .collect();
    assert_eq!(told(&receiver.changes_of("r")), expected);
    let largest = receiver
        .deliveries()
        .iter()
        .map(|d| d.changes().len())
        .max();
    assert_eq!(largest, Some(100));
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_goes_on_from_a_chosen_place() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let app = hooked(&database, &receiver, &[]).await;
    post(&app, "/webhooks/hook/disable").await;
    for user in ["alice", "bob", "carol"] {
        app.join("r", user).await;
    }
    let feed: Value = app.get("/changes").await.json().await.unwrap();
    let of_bob = feed["changes"][2]["position"].as_str().unwrap();
    post(&app, &format!("/webhooks/hook/resume?after={of_bob}")).await;
    receiver.until(1).await;
    assert_eq!(told(&receiver.changes_of("r")), ["joined carol"]);

    post(&app, "/webhooks/hook/resume?after=oldest").await;
    let all = |seen: &[crate::support::Delivery]| seen.iter().any(|d| d.changes().len() == 4);
    receiver.until_all("the whole history", all).await;

    post(&app, "/webhooks/hook/disable").await;
    app.join("r", "dave").await;
    post(&app, "/webhooks/hook/resume?after=latest").await;
    app.join("r", "erin").await;
    let erin = |seen: &[crate::support::Delivery]| seen.last().unwrap().body.contains("erin");
    receiver.until_all("erin", erin).await;
    assert!(
        receiver
            .deliveries()
            .iter()
            .all(|d| !d.body.contains("dave"))
    );

    for (path, expected) in [
        (
            "/webhooks/hook/resume?after=somewhere",
            (400, "invalid_request"),
        ),
        ("/webhooks/nobody/resume", (404, "webhook_not_found")),
        (
            "/webhooks/nobody/resume?after=latest",
            (404, "webhook_not_found"),
        ),
        ("/webhooks/nobody/disable", (404, "webhook_not_found")),
    ] {
        let (status, body) = post(&app, path).await;
        assert_eq!((status, body["code"].as_str().unwrap()), expected, "{path}");
    }
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_fails_for_days_stops_says_so_and_goes_on_where_it_was() {
    let database = Database::new().await;
    let receiver = Receiver::answering(|delivery| match delivery.repeats {
        0..=1 => Reply::Status(500),
        _ => Reply::Status(200),
    })
    .await;
    let app = hooked(&database, &receiver, &["--webhooks-give-up=2d"]).await;
    app.join("r", "alice").await;
    until(&app, "failed once", |state| state["failures"] == 1).await;
    database
        .execute(
            "update leasehold.webhook_deliveries
                set first_failed_at = first_failed_at - interval '2 days', due_at = now()",
        )
        .await;
    let stopped = until(&app, "given up", |state| state["status"] == "failed").await;
    assert_eq!(stopped["failures"], 2);
    assert_eq!(stopped["lastFailure"], "it answered 500");
    let metrics = app.get("/metrics").await.text().await.unwrap();
    assert!(
        metrics.contains("leasehold_webhooks{status=\"failed\"} 1"),
        "{metrics}"
    );
    app.join("r", "bob").await;
    post(&app, "/webhooks/hook/resume").await;
    receiver
        .until_all("both", |_| receiver.changes_of("r").len() == 3)
        .await;
    assert_eq!(receiver.deliveries()[2].repeats, 2);
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_whose_position_was_purged_says_so_and_goes_on_from_a_chosen_one() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("r", "alice").await;
    receiver.until(1).await;
    post(&app, "/webhooks/hook/disable").await;
    for n in 2..6 {
        app.leave("r", "alice", n - 1).await;
        app.join("r", "alice").await;
    }
    app.leave("r", "alice", 5).await;
    assert_eq!(held(&database).await, [true]);
    let purged = async |wait: &str| {
        let sql = format!(
            "select events_purged from leasehold.purge('1 second', 1000000, '{wait}', clock_timestamp() + interval '1 day')"
        );
        let mut events = 0;
        // As purge_settled.
        for _ in 0..6 {
            #[expect(clippy::disallowed_methods, reason = "the wait is a variable")]
            let purged = sqlx::query_scalar::<_, i32>(sqlx::AssertSqlSafe(sql.clone()));
            events += purged.fetch_one(&database.pool).await.unwrap();
        }
        events
    };
    assert_eq!(purged("2 days").await, 0, "the purge waits for it");
    assert_eq!(purged("1 hour").await, 10, "but not for ever");
    post(&app, "/webhooks/hook/resume").await;
    until(&app, "expired", |state| state["status"] == "expired").await;
    assert!(held(&database).await.is_empty());
    post(&app, "/webhooks/hook/resume?after=oldest").await;
    app.join("r", "bob").await;
    let bob = |seen: &[crate::support::Delivery]| seen.last().unwrap().body.contains("bob");
    receiver.until_all("bob", bob).await;
    assert_eq!(state(&app).await["status"], "active");
    database.verify().await;
}

/// For each place that the webhooks hold the purge at, whether an event after it is kept.
async fn held(database: &Database) -> Vec<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from leasehold.membership_events e
                           where (e.era, e.xact_id, e.event_id)::leasehold.feed_key > h.hold) as "kept!"
             from (select leasehold.webhooks_hold() as hold) h
            where h.hold is not null"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}
