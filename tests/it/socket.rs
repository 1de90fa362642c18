//! The WebSocket: the same events, and what a member does with the same answers as over HTTP.

use serde_json::{Value, json};

use crate::support::{App, Database};

async fn last_seen_ms(app: &App, room: &str) -> i64 {
    app.participants(room).await["participants"][0]["lastSeenMs"]
        .as_i64()
        .unwrap()
}

#[tokio::test]
async fn a_member_joins_moves_and_leaves_on_a_socket_and_hears_of_it() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut socket = app.socket("r").await;
    let snapshot = socket.try_next().await.unwrap();
    assert_eq!(snapshot["type"], "snapshot");
    assert_eq!(snapshot["participants"], json!([]));

    socket
        .send(json!({ "type": "join", "requestId": 1, "userId": "alice", "leaseMs": 20_000 }))
        .await;
    let joined = socket.until("answer").await;
    assert_eq!(
        (&joined["requestId"], &joined["status"]),
        (&json!(1), &json!(200))
    );
    let mut over_http: Value = app
        .post(
            "/rooms/r/join",
            json!({ "userId": "bob", "leaseMs": 20_000 }),
        )
        .await
        .json()
        .await
        .unwrap();
    let mut body = joined["body"].clone();
    for answer in [&mut over_http, &mut body] {
        for instant in ["arrivedAtMs", "expiresAtMs", "asOfMs"] {
            assert!(
                answer
                    .as_object_mut()
                    .unwrap()
                    .remove(instant)
                    .unwrap()
                    .is_i64()
            );
        }
    }
    over_http["userId"] = json!("alice");
    assert_eq!(body, over_http, "the same answer as over HTTP");

    socket
        .send(json!({ "type": "cursor", "requestId": "two", "userId": "alice", "epoch": 1, "cursor": { "line": 2 } }))
        .await;
    let [answer, updated] = socket.each_of(["answer", "updated"]).await;
    assert_eq!(
        answer,
        json!({ "type": "answer", "requestId": "two", "status": 204 })
    );
    assert_eq!(updated["participant"]["cursor"], json!({ "line": 2 }));

    socket
        .send(json!({ "type": "heartbeat", "requestId": 3, "userId": "alice", "epoch": 1 }))
        .await;
    assert_eq!(socket.until("answer").await["status"], 204);
    socket
        .send(json!({ "type": "leave", "requestId": 4, "userId": "alice", "epoch": 1 }))
        .await;
    let [answer, left] = socket.each_of(["answer", "left"]).await;
    assert_eq!(answer["status"], 204);
    assert_eq!(
        (&left["userId"], &left["reason"]),
        (&json!("alice"), &json!("left"))
    );
    database.verify().await;
}

#[tokio::test]
async fn refusals_on_a_socket_have_the_codes_of_http() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut socket = app.socket("r").await;
    let cases = [
        (
            json!({ "type": "join", "requestId": 1 }).to_string(),
            400,
            "invalid_request",
        ),
        (
            json!({ "type": "heartbeat", "requestId": 1, "userId": "alice", "epoch": 9 })
                .to_string(),
            409,
            "unknown_session",
        ),
        (
            json!({ "type": "dance", "requestId": 1 }).to_string(),
            400,
            "invalid_request",
        ),
    ];
    for (message, status, code) in cases {
        socket.send_text(message).await;
        let answer = socket.until("answer").await;
        assert_eq!(answer["requestId"], 1);
        assert_eq!(
            (&answer["status"], &answer["body"]["code"]),
            (&json!(status), &json!(code))
        );
    }
    socket.send_text("not JSON".to_owned()).await;
    let answer = socket.until("answer").await;
    assert_eq!(
        (&answer["requestId"], &answer["status"]),
        (&Value::Null, &json!(400))
    );
    socket
        .send(json!({ "type": "leave", "requestId": 2, "userId": "alice", "epoch": 9 }))
        .await;
    assert_eq!(
        socket.until("answer").await["status"],
        204,
        "a stale leave changes nothing"
    );
    database.verify().await;
}

#[tokio::test]
async fn a_pong_counts_as_a_heartbeat_of_the_session_joined_on_the_socket() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--keep-alive-ms", "100"]).await;
    let mut socket = app.socket("r").await;
    socket
        .send(json!({ "type": "join", "userId": "alice" }))
        .await;
    socket.until("answer").await;
    let before = last_seen_ms(&app, "r").await;
    loop {
        socket.answer_a_ping().await;
        if last_seen_ms(&app, "r").await > before {
            break;
        }
    }

    // Once another device's join took its place, the socket is told and stays a subscriber.
    app.join("r", "alice").await;
    let stale = loop {
        match socket.try_next().await.unwrap() {
            message if message["type"] == "stale" => break message,
            _ => {}
        }
    };
    assert_eq!(
        (&stale["epoch"], &stale["code"]),
        (&json!(1), &json!("superseded"))
    );
    assert_eq!(stale["roomId"], "r");
    app.join("r", "bob").await;
    socket.until("joined").await;
    database.verify().await;
}

#[tokio::test]
async fn a_socket_that_closes_without_a_leave_leaves_its_member_reconnecting() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms", "60000"]).await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;
    let mut socket = app.socket("r").await;
    socket
        .send(json!({ "type": "join", "userId": "alice" }))
        .await;
    socket.until("answer").await;
    events.expect("joined").await;

    drop(socket);

    let updated = events.expect("updated").await.data;
    assert_eq!(updated["participant"]["status"], "reconnecting");
    app.heartbeat("r", "alice", 1).await;
    let updated = events.expect("updated").await.data;
    assert_eq!(
        updated["participant"]["status"], "connected",
        "the lease was as it was"
    );
    database.verify().await;
}

#[tokio::test]
async fn a_request_that_is_no_websocket_handshake_is_refused_in_json() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let plain = app.get("/rooms/r/socket").await;
    assert_eq!(plain.status(), 400);
    assert_eq!(
        plain.json::<Value>().await.unwrap()["code"],
        "invalid_request"
    );
    let broken = app
        .client
        .get(format!("{}/rooms/r/socket", app.url))
        .header("upgrade", "websocket")
        .header("connection", "upgrade")
        .send()
        .await
        .unwrap();
    assert_eq!(broken.status(), 400);
    assert_eq!(
        broken.json::<Value>().await.unwrap()["code"],
        "invalid_request"
    );
}

#[tokio::test]
async fn sockets_are_closed_when_the_service_stops() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut socket = app.socket("r").await;
    socket.try_next().await.unwrap();
    app.stop().await;
    assert_eq!(socket.try_next().await, None);
}
