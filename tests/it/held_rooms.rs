//! What one transaction holds delays nobody else, however many keep asking for it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::raw_sql;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use super::support::{App, Database, Events};

/// Longer than any answer takes that waits for nobody, and far shorter than the hold.
const SOON: Duration = Duration::from_millis(800);

/// How long the row is held.
const HELD: Duration = Duration::from_secs(4);

async fn post(app: &App, room: &str, action: &str, body: Value) -> (u16, Value) {
    let response = app.post(&format!("/rooms/{room}/{action}"), body).await;
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or_default())
}

/// Everything that a member of a room does, one after the other, seen by a subscriber; panics
/// where anything is late.
async fn a_visit(app: &App, room: &str, user: &str, events: &mut Events) {
    let began = Instant::now();
    let (status, joined) = post(app, room, "join", json!({ "userId": user })).await;
    assert_eq!(status, 200, "{joined}");
    let session = |more: Value| {
        let mut body = json!({ "userId": user, "epoch": joined["epoch"] });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    for (action, more) in [
        ("heartbeat", json!({})),
        ("heartbeat", json!({ "leaseMs": 20_000 })),
        ("cursor", json!({ "cursor": { "line": 1 } })),
        ("disconnect", json!({})),
    ] {
        let (status, answer) = post(app, room, action, session(more)).await;
        assert_eq!(status, 204, "{action}: {answer}");
    }
    let list = app.participants(room).await;
    assert!(list["participants"].as_array().unwrap().len() < 100);
    assert_eq!(app.get("/rooms").await.status(), 200);
    // Who leaves between two looks at the room is never told.
    events.until("joined").await;
    let (status, answer) = post(app, room, "leave", session(json!({}))).await;
    assert_eq!(status, 204, "{answer}");
    let took = began.elapsed();
    assert!(took < SOON, "{user} took {took:?}");
}

/// Holds what a statement locks, lets requests for it trickle in, and has others do everything
/// in another room meanwhile.
async fn holding(lock: &str, trickle: &'static [(&'static str, &'static str)]) {
    let database = Database::new().await;
    let flags = ["--timeout-ms", "10s", "--sweep-interval-ms", "200"];
    let app = Arc::new(App::spawn_with(&database, &flags).await);
    app.join("held", "alice").await;
    app.join("free", "stays").await;
    let mut events = app.events("free").await;
    events.expect("snapshot").await;
    let mut holder = database.connect().await;
    raw_sql(sqlx::AssertSqlSafe(format!("begin; {lock}")))
        .execute(&mut holder)
        .await
        .unwrap();

    let began = Instant::now();
    let mut held = JoinSet::new();
    let mut ticks = interval(Duration::from_millis(100));
    let mut turn = 0;
    while began.elapsed() < HELD {
        ticks.tick().await;
        let (action, user) = trickle[turn % trickle.len()];
        let asking = Arc::clone(&app);
        held.spawn(async move {
            let body = json!({ "userId": user, "epoch": 1, "leaseMs": 15_000 });
            post(&asking, "held", action, body).await.0
        });
        // The list of the held room waits for nobody either.
        let looked = Instant::now();
        app.participants("held").await;
        assert!(looked.elapsed() < SOON, "the list of the held room is late");
        a_visit(&app, "free", &format!("user-{turn}"), &mut events).await;
        turn += 1;
    }
    // Those who need the row wait for it, and are answered the moment it is released.
    assert!(held.try_join_next().is_none(), "somebody did not wait");
    raw_sql("rollback").execute(&mut holder).await.unwrap();
    let released = Instant::now();
    let statuses = held.join_all().await;
    assert!(released.elapsed() < Duration::from_secs(2));
    assert!(
        statuses
            .iter()
            .all(|status| [200, 204, 409].contains(status)),
        "{statuses:?}"
    );
    drop(events);
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_room_delays_nobody_who_asks_for_another() {
    let lock = "select from leasehold.rooms where room_id = 'held' for update";
    let trickle = &[
        ("join", "bob"),
        ("join", "carol"),
        ("leave", "alice"),
        ("heartbeat", "alice"),
    ];
    holding(lock, trickle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_session_delays_nobody_who_asks_for_another() {
    let lock = "select from leasehold.members where room_id = 'held' for update";
    let trickle = &[
        ("join", "alice"),
        ("heartbeat", "alice"),
        ("disconnect", "alice"),
    ];
    holding(lock, trickle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_a_transaction_is_about_to_open_delays_nobody_who_asks_for_another() {
    let lock = "select leasehold.join_member('opening', 'dave'); \
                select from leasehold.rooms where room_id = 'held' for update";
    holding(lock, &[("join", "bob")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_a_transaction_puts_out_of_all_rooms_delays_nobody_else() {
    holding(
        "select leasehold.remove_user('mallory')",
        &[("join", "mallory")],
    )
    .await;
}

#[tokio::test]
async fn who_waits_for_a_held_room_is_503_when_their_time_is_over() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--timeout-ms", "500"]).await;
    app.join("held", "alice").await;
    let mut holder = database.connect().await;
    raw_sql("begin; select from leasehold.rooms where room_id = 'held' for update")
        .execute(&mut holder)
        .await
        .unwrap();
    for _ in 0..3 {
        let began = Instant::now();
        let (status, answer) = post(&app, "held", "join", json!({ "userId": "bob" })).await;
        assert_eq!((status, &answer["code"]), (503, &json!("unavailable")));
        let took = began.elapsed();
        assert!((400..2_000).contains(&took.as_millis()), "{took:?}");
        sleep(Duration::from_millis(50)).await;
    }
    let moderation = app.delete("/rooms/held").await;
    assert_eq!(moderation.status(), 503);
    raw_sql("rollback").execute(&mut holder).await.unwrap();
    let (status, _) = post(&app, "held", "join", json!({ "userId": "bob" })).await;
    assert_eq!(status, 200);
    database.verify().await;
}
