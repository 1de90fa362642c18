//! Clients that take nothing of what they are sent.

use leasehold::access::Scope;
use serde_json::json;

use crate::support::{App, Database, Reader, SECRET, mint};

const KEY: &str = "a-server-key-that-only-tests-use";

/// Large cursors fill whatever the network holds.
const LARGE: [&str; 6] = [
    "--max-cursor-bytes",
    "1000000",
    "--max-body-bytes",
    "1048576",
    "--keep-alive-ms",
    "300s",
];

/// A room in which something happens all the time, until it has no subscriber left.
async fn until_alone(app: &App) {
    let post = |action: &str, body: serde_json::Value| {
        let url = format!("{}/rooms/r/{action}", app.url);
        app.client.post(url).bearer_auth(KEY).json(&body).send()
    };
    let joined = post("join", json!({ "userId": "alice", "leaseMs": 60_000 }));
    assert_eq!(joined.await.unwrap().status(), 200);
    let moves = async {
        for step in 0_u64.. {
            let cursor = json!({ "step": step, "path": "x".repeat(200_000) });
            let body = json!({ "userId": "alice", "epoch": 1, "cursor": cursor });
            assert_eq!(post("cursor", body).await.unwrap().status(), 204);
        }
    };
    tokio::select! {
        () = moves => {}
        () = app.until_subscribers(0) => {}
    }
}

/// Both kinds of stream, neither of which reads on.
async fn stuck(app: &App, query: &str) -> [Reader; 2] {
    let mut events = Reader::ask(&app.url, &format!("/rooms/r/events{query}")).await;
    events.snapshot().await;
    let mut socket = Reader::upgrade(&app.url, &format!("/rooms/r/socket{query}")).await;
    socket.until("snapshot").await;
    app.until_subscribers(2).await;
    [events, socket]
}

#[tokio::test]
async fn a_reader_that_never_reads_is_cut() {
    let database = Database::new().await;
    let flags = [&LARGE[..], &["--stall-timeout", "300ms"]].concat();
    let app = App::spawn_with(&database, &flags).await;
    let _stuck = stuck(&app, "").await;
    until_alone(&app).await;
}

#[tokio::test]
async fn a_reader_that_never_reads_does_not_outlive_its_credential() {
    let database = Database::new().await;
    let auth = ["--jwt-hs256-secret", SECRET, "--server-keys", KEY];
    let patient = ["--stall-timeout", "10m", "--jwt-leeway", "0"];
    let app = App::spawn_with(&database, &[&LARGE[..], &auth, &patient].concat()).await;
    let rooms = Some(vec!["r".to_owned()]);
    let token = mint(&SECRET.into(), "bob".to_owned(), rooms, Scope::Member, 3).unwrap();
    let _stuck = stuck(&app, &format!("?access_token={token}")).await;
    until_alone(&app).await;
}
