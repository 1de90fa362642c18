//! Messages that are too large, however they are cut into frames.

use serde_json::{Value, json};

use super::support::{App, Database};

const LIMIT: usize = 2_000;

async fn app(database: &Database) -> App {
    App::spawn_with(database, &["--max-body-bytes", &LIMIT.to_string()]).await
}

/// A cursor's message of about so many bytes.
fn message(bytes: usize) -> String {
    let request = json!({
        "type": "cursor", "requestId": "big", "userId": "alice", "epoch": 1,
        "cursor": { "text": "x".repeat(bytes) },
    });
    request.to_string()
}

#[tokio::test]
async fn a_message_that_is_too_large_is_answered_413_and_the_socket_goes_on() {
    let database = Database::new().await;
    let app = app(&database).await;
    let mut socket = app.socket("r").await;
    for parts in [1, 2, 7] {
        socket.send_in_parts(&message(LIMIT), parts).await;
        let answer = socket.until("answer").await;
        assert_eq!(
            (
                &answer["requestId"],
                &answer["status"],
                &answer["body"]["code"]
            ),
            (&json!("big"), &json!(413), &json!("payload_too_large")),
            "in {parts} parts"
        );
    }
    let join = json!({ "type": "join", "requestId": 2, "userId": "alice" });
    assert_eq!(socket.ask(join).await["status"], 200);
    database.verify().await;
}

#[tokio::test]
async fn a_message_that_is_far_too_large_closes_the_socket_with_1009() {
    let database = Database::new().await;
    let app = app(&database).await;
    for parts in [1, 2, 50] {
        let mut socket = app.socket("r").await;
        socket.send_in_parts(&message(LIMIT * 5), parts).await;
        assert_eq!(socket.closed().await, 1009, "in {parts} parts");
    }
}

#[tokio::test]
async fn a_frame_without_end_is_not_kept() {
    let database = Database::new().await;
    let app = app(&database).await;
    let mut socket = app.socket("r").await;
    // A frame that announces a gigabyte, of which a part comes.
    let head = [0x81, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0];
    socket.send_bytes(&head).await;
    socket.send_bytes(&vec![b'x'; 200_000]).await;
    assert_eq!(socket.closed().await, 1009);
}

#[tokio::test]
async fn text_that_is_not_utf_8_closes_the_socket_with_1007() {
    let database = Database::new().await;
    let app = app(&database).await;
    let mut socket = app.socket("r").await;
    assert_eq!(
        socket.try_next().await.map(|m: Value| m["type"].clone()),
        Some(json!("snapshot"))
    );
    socket
        .send_bytes(&[0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28])
        .await;
    assert_eq!(socket.closed().await, 1007);
}
