//! Where people are, and when those who are nowhere were last seen.

use leasehold::access::Scope;
use leasehold::domain::UserId;
use serde_json::{Value, json};

use super::support::{App, Caller, Database, Socket, guarded, join, join_on, session, t};

fn users(ids: &[&str]) -> Vec<UserId> {
    ids.iter().map(|id| UserId::parse(*id).unwrap()).collect()
}

#[tokio::test]
async fn each_is_answered_in_order_with_rooms_or_when_they_were_last_seen() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for room in ["b", "a"] {
        app.join(room, "alice").await;
    }
    app.join("a", "bob").await;
    app.leave("a", "bob", 1).await;
    let asked = json!({ "userIds": ["bob", "nobody", "alice", "bob"] });
    let answer = app.post("/whereabouts", asked).await;
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    let found = answer["users"].as_array().unwrap();
    let ids: Vec<&str> = found
        .iter()
        .map(|u| u["userId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["bob", "nobody", "alice", "bob"]);
    assert_eq!(found[0]["rooms"], json!([]));
    assert!(found[0]["lastSeenMs"].is_i64());
    assert_eq!(found[1]["lastSeenMs"], Value::Null);
    let alone: Value = app.get("/users/alice/rooms").await.json().await.unwrap();
    assert_eq!(found[2]["rooms"], alone["rooms"]);
    assert_eq!(found[2]["lastSeenMs"], alone["rooms"][0]["lastSeenMs"]);
    database.verify().await;
}

#[tokio::test]
async fn who_is_nowhere_was_last_seen_in_whichever_room_that_was() {
    let database = Database::new().await;
    let at = |ms| database.at(t(ms));
    at(0)
        .join(&[join("b", "alice")], Default::default())
        .await
        .unwrap();
    at(10)
        .join(&[join("a", "alice")], Default::default())
        .await
        .unwrap();
    // The later device of two ends first.
    let devices = [join_on("c", "alice", "x"), join_on("c", "alice", "y")];
    at(20).join(&devices, Default::default()).await.unwrap();
    at(30)
        .leave(&[session("c", "alice", "y", 2)])
        .await
        .unwrap();
    let found = at(40).whereabouts(&users(&["alice"]), 2).await.unwrap();
    let rooms: Vec<&str> = found[0].rooms.iter().map(|r| r.room_id.as_str()).collect();
    assert_eq!(rooms, ["a", "b"], "no more than were asked for");

    let beats = [super::support::beat("c", "alice", "x", 1)];
    super::support::Renew::renew(&at(500), &beats)
        .await
        .unwrap();
    // Expired, and no sweep has run.
    let found = at(60_000).whereabouts(&users(&["alice"]), 9).await.unwrap();
    assert_eq!(
        (found[0].rooms.len(), found[0].last_seen_at),
        (0, Some(t(500)))
    );
    at(60_000).sweep(100).await.unwrap();
    let found = at(60_001).whereabouts(&users(&["alice"]), 9).await.unwrap();
    assert_eq!(found[0].last_seen_at, Some(t(500)));
    database.verify().await;
}

#[tokio::test]
async fn a_client_asks_for_itself_and_nobody_for_too_many() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let alice = Caller::new(&app, "alice", Scope::Member);
    let ask = async |caller: &Caller<'_>, ids: Value| {
        let reply = caller.post("/whereabouts", json!({ "userIds": ids })).await;
        (reply.status, reply.code().to_owned())
    };
    assert_eq!(ask(&alice, json!(["alice"])).await.0, 200);
    assert_eq!(ask(&alice, json!(["alice", "bob"])).await.1, "forbidden");
    let server = Caller::server(&app);
    assert_eq!(ask(&server, json!(["bob"])).await.0, 200);
    assert_eq!(ask(&server, json!([])).await.0, 200);
    let many: Vec<String> = (0..1_001).map(|n| format!("user-{n}")).collect();
    assert_eq!(ask(&server, json!(many[..1_000])).await.0, 200);
    assert_eq!(ask(&server, json!(many)).await.1, "batch_too_large");
    for wrong in [json!([""]), json!(["a\nb"]), json!("alice"), json!([1])] {
        assert_eq!(
            ask(&server, wrong.clone()).await.1,
            "invalid_request",
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_socket_is_told_where_people_are_and_then_what_is_different() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms", "100"]).await;
    app.join("a", "alice").await;
    let mut socket = Socket::connect(&format!("{}/socket", app.url)).await;
    let follow = |users: Value| json!({ "type": "subscribe", "requestId": 1, "users": users });
    socket.send(follow(json!(["bob", "alice", "bob"]))).await;
    assert_eq!(socket.until("answer").await["status"], 204);
    let told = socket.until("whereabouts").await["users"].clone();
    assert_eq!(told.as_array().unwrap().len(), 2);
    assert_eq!(told[0]["rooms"][0]["roomId"], "a");
    assert_eq!(told[1]["rooms"], json!([]));

    app.join("b", "bob").await;
    let told = socket.until("whereabouts").await["users"].clone();
    assert_eq!(told.as_array().unwrap().len(), 1, "alice is where she was");
    assert_eq!(told[0]["userId"], "bob");
    assert_eq!(told[0]["rooms"][0]["roomId"], "b");

    app.leave("a", "alice", 1).await;
    let told = socket.until("whereabouts").await["users"].clone();
    assert_eq!(
        (&told[0]["userId"], &told[0]["rooms"]),
        (&json!("alice"), &json!([]))
    );
    assert!(told[0]["lastSeenMs"].is_i64());

    socket.send(follow(json!([]))).await;
    assert_eq!(socket.until("answer").await["status"], 204);
    let many: Vec<String> = (0..201).map(|n| format!("user-{n}")).collect();
    for (users, status) in [(json!(many), 400), (json!([""]), 400), (json!([1]), 400)] {
        socket.send(follow(users)).await;
        assert_eq!(socket.until("answer").await["status"], status);
    }
    database.verify().await;
}

#[tokio::test]
async fn a_client_follows_itself_and_nobody_else_on_a_socket() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let mut socket = Caller::new(&app, "alice", Scope::Member).socket("r").await;
    for (user, status) in [("bob", 403), ("alice", 204)] {
        let message = json!({ "type": "subscribe", "requestId": user, "users": [user] });
        socket.send(message).await;
        assert_eq!(socket.until("answer").await["status"], status, "{user}");
    }
    socket.until("whereabouts").await;
}
