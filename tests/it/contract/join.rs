//! `POST /rooms/{roomId}/join`

use serde_json::{Value, json};

use super::{accepted, fields, int, refused, stale};
use crate::support::{App, Database};

async fn join(app: &App, body: Value) -> Value {
    let response = app.post("/rooms/r/join", body).await;
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_join_answers_with_the_session_and_nothing_else() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let clock = async || -> i64 {
        sqlx::query_scalar!(
            r#"select (extract(epoch from clock_timestamp()) * 1000)::bigint as "ms!""#
        )
        .fetch_one(&database.pool)
        .await
        .unwrap()
    };

    let before = clock().await;
    let joined = app.join("r", "alice").await;
    let after = clock().await;

    let named = [
        "arrivedAtMs",
        "asOfMs",
        "epoch",
        "expiresAtMs",
        "generation",
        "heartbeatMs",
        "leaseMs",
        "roomId",
        "userId",
    ];
    assert_eq!(fields(&joined), named);
    assert_eq!(joined["roomId"], "r");
    assert_eq!(joined["userId"], "alice");
    assert_eq!(joined["epoch"], 1);
    assert_eq!(joined["generation"], 1);
    assert_eq!(joined["leaseMs"], 15_000);
    assert_eq!(joined["heartbeatMs"], 5_000);
    assert_eq!(int(&joined, "expiresAtMs") - int(&joined, "asOfMs"), 15_000);
    assert!((before - 1..=after + 1).contains(&int(&joined, "asOfMs")));
    database.verify().await;
}

#[tokio::test]
async fn a_join_answers_with_the_device_where_one_was_sent() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;

    let joined = join(&app, json!({ "userId": "alice", "deviceId": "laptop" })).await;
    assert_eq!(joined["deviceId"], "laptop");
    assert_eq!(fields(&joined).len(), 10);

    let unnamed = join(&app, json!({ "userId": "alice", "deviceId": null })).await;
    assert_eq!(unnamed.get("deviceId"), None);
    assert_eq!(unnamed["epoch"], 2);
    database.verify().await;
}

#[tokio::test]
async fn each_join_has_the_next_epoch_whatever_ended_the_one_before() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    assert_eq!(app.join("r", "alice").await["epoch"], 1);
    assert_eq!(app.join("r", "alice").await["epoch"], 2);

    accepted(app.leave("r", "alice", 2).await).await;
    let after_the_room_was_deleted = app.join("r", "alice").await;
    assert_eq!(after_the_room_was_deleted["epoch"], 3);
    assert_eq!(after_the_room_was_deleted["generation"], 2);

    database.silence(60_000).await;
    let after_an_expiry = app.join("r", "alice").await;
    assert_eq!(after_an_expiry["epoch"], 4);
    assert_eq!(after_an_expiry["generation"], 3);

    app.stop().await;
    let app = App::spawn(&database).await;
    assert_eq!(app.join("r", "alice").await["epoch"], 5);
    assert_eq!(app.join("r", "bob").await["epoch"], 1);
    assert_eq!(app.join("other", "alice").await["epoch"], 1);
    database.verify().await;
}

#[tokio::test]
async fn a_join_replaces_the_session_on_the_same_device_only() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    join(&app, json!({ "userId": "alice", "deviceId": "phone" })).await;
    app.join("r", "alice").await;

    stale(app.heartbeat("r", "alice", 1).await, "superseded").await;
    let phone = json!({ "userId": "alice", "deviceId": "phone", "epoch": 2 });
    accepted(app.post("/rooms/r/heartbeat", phone).await).await;
    accepted(app.heartbeat("r", "alice", 3).await).await;
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_says_reject_is_refused_where_the_user_lives_on_another_device() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let body =
        |device: &str| json!({ "userId": "alice", "deviceId": device, "ifPresent": "reject" });
    assert_eq!(join(&app, body("laptop")).await["epoch"], 1);

    let before = database.digest().await;
    for device in ["tablet", "phone"] {
        let response = app.post("/rooms/r/join", body(device)).await;
        assert_eq!(response.status(), 409);
        let body: Value = response.json().await.unwrap();
        assert_eq!(
            (&body["code"], &body["deviceId"]),
            (&json!("already_present"), &json!("laptop"))
        );
    }
    assert_eq!(database.digest().await, before);

    let replacing = json!({ "userId": "alice", "deviceId": "laptop", "ifPresent": "replace" });
    assert_eq!(join(&app, replacing).await["epoch"], 2);
    database.silence(60_000).await;
    assert_eq!(join(&app, body("phone")).await["epoch"], 3);
    database.verify().await;
}

