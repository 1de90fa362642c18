//! Rooms that let nobody in: closed for a time, or locked.

use leasehold::access::Scope;
use serde_json::{Value, json};

use super::super::support::race::{Side, at, join_sql, leave_sql, lock_room};
use super::super::support::{App, Caller, Database, guarded};

async fn code(app: &App, path: &str, user: &str) -> String {
    let response = app.post(path, json!({ "userId": user })).await;
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    format!("{status} {}", body["code"].as_str().unwrap_or("-"))
}

#[tokio::test]
async fn a_room_that_was_closed_for_a_time_is_opened_by_nobody_before() {
    let database = Database::new().await;
    let mut side = Side::new(&database).await;
    side.run(join_sql("alice", 0)).await;
    let close = format!(
        "select outcome from leasehold.close_room('r', 1000, 'mod', 'over', {})",
        at(10)
    );
    assert_eq!(side.run(close).await, ["closed"]);

    assert_eq!(side.run(join_sql("bob", 1_009)).await, ["blocked"]);
    assert_eq!(side.run(join_sql("bob", 1_010)).await, ["joined 1 2"]);
    database.verify().await;
}

#[tokio::test]
async fn a_join_in_flight_does_not_open_a_room_that_is_being_closed_for_a_time() {
    let database = Database::new().await;
    let close = format!(
        "select outcome from leasehold.close_room('r', 1000, p_now => {})",
        at(10)
    );
    // Nobody is in it, so there is no room to lock.
    let mut closing = Side::holding(&database, close).await;
    let joining = Side::new(&database).await.waits(join_sql("bob", 20)).await;
    closing.run("commit").await;

    assert_eq!(joining.word().await, "blocked");
    assert_eq!(database.rows().await, (0, 0));
    database.verify().await;
}

#[tokio::test]
async fn over_http_a_closing_says_until_when_and_is_lifted_by_nothing() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let closed = app
        .delete("/rooms/r?blockForMs=60000&by=mod&reason=over")
        .await;
    assert_eq!(closed.status(), 204);

    let response = app.post("/rooms/r/join", json!({ "userId": "bob" })).await;
    assert_eq!(response.status(), 403);
    let retry_after = response.headers()["retry-after"].to_str().unwrap();
    assert!((1..=60).contains(&retry_after.parse::<i64>().unwrap()));
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["code"], "blocked");
    let blocks: Value = app.get("/rooms/r/blocks").await.json().await.unwrap();
    assert_eq!(
        blocks["blocks"],
        json!([{ "userId": null, "blockedUntilMs": body["blockedUntilMs"], "by": "mod", "reason": "over" }])
    );

    assert_eq!(app.delete("/rooms/r?blockForMs=0").await.status(), 204);
    app.join("r", "bob").await;
    database.verify().await;
}

#[tokio::test]
async fn a_locked_room_keeps_those_inside_and_lets_nobody_else_in() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let no_body = app.send(reqwest::Method::PUT, "/rooms/r/lock", &[], "");
    assert_eq!(no_body.await.status(), 404);
    app.join("r", "alice").await;
    let locked = app.send(reqwest::Method::PUT, "/rooms/r/lock", &[], "");
    assert_eq!(locked.await.status(), 204);

    let room: Value = app.get("/rooms/r").await.json().await.unwrap();
    assert_eq!(room["locked"], true);
    assert_eq!(
        code(&app, "/rooms/r/join", "bob").await,
        "403 Forbidden room_locked"
    );
    assert_eq!(code(&app, "/rooms/r/join", "alice").await, "200 OK -");
    assert_eq!(app.heartbeat("r", "alice", 2).await.status(), 204);

    assert_eq!(app.delete("/rooms/r/lock").await.status(), 204);
    assert_eq!(code(&app, "/rooms/r/join", "bob").await, "200 OK -");
    database.verify().await;
}

#[tokio::test]
async fn the_next_lifetime_of_a_locked_room_begins_unlocked() {
    let database = Database::new().await;
    let mut side = Side::new(&database).await;
    side.run(join_sql("alice", 0)).await;
    let lock = format!(
        "select outcome from leasehold.lock_door('r', p_now => {})",
        at(1)
    );
    assert_eq!(side.run(lock).await, ["locked"]);
    assert_eq!(side.run(join_sql("bob", 2)).await, ["room_locked"]);
    // Alice's lease has run out: nobody is inside.
    assert_eq!(side.run(join_sql("bob", 15_001)).await, ["joined 1 2"]);
    side.run(leave_sql("bob", 1, 15_002)).await;
    assert_eq!(side.run(join_sql("alice", 15_003)).await, ["joined 2 3"]);
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_waits_for_the_lock_of_a_room_is_not_let_in() {
    let database = Database::new().await;
    Side::new(&database).await.run(join_sql("alice", 0)).await;
    let mut locking = Side::holding(&database, lock_room("r")).await;
    let joining = Side::new(&database).await.waits(join_sql("bob", 2)).await;
    let lock = format!(
        "select outcome from leasehold.lock_door('r', p_now => {})",
        at(1)
    );
    locking.run(lock).await;
    locking.run("commit").await;

    assert_eq!(joining.word().await, "room_locked");
    database.verify().await;
}

#[tokio::test]
async fn only_an_admin_of_the_room_locks_it() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let member = Caller::new(&app, "alice", Scope::Member);
    let joined = member
        .post("/rooms/r/join", json!({ "userId": "alice" }))
        .await;
    assert_eq!(joined.status, 200);
    assert_eq!(member.put("/rooms/r/lock").await.code(), "forbidden");
    let admin = Caller::new(&app, "mod", Scope::Admin);
    assert_eq!(admin.put("/rooms/r/lock").await.status, 204);
    assert_eq!(member.delete("/rooms/r/lock").await.code(), "forbidden");
}
