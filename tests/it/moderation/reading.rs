//! Who is blocked may not look on.

use leasehold::access::Scope;
use serde_json::{Value, json};

use super::super::support::{Caller, Database, guarded};

#[tokio::test]
async fn a_block_ends_reading_until_it_ends() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let alice = Caller::new(&app, "alice", Scope::Member);
    let (bob, admin) = (
        Caller::new(&app, "bob", Scope::Member),
        Caller::new(&app, "mod", Scope::Admin),
    );
    alice
        .post("/rooms/r/join", json!({ "userId": "alice" }))
        .await;
    admin
        .delete("/rooms/r/participants/alice?blockForMs=60000&reason=spam")
        .await;

    for path in [
        "/rooms/r/participants",
        "/rooms/r",
        "/rooms/r/events",
        "/rooms/r/socket",
    ] {
        let refused = alice.get(path).await;
        assert_eq!((refused.status, refused.code()), (403, "blocked"), "{path}");
        assert!(refused.body["blockedUntilMs"].is_i64());
        assert!(refused.headers.contains_key("retry-after"));
        assert_eq!(alice.get("/rooms/r-other/participants").await.status, 200);
    }
    assert_eq!(bob.get("/rooms/r/participants").await.status, 200);
    let blocks = admin.get("/rooms/r/blocks").await.body;
    let block = &blocks["blocks"][0];
    assert_eq!(block["userId"], "alice");
    // Who decided it is whose token it was.
    assert_eq!(
        (&block["by"], &block["reason"]),
        (&json!("mod"), &json!("spam"))
    );
    assert_eq!(blocks["next"], Value::Null);

    admin
        .delete("/rooms/r/participants/alice?blockForMs=0")
        .await;
    assert_eq!(alice.get("/rooms/r/participants").await.status, 200);
    database.verify().await;
}

#[tokio::test]
async fn a_block_of_all_rooms_ends_reading_in_each_and_that_of_a_room_in_none() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let alice = Caller::new(&app, "alice", Scope::Observer);
    let server = Caller::server(&app);
    server.delete("/rooms/r?blockForMs=60000").await;
    assert_eq!(alice.get("/rooms/r/participants").await.status, 200);

    server
        .delete("/users/alice/sessions?blockForMs=60000")
        .await;
    for room in ["r", "r2"] {
        let refused = alice.get(&format!("/rooms/{room}/participants")).await;
        assert_eq!(refused.code(), "blocked");
    }
    // Who administers the room decides about it.
    let admin = Caller::new(&app, "alice", Scope::Admin);
    assert_eq!(admin.get("/rooms/r/participants").await.status, 200);
}

#[tokio::test]
async fn blocks_come_in_pages_and_what_cannot_be_is_refused() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let server = Caller::server(&app);
    for user in ["a", "b", "c"] {
        let path = format!("/rooms/r/participants/{user}?blockForMs=60000");
        assert_eq!(server.delete(&path).await.status, 204);
    }
    server.delete("/rooms/r?blockForMs=60000").await;
    let mut users = Vec::new();
    let mut page = "/rooms/r/blocks?limit=1".to_owned();
    loop {
        let found = server.get(&page).await.body;
        users.push(found["blocks"][0]["userId"].clone());
        match found["next"].as_str() {
            Some(next) => page = format!("/rooms/r/blocks?limit=1&after={next}"),
            None => break,
        }
    }
    assert_eq!(users, [Value::Null, json!("a"), json!("b"), json!("c")]);

    let long = "x".repeat(501);
    for query in [
        "by=",
        "reason=",
        &format!("reason={long}"),
        "by=%00",
        "blockForMs=-1",
    ] {
        for path in ["/rooms/r/participants/a", "/rooms/r", "/users/a/sessions"] {
            let refused = server.delete(&format!("{path}?{query}")).await;
            assert_eq!(refused.code(), "invalid_request", "{path} {query}");
        }
    }
    let long = "ä".repeat(500);
    let longest = server.delete(&format!("/rooms/r?reason={long}")).await;
    assert_eq!(longest.status, 204);
}

#[tokio::test]
async fn the_streams_of_who_is_blocked_end_after_their_left_and_those_of_others_go_on() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let (alice, bob) = (
        Caller::new(&app, "alice", Scope::Member),
        Caller::new(&app, "bob", Scope::Member),
    );
    let server = Caller::server(&app);
    let joined = alice
        .post("/rooms/r/join", json!({ "userId": "alice" }))
        .await;
    assert_eq!(joined.status, 200);
    let (mut hers, mut his) = (alice.events("r").await, bob.events("r").await);
    let mut socket = alice.socket("r").await;
    hers.expect("snapshot").await;
    his.expect("snapshot").await;
    socket.until("snapshot").await;

    server
        .delete("/rooms/r/participants/alice?blockForMs=60000")
        .await;

    assert_eq!(hers.until("left").await.data["userId"], "alice");
    let removed = hers.until("removed").await.data;
    assert_eq!(
        removed,
        json!({ "roomId": "r", "userId": "alice", "code": "blocked" })
    );
    assert!(hers.try_next().await.is_none());
    assert_eq!(socket.until("removed").await["code"], "blocked");
    assert_eq!(socket.closed().await, 1008);

    assert_eq!(his.until("left").await.data["memberCount"], 0);
    bob.post("/rooms/r/join", json!({ "userId": "bob" })).await;
    assert_eq!(his.until("joined").await.data["memberCount"], 1);
}

#[tokio::test]
async fn a_stream_of_who_was_never_a_member_ends_as_well() {
    let database = Database::new().await;
    let app = guarded(&database, &["--poll-ms", "100"]).await;
    let alice = Caller::new(&app, "alice", Scope::Observer);
    let server = Caller::server(&app);
    let mut of_the_room = alice.events("r").await;
    server
        .delete("/rooms/r/participants/alice?blockForMs=60000")
        .await;
    of_the_room.until("removed").await;

    let mut elsewhere = alice.events("r2").await;
    server
        .delete("/users/alice/sessions?blockForMs=60000")
        .await;
    elsewhere.until("removed").await;
    assert!(elsewhere.try_next().await.is_none());
}
