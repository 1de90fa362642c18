//! Who may do what on a socket, and for how long.

use std::time::Instant;

use leasehold::access::Scope;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::support::{App, Database, SECRET, Socket, mint};

const KEY: &str = "a-server-key";

fn token(user: &str, seconds: u64) -> String {
    let rooms = Some(vec!["r".to_owned()]);
    mint(
        &SECRET.into(),
        user.to_owned(),
        rooms,
        Scope::Member,
        seconds,
    )
    .unwrap()
}

async fn socket(app: &App, token: &str) -> Socket {
    Socket::connect(&format!("{}/rooms/r/socket?access_token={token}", app.url)).await
}

/// A request with the server's key.
async fn as_server(app: &App, path: &str, body: Option<Value>) -> Value {
    let url = format!("{}{path}", app.url);
    let request = match body {
        Some(body) => app.client.post(url).json(&body),
        None => app.client.get(url),
    };
    let response = request.bearer_auth(KEY).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn what_a_socket_asks_about_anothers_session_is_refused_and_changes_nothing() {
    let database = Database::new().await;
    let app = App::spawn_with(
        &database,
        &["--jwt-hs256-secret", SECRET, "--server-keys", KEY],
    )
    .await;
    let bob = json!({ "userId": "bob" });
    as_server(&app, "/rooms/r/join", Some(bob)).await;
    let before = as_server(&app, "/rooms/r/participants", None).await;
    let mut socket = socket(&app, &token("alice", 600)).await;

    for kind in ["heartbeat", "cursor", "leave"] {
        let request = json!({
            "type": kind, "requestId": kind, "userId": "bob", "epoch": 1, "cursor": { "line": 1 }
        });
        socket.send(request).await;
        let answer = socket.until("answer").await;
        assert_eq!(
            (
                &answer["requestId"],
                &answer["status"],
                &answer["body"]["code"]
            ),
            (&json!(kind), &json!(403), &json!("forbidden"))
        );
    }

    let after = as_server(&app, "/rooms/r/participants", None).await;
    assert_eq!(after["participants"], before["participants"]);
    database.verify().await;
}

#[tokio::test]
async fn a_socket_is_closed_with_1008_when_its_token_ends() {
    let database = Database::new().await;
    let flags = ["--jwt-hs256-secret", SECRET, "--jwt-leeway", "0"];
    let app = App::spawn_with(&database, &flags).await;
    let mut lasting = socket(&app, &token("bob", 600)).await;
    lasting.until("snapshot").await;
    let opened = Instant::now();
    let mut ending = socket(&app, &token("alice", 2)).await;
    ending
        .send(json!({ "type": "join", "userId": "alice" }))
        .await;
    ending.until("answer").await;

    assert_eq!(ending.closed().await, 1008);

    assert!(opened.elapsed().as_secs() >= 1, "it held until then");
    // Who holds a token that goes on hears that alice's transport is lost.
    lasting.until("updated").await;
    database.verify().await;
}

#[tokio::test]
async fn who_tries_tokens_is_slowed_down_as_anybody_else() {
    let database = Database::new().await;
    let limits = ["--rate-limit", "1", "--rate-burst", "3"];
    let flags = [&["--jwt-hs256-secret", SECRET][..], &limits].concat();
    let app = App::spawn_with(&database, &flags).await;
    let mut answers = Vec::new();
    for attempt in 0..6 {
        let request = app.client.get(format!("{}/rooms/r/participants", app.url));
        let request = request.bearer_auth(format!("guess-{attempt}"));
        answers.push(request.send().await.unwrap().status());
    }
    assert_eq!(answers[..3], [StatusCode::UNAUTHORIZED; 3]);
    assert!(
        answers[3..].contains(&StatusCode::TOO_MANY_REQUESTS),
        "{answers:?}"
    );
}
