//! What wakes those who wait, with polling as good as off: whatever they hear in time, something told them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::support::{App, Database, Proxy};

const NO_POLL: &[&str] = &["--poll-ms", "60s", "--sweep-interval-ms", "0"];

/// Joins with a lease so long that nothing about it changes by itself while a test waits.
async fn join(app: &App, user: &str) {
    let body = json!({ "userId": user, "leaseMs": 300_000 });
    assert_eq!(app.post("/rooms/r/join", body).await.status(), 200);
}

#[tokio::test]
async fn a_subscriber_hears_of_a_removal() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    join(&app, "alice").await;
    join(&app, "bob").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    let removed = app.delete("/rooms/r/participants/alice").await;

    assert_eq!(removed.status(), 204);
    let left = events.expect("left").await.data;
    assert_eq!(
        (&left["userId"], &left["reason"]),
        (&json!("alice"), &json!("removed"))
    );
    database.verify().await;
}

#[tokio::test]
async fn a_subscriber_hears_that_a_room_was_closed() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    join(&app, "alice").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    assert_eq!(app.delete("/rooms/r").await.status(), 204);

    events.expect("left").await;
    let closed = events.expect("room_closed").await.data;
    assert_eq!(closed["reason"], "room_closed");
    database.verify().await;
}

/// A page of the feed.
async fn changes(app: &App, query: &str) -> Value {
    let response = app.get(&format!("/changes{query}")).await;
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_waiting_reader_of_the_feed_hears_of_a_leave() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    join(&app, "alice").await;
    let seen = changes(&app, "?after=latest").await["next"].clone();
    let query = format!("?after={}&waitMs=30000", seen.as_str().unwrap());
    let leaving = async {
        // Until the reader waits; were it later than this, it would find the leave by itself.
        sleep(Duration::from_millis(300)).await;
        assert_eq!(app.leave("r", "alice", 1).await.status(), 204);
    };

    let waiting = timeout(Duration::from_secs(15), changes(&app, &query));
    let (page, ()) = tokio::join!(waiting, leaving);

    let page = page.expect("it was woken");
    assert_eq!(page["changes"][0]["kind"], "ended");
    database.verify().await;
}

#[tokio::test]
async fn what_changed_before_the_first_listen_succeeded_is_seen_when_it_does() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    proxy.deafen();
    let deaf = App::spawn_at(&proxy.url, NO_POLL).await;
    let other = App::spawn_with(&database, NO_POLL).await;
    let mut events = deaf.events("r").await;
    events.expect("snapshot").await;
    other.join("r", "alice").await;

    proxy.open();

    let joined = events.expect("joined").await.data;
    assert_eq!(joined["participant"]["userId"], "alice");
    database.verify().await;
}
