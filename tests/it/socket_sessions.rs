//! Which sessions a socket keeps alive, and which it reports lost.

use serde_json::{Value, json};

use super::support::{App, Database, Socket};

const FLAGS: [&str; 4] = ["--keep-alive-ms", "100", "--poll-ms", "60000"];

async fn renew(socket: &mut Socket, user: &str, epoch: i64) {
    let request = json!({ "type": "heartbeat", "requestId": user, "userId": user, "epoch": epoch });
    assert_eq!(socket.ask(request).await["status"], 204);
}

async fn join(socket: &mut Socket, user: &str) -> Value {
    let request = json!({ "type": "join", "requestId": user, "userId": user });
    let answer = socket.ask(request).await;
    assert_eq!(answer["status"], 200);
    answer["body"]["epoch"].clone()
}

async fn member(app: &App, user: &str) -> Value {
    let list = app.participants("r").await;
    let members = list["participants"].as_array().unwrap().iter();
    let mut found = members.filter(|member| member["userId"] == user);
    found.next().cloned().unwrap()
}

/// Answers pings until all of them were heard of again.
async fn until_heard_of(app: &App, socket: &mut Socket, users: &[&str]) {
    for user in users {
        let before = member(app, user).await["lastSeenMs"].as_i64();
        while member(app, user).await["lastSeenMs"].as_i64() <= before {
            socket.answer_a_ping().await;
        }
    }
}

#[tokio::test]
async fn sessions_that_were_joined_elsewhere_and_renewed_on_a_socket_are_its_own() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &FLAGS).await;
    let users = ["alice", "bob", "carol"];
    let mut socket = app.socket("r").await;
    for user in users {
        app.join("r", user).await;
        renew(&mut socket, user, 1).await;
    }
    until_heard_of(&app, &mut socket, &users).await;

    drop(socket);
    let mut events = app.events("r").await;
    let mut snapshot = events.expect("snapshot").await.data;
    while users.iter().any(|user| {
        let mut members = snapshot["participants"].as_array().unwrap().iter();
        !members.any(|m| m["userId"] == *user && m["status"] == "reconnecting")
    }) {
        snapshot = app.participants("r").await;
    }
    database.verify().await;
}

#[tokio::test]
async fn a_socket_that_another_took_over_from_reports_nobody_lost() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &FLAGS).await;
    let mut first = app.socket("r").await;
    join(&mut first, "alice").await;
    join(&mut first, "bob").await;
    let mut second = app.socket("r").await;
    renew(&mut second, "alice", 1).await;

    drop(first);

    // Of the two, in one call, only the one that is not held by another.
    while member(&app, "bob").await["status"] != "reconnecting" {}
    assert_eq!(member(&app, "alice").await["status"], "connected");
    until_heard_of(&app, &mut second, &["alice"]).await;
    database.verify().await;
}

#[tokio::test]
async fn each_stale_session_of_a_socket_is_told_once_and_the_others_live_on() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &FLAGS).await;
    let mut socket = app.socket("r").await;
    join(&mut socket, "alice").await;
    join(&mut socket, "bob").await;
    app.join("r", "alice").await;

    let stale = socket.until("stale").await;
    assert_eq!(
        stale,
        json!({ "type": "stale", "roomId": "r", "userId": "alice", "epoch": 1, "code": "superseded" })
    );
    until_heard_of(&app, &mut socket, &["bob"]).await;
    database.verify().await;
}

#[tokio::test]
async fn a_join_on_the_same_socket_takes_the_place_of_the_earlier_session_in_silence() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &FLAGS).await;
    let mut socket = app.socket("r").await;
    join(&mut socket, "alice").await;
    assert_eq!(join(&mut socket, "alice").await, 2);
    for _ in 0..3 {
        socket.answer_a_ping().await;
    }
    let leave = json!({ "type": "leave", "requestId": 9, "userId": "alice", "epoch": 2 });
    socket.send(leave).await;
    loop {
        let message = socket.try_next().await.unwrap();
        assert_ne!(message["type"], "stale", "{message}");
        if message["type"] == "answer" {
            break;
        }
    }
    database.verify().await;
}
