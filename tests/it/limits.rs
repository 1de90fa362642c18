//! Every limit is a setting, and has a code of its own.

use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::support::{App, Database, serve_args};

async fn refusal(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (status, body["code"].as_str().unwrap().to_owned())
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_room_a_member_and_the_database_hold_so_many_and_no_more() {
    let database = Database::new().await;
    let flags = [
        "--max-members-per-room",
        "1",
        "--max-devices-per-member",
        "2",
        "--max-rooms",
        "1",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let join = async |room: &str, body: Value| app.post(&format!("/rooms/{room}/join"), body).await;
    for device in ["a", "b"] {
        let joined = join("r", json!({ "userId": "alice", "deviceId": device })).await;
        assert_eq!(joined.status(), 200);
    }

    let device = join("r", json!({ "userId": "alice", "deviceId": "c" })).await;
    assert_eq!(refusal(device).await, is(409, "too_many_devices"));
    assert_eq!(
        refusal(join("r", json!({ "userId": "bob" })).await).await,
        is(409, "room_full")
    );
    assert_eq!(
        refusal(join("s", json!({ "userId": "bob" })).await).await,
        is(409, "too_many_rooms")
    );
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn metadata_cursors_batches_and_bodies_have_so_many_bytes_and_no_more() {
    let database = Database::new().await;
    let flags = [
        "--max-metadata-bytes",
        "20",
        "--max-cursor-bytes",
        "10",
        "--max-body-bytes",
        "1024",
        "--max-batch-items",
        "2",
        "--max-batch-bytes",
        "2048",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let join = async |body: Value| app.post("/rooms/r/join", body).await;

    let fits =
        json!({ "userId": "alice", "metadata": { "a": "123456789012" }, "cursor": { "a": "12" } });
    assert_eq!(join(fits).await.status(), 200);
    let over = json!({ "userId": "alice", "metadata": { "a": "1234567890123" } });
    assert_eq!(
        refusal(join(over).await).await,
        is(400, "metadata_too_large")
    );
    let over = json!({ "userId": "alice", "epoch": 1, "cursor": { "a": "123" } });
    let moved = app.post("/rooms/r/cursor", over).await;
    assert_eq!(refusal(moved).await, is(400, "cursor_too_large"));
    let large = json!({ "userId": "alice", "padding": "x".repeat(1_024) });
    assert_eq!(
        refusal(join(large).await).await,
        is(413, "payload_too_large")
    );
    let chunks =
        futures_util::stream::iter((0..3).map(|_| Ok::<_, std::io::Error>(vec![b' '; 500])));
    let streamed = app
        .client
        .post(format!("{}/rooms/r/join", app.url))
        .body(reqwest::Body::wrap_stream(chunks))
        .send()
        .await
        .unwrap();
    assert_eq!(
        refusal(streamed).await,
        is(413, "payload_too_large"),
        "also where no length is given"
    );

    let batch = app.post("/leaves", json!({ "leaves": [1, 2, 3] })).await;
    assert_eq!(refusal(batch).await, is(400, "batch_too_large"));
    let batch = app
        .post("/heartbeats", json!({ "heartbeats": ["x".repeat(2_048)] }))
        .await;
    assert_eq!(refusal(batch).await, is(413, "payload_too_large"));
    app.stop().await;
}

#[tokio::test]
async fn a_client_that_asks_too_often_is_told_when_to_come_back() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--rate-limit", "1", "--rate-burst", "3"]).await;
    for _ in 0..3 {
        assert_eq!(app.get("/rooms").await.status(), 200);
    }
    let refused = app.get("/rooms").await;
    assert!(
        refused.headers()["retry-after"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            >= 1
    );
    assert_eq!(refusal(refused).await, is(429, "rate_limited"));
    assert_eq!(
        app.get("/healthz").await.status(),
        200,
        "what is public is not limited"
    );
    app.stop().await;
}

#[tokio::test]
async fn a_body_or_a_head_that_dawdles_is_cut() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--request-timeout-ms", "200"]).await;
    let address = app.url.strip_prefix("http://").unwrap().to_owned();
    let answer = async |sent: &str| {
        let mut socket = TcpStream::connect(&address).await.unwrap();
        socket.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(Duration::from_secs(20), socket.read_to_string(&mut answer))
            .await
            .expect("the connection is closed")
            .unwrap();
        answer
    };

    let body = answer("POST /rooms/r/join HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 50\r\n\r\n{").await;
    assert!(
        body.starts_with("HTTP/1.1 408") && body.contains("\"request_timeout\""),
        "{body}"
    );
    let head = answer("GET /rooms HTTP/1.1\r\nhost:").await;
    assert!(head.starts_with("HTTP/1.1 408"), "{head}");
    app.stop().await;
}

#[test]
fn a_setting_that_is_wrong_is_refused_with_what_is_allowed() {
    use clap::Parser;
    use leasehold::cli::Cli;
    for (flag, value, names) in [
        ("--rate-limit", "0", "LEASEHOLD_RATE_LIMIT"),
        ("--cors-origins", "example.com", "LEASEHOLD_CORS_ORIGINS"),
        (
            "--cors-origins",
            "https://*ample.com",
            "LEASEHOLD_CORS_ORIGINS",
        ),
        (
            "--trusted-proxies",
            "10.0.0.0/33",
            "LEASEHOLD_TRUSTED_PROXIES",
        ),
        ("--trusted-proxies", "proxy", "LEASEHOLD_TRUSTED_PROXIES"),
        ("--jwt-leeway", "6m", "LEASEHOLD_JWT_LEEWAY"),
        ("--jwks-refresh", "1ms", "LEASEHOLD_JWKS_REFRESH"),
        ("--jwt-room-patterns", "yes", "LEASEHOLD_JWT_ROOM_PATTERNS"),
        ("--max-batch-items", "0", "LEASEHOLD_MAX_BATCH_ITEMS"),
        ("--purge-older-than", "30", "LEASEHOLD_PURGE_OLDER_THAN"),
    ] {
        let arguments = [
            "leasehold",
            "serve",
            "--database-url",
            "postgres://x/y",
            flag,
            value,
        ];
        let error = Cli::try_parse_from(arguments).unwrap_err().to_string();
        assert!(error.contains(names) && error.contains(value), "{error}");
    }
    assert_eq!(serve_args(&[]).edge.rate(), None, "off unless configured");
}
