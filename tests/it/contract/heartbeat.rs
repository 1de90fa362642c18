//! `POST /rooms/{roomId}/heartbeat` and `…/cursor`

use serde_json::{Value, json};

use super::{accepted, int, refused, stale};
use crate::support::{App, Database};

async fn only_member(app: &App) -> Value {
    let listed = app.participants("r").await;
    assert_eq!(listed["participants"].as_array().unwrap().len(), 1);
    listed["participants"][0].clone()
}

async fn beat(app: &App, extra: Value) {
    let mut body = json!({ "userId": "alice", "epoch": 1 });
    body.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    accepted(app.post("/rooms/r/heartbeat", body).await).await;
}

#[tokio::test]
async fn a_heartbeat_renews_the_lease() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let joined = app.join("r", "alice").await;
    database.silence(10_000).await;
    let before = only_member(&app).await;

    beat(&app, json!({})).await;

    let after = only_member(&app).await;
    assert!(int(&after, "lastSeenMs") >= int(&before, "lastSeenMs") + 10_000);
    assert_eq!(
        int(&after, "expiresAtMs") - int(&after, "lastSeenMs"),
        15_000
    );
    assert_eq!(int(&after, "joinedAtMs"), int(&joined, "asOfMs"));
    database.verify().await;
}

#[tokio::test]
async fn a_heartbeat_keeps_what_is_left_out_and_clears_what_is_null() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let body = json!({ "userId": "alice", "cursor": { "line": 1 }, "metadata": { "name": "A" } });
    app.post("/rooms/r/join", body).await;
    let shown = async || {
        let member = only_member(&app).await;
        (member["cursor"].clone(), member["metadata"].clone())
    };
    assert_eq!(
        shown().await,
        (json!({ "line": 1 }), json!({ "name": "A" }))
    );

    beat(&app, json!({})).await;
    assert_eq!(
        shown().await,
        (json!({ "line": 1 }), json!({ "name": "A" }))
    );
    beat(&app, json!({ "cursor": { "line": 2, "column": 4 } })).await;
    assert_eq!(
        shown().await,
        (json!({ "line": 2, "column": 4 }), json!({ "name": "A" }))
    );
    beat(&app, json!({ "cursor": null, "metadata": { "name": "B" } })).await;
    assert_eq!(shown().await, (json!(null), json!({ "name": "B" })));
    beat(&app, json!({ "metadata": null })).await;
    assert_eq!(shown().await, (json!(null), json!(null)));
    database.verify().await;
}

#[tokio::test]
async fn a_heartbeat_may_change_the_length_of_the_lease() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    for lease in [60_000, 2_000] {
        beat(&app, json!({ "leaseMs": lease })).await;
        let member = only_member(&app).await;
        assert_eq!(
            int(&member, "expiresAtMs") - int(&member, "lastSeenMs"),
            lease
        );
    }
    let body = json!({ "userId": "alice", "epoch": 1, "leaseMs": 300_001 });
    let response = app.post("/rooms/r/heartbeat", body).await;
    refused(response, 400, "invalid_request").await;
    database.verify().await;
}

#[tokio::test]
async fn a_stale_session_is_told_how_it_ended() {
    let database = Database::new().await;
    // Without the sweep, so that the expired member is refused before it was removed.
    let app = App::spawn_with(&database, &["--sweep-interval-ms=0"]).await;
    stale(app.heartbeat("r", "alice", 1).await, "unknown_session").await;

    app.join("r", "alice").await;
    app.join("r", "bob").await;
    let other_device = json!({ "userId": "alice", "epoch": 1, "deviceId": "phone" });
    let response = app.post("/rooms/r/heartbeat", other_device).await;
    stale(response, "unknown_session").await;
    stale(app.heartbeat("r", "alice", 2).await, "unknown_session").await;
    stale(
        app.heartbeat("r", "alice", i64::MAX).await,
        "unknown_session",
    )
    .await;

    app.join("r", "alice").await;
    stale(app.heartbeat("r", "alice", 1).await, "superseded").await;

    accepted(app.leave("r", "alice", 2).await).await;
    stale(app.heartbeat("r", "alice", 2).await, "left").await;

    database.silence(60_000).await;
    assert_eq!(database.rows().await, (1, 1), "nothing was swept");
    stale(app.heartbeat("r", "bob", 1).await, "expired").await;
    assert!(
        app.participants("r").await["participants"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    stale(app.heartbeat("r", "bob", 1).await, "expired").await;
    database.verify().await;
}

#[tokio::test]
async fn a_session_that_somebody_ended_is_told_why() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for (room, reason) in [("one", "removed"), ("two", "room_closed")] {
        app.join(room, "alice").await;
        database
            .execute(format!(
                "begin;
                 select leasehold.lock_rooms(array['{room}']);
                 select leasehold.end_sessions(array_agg(ctid), '{reason}', now()) from leasehold.members where room_id = '{room}';
                 select leasehold.prune_rooms(array['{room}']);
                 commit"
            ))
            .await;
        stale(app.heartbeat(room, "alice", 1).await, reason).await;
    }
    database.verify().await;
}

#[tokio::test]
async fn a_cursor_counts_as_a_heartbeat() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    database.silence(10_000).await;
    let before = only_member(&app).await;

    let body = json!({ "userId": "alice", "epoch": 1, "cursor": { "line": 10, "column": 4 } });
    accepted(app.post("/rooms/r/cursor", body).await).await;

    let after = only_member(&app).await;
    assert_eq!(after["cursor"], json!({ "line": 10, "column": 4 }));
    assert!(int(&after, "expiresAtMs") >= int(&before, "expiresAtMs") + 10_000);

    let body = json!({ "userId": "alice", "epoch": 1, "cursor": null });
    accepted(app.post("/rooms/r/cursor", body).await).await;
    assert_eq!(only_member(&app).await["cursor"], Value::Null);
    database.verify().await;
}

#[tokio::test]
async fn a_cursor_never_creates_a_member() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let body = json!({ "userId": "alice", "epoch": 1, "cursor": {} });
    let response = app.post("/rooms/r/cursor", body.clone()).await;
    stale(response, "unknown_session").await;
    app.join("r", "alice").await;
    accepted(app.leave("r", "alice", 1).await).await;
    stale(app.post("/rooms/r/cursor", body).await, "left").await;
    assert_eq!(database.rows().await, (0, 0));
    database.verify().await;
}

#[tokio::test]
async fn a_cursor_is_an_object_of_at_most_a_kibibyte() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let cursor = |bytes: usize| {
        let text = "x".repeat(bytes - r#"{"x":""}"#.len());
        json!({ "userId": "alice", "epoch": 1, "cursor": { "x": text } })
    };
    accepted(app.post("/rooms/r/cursor", cursor(1024)).await).await;
    let too_long = app.post("/rooms/r/cursor", cursor(1025)).await;
    let sentence = refused(too_long, 400, "cursor_too_large").await;
    assert_eq!(sentence, "cursor must be at most 1024 bytes of JSON");

    for cursor in [json!([]), json!("10:4"), json!(10), json!(true)] {
        let body = json!({ "userId": "alice", "epoch": 1, "cursor": cursor });
        let sentence = refused(
            app.post("/rooms/r/cursor", body).await,
            400,
            "invalid_request",
        );
        assert_eq!(sentence.await, "cursor must be a JSON object or null");
    }
    let body = json!({ "userId": "alice", "epoch": 1 });
    let sentence = refused(
        app.post("/rooms/r/cursor", body).await,
        400,
        "invalid_request",
    );
    assert_eq!(sentence.await, "cursor is required; null clears it");
    database.verify().await;
}
