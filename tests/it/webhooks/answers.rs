//! Receivers that fail in every way: what came of it, and that nobody else waits.

use std::time::Duration;

use serde_json::json;

use super::{FLAGS, SECRET, hooked, put, state, told, until};
use crate::support::{App, Database, Receiver, Reply};

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_fails_holds_back_its_room_and_no_other() {
    let database = Database::new().await;
    let receiver = Receiver::answering(|delivery| {
        let is_held = delivery.room() == "held" && delivery.repeats < 2;
        Reply::Status(if is_held { 503 } else { 200 })
    })
    .await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("held", "alice").await;
    receiver.until(1).await;
    app.join("held", "bob").await;
    for n in 0..20 {
        app.join("free", &format!("user-{n}")).await;
    }
    let is_done = |seen: &[_]| {
        let seen: &[crate::support::Delivery] = seen;
        let of_bob = |d: &crate::support::Delivery| d.body.contains("\"bob\"");
        seen.iter().any(of_bob)
    };
    let seen = receiver.until_all("bob", is_done).await;
    let held: Vec<_> = seen.iter().filter(|d| d.room() == "held").collect();
    // Three tries of the first, and only then the second.
    assert_eq!(held.len(), 4);
    assert!(held[..3].iter().all(|d| d.id() == held[0].id()));
    assert_eq!(
        told(&receiver.changes_of("held")),
        ["room_opened -", "joined alice", "joined bob"]
    );
    let free: Vec<_> = seen.iter().filter(|d| d.room() == "free").collect();
    assert_eq!(receiver.changes_of("free").len(), 21);
    let last_free = free.last().unwrap().at;
    assert!(last_free < held[2].at, "the other room waited");
    assert_eq!(receiver.most_of_a_room(), 1);
    until(&app, "over", |state| state["failures"] == 0).await;
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_hang_drip_or_never_end_delay_no_other_and_are_tried_again() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &FLAGS).await;
    let healthy = Receiver::content().await;
    put(
        &app,
        "healthy",
        &json!({ "url": healthy.url, "secret": SECRET }),
    )
    .await;
    let mut bad = Vec::new();
    for (name, reply) in [
        ("hangs", (|| Reply::Hang) as fn() -> Reply),
        ("drips", || Reply::Drip),
        ("speaks-otherwise", || Reply::Garbage),
        ("closes", || Reply::Close),
        ("redirects", || {
            Reply::With(302, "location: http://127.0.0.1:9/\r\n".into())
        }),
        ("refuses", || Reply::Status(400)),
    ] {
        let receiver = Receiver::answering(move |_| reply()).await;
        put(
            &app,
            name,
            &json!({ "url": receiver.url, "secret": SECRET }),
        )
        .await;
        bad.push((name, receiver));
    }
    for n in 0..40 {
        let asked = tokio::time::Instant::now();
        app.join(&format!("room-{n}"), "alice").await;
        let seen = healthy.until(n + 1).await;
        let took = seen[n].at.saturating_duration_since(asked);
        assert!(took < Duration::from_millis(900), "{n}: {took:?}");
    }
    for (name, receiver) in &bad {
        receiver
            .until_all("second try", |seen| seen.iter().any(|d| d.repeats > 0))
            .await;
        let state: serde_json::Value = app
            .get(&format!("/webhooks/{name}"))
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(state["status"], "active", "{state}");
        assert!(state["failures"].as_i64().unwrap() > 0, "{state}");
        let why = state["lastFailure"].as_str().unwrap();
        let expected = match *name {
            "hangs" | "drips" => "time-out",
            "redirects" => "redirects are not followed",
            "refuses" => "400",
            _ => "",
        };
        assert!(why.contains(expected), "{name}: {why}");
        assert!(receiver.most_of_a_room() <= 1);
    }
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_answer_without_an_end_little_is_read_and_its_status_counts() {
    let database = Database::new().await;
    let receiver = Receiver::answering(|_| Reply::Endless).await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("r", "alice").await;
    until(&app, "delivered", |state| {
        state["lastSuccessMs"].is_i64() && state["pendingDeliveries"] == 0
    })
    .await;
    assert_eq!(receiver.count(), 1);
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_429_is_left_alone_for_as_long_as_it_says() {
    let database = Database::new().await;
    let receiver = Receiver::answering(|delivery| match delivery.repeats {
        0 if delivery.room() == "first" => Reply::With(429, "retry-after: 3\r\n".into()),
        _ => Reply::Status(200),
    })
    .await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("first", "alice").await;
    receiver.until(1).await;
    until(&app, "failed", |state| state["failures"] == 1).await;
    app.join("second", "alice").await;
    let seen = receiver.until(3).await;
    for later in &seen[1..] {
        let pause = later.at - seen[0].at;
        assert!(pause >= Duration::from_millis(2_900), "{pause:?}");
    }
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_503_that_names_a_pause_has_it_for_its_room() {
    let database = Database::new().await;
    let receiver = Receiver::answering(|delivery| match delivery.repeats {
        0 if delivery.room() == "first" => Reply::With(503, "retry-after: 3\r\n".into()),
        _ => Reply::Status(200),
    })
    .await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("first", "alice").await;
    receiver.until(1).await;
    app.join("second", "alice").await;
    let seen = receiver.until(3).await;
    assert_eq!(seen[1].room(), "second");
    let pause = seen[2].at - seen[0].at;
    assert!(pause >= Duration::from_millis(2_900), "{pause:?}");
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pause_after_a_failure_doubles_up_to_an_hour() {
    let database = Database::new().await;
    let receiver = Receiver::answering(|_| Reply::Status(500)).await;
    let app = hooked(&database, &receiver, &[]).await;
    app.join("r", "alice").await;
    receiver.until(1).await;
    until(&app, "failed", |state| state["failures"] == 1).await;
    for (attempts, longest) in [
        (3, 4.0),
        (5, 16.0),
        (11, 1_024.0),
        (13, 3_600.0),
        (500, 3_600.0),
    ] {
        let update = format!("update leasehold.webhook_deliveries set attempts = {attempts}");
        database.execute(update).await;
        database
            .execute(
                "select leasehold.settle_deliveries(w.name, w.epoch, array[d.seq], array['down'],
                                                    array[null]::bigint[], null, false, '3 days')
                   from leasehold.webhooks w join leasehold.webhook_deliveries d using (name)",
            )
            .await;
        let now = sqlx::query_scalar!(
            r#"select extract(epoch from due_at - clock_timestamp())::float8 as "pause!"
                 from leasehold.webhook_deliveries"#
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
        assert!(now <= longest, "{attempts}: {now}");
        assert!(now > longest / 2.0 - 1.0, "{attempts}: {now}");
    }
    let state = state(&app).await;
    assert_eq!(state["status"], "active");
    database.verify().await;
}
