//! What a service says of rooms that another cell has.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::support::{App, Socket};
use super::cell;

#[tokio::test]
async fn every_question_about_another_cells_room_is_421() {
    let database = cell("none").await;
    let app = App::spawn(&database).await;
    let session = json!({ "userId": "alice", "epoch": 1, "cursor": {} });
    let resized = json!({ "userId": "alice", "epoch": 1, "leaseMs": 20_000 });
    let questions = [
        (Method::POST, "join", json!({ "userId": "alice" })),
        (
            Method::POST,
            "join?include=participants",
            json!({ "userId": "alice" }),
        ),
        (Method::POST, "heartbeat", session.clone()),
        (Method::POST, "heartbeat", resized),
        (Method::POST, "cursor", session.clone()),
        (Method::POST, "leave", session.clone()),
        (Method::POST, "disconnect", session.clone()),
        (Method::GET, "participants", Value::Null),
        (Method::GET, "participants?view=count", Value::Null),
        (Method::GET, "", Value::Null),
        (Method::GET, "generations", Value::Null),
        (Method::GET, "generations/1/sessions", Value::Null),
        (Method::GET, "blocks", Value::Null),
        (Method::GET, "events", Value::Null),
        (Method::GET, "events?view=count", Value::Null),
        (Method::PUT, "lock", Value::Null),
        (Method::DELETE, "lock", Value::Null),
        (
            Method::PATCH,
            "participants/alice",
            json!({ "metadata": {} }),
        ),
        (Method::DELETE, "participants/alice", Value::Null),
        (
            Method::DELETE,
            "participants/alice?blockForMs=1000",
            Value::Null,
        ),
        (Method::DELETE, "", Value::Null),
    ];
    for (method, path, body) in questions {
        let path = format!("/rooms/r/{path}");
        let path = path.strip_suffix('/').unwrap_or(&path);
        let json = [("content-type", "application/json")];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let answer = app.send(method.clone(), path, &json, body).await;
        assert_eq!(answer.status(), 421, "{method} {path}");
        assert_eq!(answer.headers()["retry-after"], "1", "{method} {path}");
        let said: Value = answer.json().await.unwrap();
        assert_eq!(said["code"], "misdirected", "{method} {path}");
    }

    let item = json!({ "roomId": "r", "userId": "alice", "epoch": 1 });
    for (path, field) in [("/heartbeats", "heartbeats"), ("/leaves", "leaves")] {
        let done = app.post(path, json!({ field: [item] })).await;
        let done: Value = done.json().await.unwrap();
        let result = &done["results"][0];
        assert_eq!(
            (&result["status"], &result["code"]),
            (&json!(421), &json!("misdirected"))
        );
    }
    // What is not of one room is answered: it is the cell's own.
    for path in ["/rooms", "/users/alice/rooms", "/changes", "/readyz"] {
        assert_eq!(app.get(path).await.status(), 200, "{path}");
    }
    assert_eq!(database.rows().await, (0, 0));
    app.stop().await;
}

#[tokio::test]
async fn a_socket_answers_421_for_another_cells_room() {
    let database = cell("none").await;
    let app = App::spawn(&database).await;
    let mut socket = Socket::connect(&format!("{}/socket", app.url)).await;
    for message in [
        json!({ "type": "join", "requestId": 1, "roomId": "r", "userId": "alice" }),
        json!({ "type": "heartbeat", "requestId": 2, "roomId": "r", "userId": "alice", "epoch": 1 }),
        json!({ "type": "leave", "requestId": 3, "roomId": "r", "userId": "alice", "epoch": 1 }),
        json!({ "type": "subscribe", "requestId": 4, "roomId": "r" }),
    ] {
        let answer = socket.ask(message).await;
        assert_eq!(answer["status"], 421, "{answer}");
        assert_eq!(answer["body"]["code"], "misdirected", "{answer}");
    }
    app.stop().await;
}