#[tokio::test]
async fn a_lease_within_the_bounds_is_granted_and_beats_in_proportion() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for (lease, heartbeat) in [(1_000, 333), (30_000, 10_000), (300_000, 100_000)] {
        let joined = join(&app, json!({ "userId": "alice", "leaseMs": lease })).await;
        assert_eq!(joined["leaseMs"], lease);
        assert_eq!(joined["heartbeatMs"], heartbeat);
        assert_eq!(int(&joined, "expiresAtMs") - int(&joined, "asOfMs"), lease);
    }
    for lease in [-1, 0, 999, 300_001, i64::MAX] {
        let body = json!({ "userId": "alice", "leaseMs": lease });
        let refusal = refused(
            app.post("/rooms/r/join", body).await,
            400,
            "invalid_request",
        );
        assert_eq!(refusal.await, "leaseMs must be from 1000 to 300000");
    }
    database.verify().await;
}

#[tokio::test]
async fn the_bounds_and_the_ratio_of_leases_are_configured() {
    let database = Database::new().await;
    let flags = [
        "--lease-ms=20000",
        "--heartbeat-ms=2000",
        "--min-lease-ms=500",
        "--max-lease-ms=20000",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let joined = app.join("r", "alice").await;
    assert_eq!(joined["leaseMs"], 20_000);
    assert_eq!(joined["heartbeatMs"], 2_000);
    let short = join(&app, json!({ "userId": "alice", "leaseMs": 500 })).await;
    assert_eq!(short["heartbeatMs"], 50);
    let long = json!({ "userId": "alice", "leaseMs": 20_001 });
    refused(
        app.post("/rooms/r/join", long).await,
        400,
        "invalid_request",
    )
    .await;
    database.verify().await;
}

#[tokio::test]
async fn a_join_without_a_user_says_so() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for body in [json!({}), json!({ "userId": null, "deviceId": "d" })] {
        let response = app.post("/rooms/r/join", body).await;
        assert_eq!(response.status(), 400);
        assert_eq!(
            response.text().await.unwrap(),
            r#"{"error":"userId is required","code":"invalid_request"}"#
        );
    }
    assert_eq!(database.rows().await, (0, 0));
}

#[tokio::test]
async fn ids_mean_the_same_in_the_path_and_in_bodies() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let long = "é".repeat(256);
    let ids = [
        ("a%2Fb", "a/b"),
        ("a%20b", "a b"),
        ("%252F", "%2F"),
        ("%25", "%"),
        ("caf%C3%A9", "café"),
        ("%F0%9F%9A%80", "🚀"),
        ("a+b", "a+b"),
        ("%3Fq%23h", "?q#h"),
        (&long, long.as_str()),
        ("x:y@z;w=1", "x:y@z;w=1"),
    ];
    for (in_path, id) in ids {
        let joined = app.join(in_path, id).await;
        assert_eq!(joined["roomId"], id);
        assert_eq!(joined["userId"], id);
        let listed = app.participants(in_path).await;
        assert_eq!(listed["roomId"], id);
        assert_eq!(listed["participants"][0]["userId"], id);
        let room: Value = app
            .get(&format!("/rooms/{in_path}"))
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(room["roomId"], id);
        accepted(app.heartbeat(in_path, id, 1).await).await;
        accepted(app.leave(in_path, id, 1).await).await;
    }
    assert_eq!(database.rows().await, (0, 0));
    database.verify().await;
}
