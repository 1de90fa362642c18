//! A socket's credential: a fresh one prolongs it; and how often its holder may ask.

use std::time::{Duration, Instant};

use leasehold::access::Scope;
use serde_json::{Value, json};

use super::support::{App, Database, SECRET, Socket, mint};

fn token(user: &str, rooms: &str, seconds: u64) -> String {
    let rooms = Some(vec![rooms.to_owned()]);
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

fn authenticate(token: &str) -> Value {
    json!({ "type": "authenticate", "requestId": "fresh", "token": token })
}

#[tokio::test]
async fn a_fresh_token_prolongs_a_socket_and_nobody_sees_a_change() {
    let database = Database::new().await;
    let flags = ["--jwt-hs256-secret", SECRET, "--jwt-leeway", "0"];
    let app = App::spawn_with(&database, &flags).await;
    let mut lasting = socket(&app, &token("bob", "r", 600)).await;
    lasting.until("snapshot").await;
    let mut alice = socket(&app, &token("alice", "r", 2)).await;
    alice
        .ask(json!({ "type": "join", "userId": "alice" }))
        .await;
    lasting.until("joined").await;

    let answer = alice.ask(authenticate(&token("alice", "r", 5))).await;
    assert_eq!(
        (&answer["requestId"], &answer["status"]),
        (&json!("fresh"), &json!(204))
    );
    let prolonged = Instant::now();

    assert_eq!(alice.closed().await, 1008);
    assert!(
        prolonged.elapsed() > Duration::from_secs(3),
        "past the end of the first"
    );
    let seen = lasting.try_next().await.unwrap();
    assert_eq!(
        (&seen["type"], &seen["participant"]["status"]),
        (&json!("updated"), &json!("reconnecting")),
        "nothing before the socket's end"
    );
    database.verify().await;
}

#[tokio::test]
async fn a_token_that_does_not_fit_is_refused_and_the_socket_goes_on() {
    let database = Database::new().await;
    let app = App::spawn_with(
        &database,
        &["--jwt-hs256-secret", SECRET, "--server-keys", "key"],
    )
    .await;
    let mut alice = socket(&app, &token("alice", "r", 600)).await;
    for (token, status) in [
        (token("bob", "r", 600), 403),
        ("key".to_owned(), 403),
        ("nonsense".to_owned(), 401),
        (token("alice", "r", 600).replace('.', ".x"), 401),
    ] {
        assert_eq!(
            alice.ask(authenticate(&token)).await["status"],
            status,
            "{token}"
        );
    }
    let missing = json!({ "type": "authenticate" });
    assert_eq!(alice.ask(missing).await["status"], 400);
    let join = json!({ "type": "join", "userId": "alice" });
    assert_eq!(alice.ask(join).await["status"], 200);

    let mut server = socket(&app, "key").await;
    assert_eq!(server.ask(authenticate("key")).await["status"], 204);
    database.verify().await;
}

#[tokio::test]
async fn what_a_fresh_token_no_longer_allows_is_refused_from_then_on() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    let mut lasting = socket(&app, &token("bob", "r", 600)).await;
    let mut alice = socket(&app, &token("alice", "r", 600)).await;
    alice
        .ask(json!({ "type": "join", "userId": "alice", "leaseMs": 120_000 }))
        .await;

    alice
        .send(authenticate(&token("alice", "elsewhere", 600)))
        .await;

    let lost = lasting.until("updated").await;
    assert_eq!(
        lost["participant"]["status"], "reconnecting",
        "no longer held by the socket"
    );
    database.verify().await;
}

#[tokio::test]
async fn messages_of_a_socket_count_as_requests_of_its_client() {
    let database = Database::new().await;
    let flags = [
        "--rate-limit",
        "1",
        "--rate-burst",
        "5",
        "--jwt-hs256-secret",
        SECRET,
        "--server-keys",
        "key",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let request = json!({ "type": "leave", "requestId": 1, "userId": "alice", "epoch": 1 });
    let mut alice = socket(&app, &token("alice", "r", 600)).await;
    let mut answers = Vec::new();
    for _ in 0..8 {
        answers.push(alice.ask(request.clone()).await);
    }
    assert_eq!(answers[0]["status"], 204);
    let refused = &answers[7];
    assert_eq!(
        (
            &refused["requestId"],
            &refused["status"],
            &refused["body"]["code"]
        ),
        (&json!(1), &json!(429), &json!("rate_limited"))
    );
    assert!(
        refused["body"]["retryAfterMs"].as_u64() >= Some(1_000),
        "{refused}"
    );

    let mut server = socket(&app, "key").await;
    for _ in 0..8 {
        assert_eq!(server.ask(request.clone()).await["status"], 204);
    }
}
