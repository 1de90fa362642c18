//! What is done over a socket is in the log, as what is done over HTTP.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{Database, Service, Socket};

/// The lines about messages of sockets.
fn lines(service: &Service) -> Vec<Value> {
    let said = service.said();
    let lines = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line.get("socket_message").is_some())
        .collect()
}

async fn until_lines(service: &Service, expected: usize) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let lines = lines(service);
        if lines.len() >= expected {
            return lines;
        }
        assert!(Instant::now() < deadline, "{}", service.said());
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_is_done_over_a_socket_has_a_log_line_as_over_http() {
    let database = Database::new().await;
    let service = Service::serve_logging("info", &database.url(), &[]).await;
    let url = format!("{}/rooms/r/socket?access_token=secret", service.url);
    let mut socket = Socket::connect(&url).await;
    for message in [
        json!({ "type": "join", "requestId": "secret", "userId": "alice", "metadata": { "pin": "secret" } }),
        json!({ "type": "heartbeat", "userId": "alice", "epoch": 1 }),
        json!({ "type": "cursor", "userId": "alice", "epoch": 1, "cursor": { "at": "secret" } }),
        json!({ "type": "heartbeat", "userId": "alice", "epoch": 7 }),
        json!({ "type": "secret" }),
        json!({ "type": "leave", "userId": "alice", "epoch": 1 }),
        json!({ "type": "join", "userId": "bob" }),
    ] {
        socket.send(message).await;
        socket.until("answer").await;
    }
    // Bob is lost.
    drop(socket);

    let lines = until_lines(&service, 8).await;
    let expected = json!([
        ["join", "alice", 1, 200, "ok"],
        ["heartbeat", "alice", 1, 204, "ok"],
        ["cursor", "alice", 1, 204, "ok"],
        ["heartbeat", "alice", 7, 409, "unknown_session"],
        ["unknown", null, null, 400, "invalid_request"],
        ["leave", "alice", 1, 204, "ok"],
        ["join", "bob", 1, 200, "ok"],
        ["disconnect", "bob", 1, 204, "ok"],
    ]);
    let fields = ["socket_message", "user", "epoch", "status", "outcome"];
    let found: Vec<Vec<&Value>> = lines
        .iter()
        .map(|line| {
            fields
                .iter()
                .map(|f| line.get(f).unwrap_or(&Value::Null))
                .collect()
        })
        .collect();
    assert_eq!(json!(found), expected);

    let said = service.said();
    let opened = said
        .lines()
        .find(|line| line.contains("\"status\":101"))
        .unwrap();
    let opened: Value = serde_json::from_str(opened).unwrap();
    for (n, line) in lines.iter().enumerate() {
        let id = format!("{}/{}", opened["request_id"].as_str().unwrap(), n + 1);
        assert_eq!(line["request_id"], json!(id));
        for same in ["message", "level", "method", "path", "target"] {
            assert_eq!(line[same], opened[same], "{same}");
        }
        assert!(line["duration_us"].is_u64());
    }
    assert!(!said.contains("secret"), "{said}");
    service.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_pong_that_renews_has_a_log_line() {
    let database = Database::new().await;
    let flags = ["--keep-alive-ms=100"];
    let service = Service::serve_logging("info", &database.url(), &flags).await;
    let mut socket = Socket::connect(&format!("{}/rooms/r/socket", service.url)).await;
    socket
        .send(json!({ "type": "join", "userId": "alice" }))
        .await;
    socket.until("answer").await;
    socket.answer_a_ping().await;
    let lines = until_lines(&service, 2).await;
    assert_eq!(lines[1]["socket_message"], "pong");
    assert_eq!(
        (&lines[1]["user"], &lines[1]["status"]),
        (&json!("alice"), &json!(204))
    );
    service.stop(Signal::TERM).await;
}
