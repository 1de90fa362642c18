//! Reads that have seen the tables and answer late: what changes meanwhile reaches everybody all the same.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::support::{App, Database, Gate};

/// Polling as good as off: whatever is heard in time, something told of it.
const NO_POLL: &[&str] = &[
    "--poll-ms",
    "60s",
    "--sweep-interval-ms",
    "0",
    "--timeout-ms",
    "20s",
];

/// Joins with a lease so long that nothing about it changes by itself while a test waits.
async fn join(app: &App, user: &str) {
    let body = json!({ "userId": user, "leaseMs": 300_000 });
    assert_eq!(app.post("/rooms/r/join", body).await.status(), 200);
}

fn users(list: &Value) -> Vec<&str> {
    let participants = list["participants"].as_array().unwrap().iter();
    participants
        .map(|participant| participant["userId"].as_str().unwrap())
        .collect()
}

/// Waits until the service counts so many subscribers.
async fn until_subscribed(app: &App, subscribers: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let count = format!("leasehold_subscribers {subscribers}\n");
    loop {
        let metrics = app.get("/metrics").await.text().await.unwrap();
        if metrics.contains(&count) {
            return;
        }
        assert!(Instant::now() < deadline, "never {count}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_changes_while_a_room_is_read_for_its_subscribers_is_told_after_it() {
    let database = Database::new().await;
    let mut gate = Gate::behind(&database, "room_sessions").await;
    let app = App::spawn_with(&database, NO_POLL).await;
    join(&app, "alice").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    gate.shut().await;
    join(&app, "bob").await;
    database.until_waiting_for_locks(1).await;
    join(&app, "carol").await;
    gate.open().await;

    for user in ["bob", "carol"] {
        let joined = events.expect("joined").await.data;
        assert_eq!(joined["participant"]["userId"], user);
    }
    database.verify().await;
}

#[tokio::test]
async fn a_subscribers_first_snapshot_is_from_a_read_that_began_after_it_came() {
    let database = Database::new().await;
    let mut gate = Gate::behind(&database, "room_sessions").await;
    let app = App::spawn_with(&database, NO_POLL).await;
    join(&app, "alice").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    gate.shut().await;
    join(&app, "bob").await;
    database.until_waiting_for_locks(1).await;
    join(&app, "carol").await;
    let coming = async { app.events("r").await.expect("snapshot").await.data };
    let opening = async {
        until_subscribed(&app, 2).await;
        gate.open().await;
    };
    let (snapshot, ()) = tokio::join!(coming, opening);

    assert_eq!(users(&snapshot), ["alice", "bob", "carol"]);
    database.verify().await;
}

#[tokio::test]
async fn a_list_is_never_of_a_read_that_began_before_it_was_asked_for() {
    let database = Database::new().await;
    let mut gate = Gate::behind(&database, "room_sessions").await;
    let app = App::spawn_with(&database, NO_POLL).await;
    join(&app, "alice").await;

    gate.shut().await;
    let earlier = app.participants("r");
    let later = async {
        database.until_waiting_for_locks(1).await;
        join(&app, "bob").await;
        let asking = (0..8).map(|_| app.participants("r"));
        let opening = async {
            database.until_waiting_for_locks(2).await;
            gate.open().await;
        };
        let (lists, ()) = tokio::join!(futures_util::future::join_all(asking), opening);
        lists
    };
    let (earlier, later) = tokio::join!(earlier, later);

    assert_eq!(users(&earlier), ["alice"], "it was read before");
    for list in later {
        assert_eq!(users(&list), ["alice", "bob"]);
    }
    database.verify().await;
}

#[tokio::test]
async fn a_reader_of_the_feed_is_woken_by_what_changes_while_it_reads() {
    let database = Database::new().await;
    let mut gate = Gate::behind(&database, "changes").await;
    let app = App::spawn_with(&database, NO_POLL).await;
    join(&app, "alice").await;
    let page = async |query: &str| -> Value {
        let response = app.get(&format!("/changes{query}")).await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    };
    let latest = page("?after=latest").await["next"].clone();

    gate.shut().await;
    let query = format!("?after={}&waitMs=30000", latest.as_str().unwrap());
    let changing = async {
        database.until_waiting_for_locks(1).await;
        assert_eq!(app.leave("r", "alice", 1).await.status(), 204);
        gate.open().await;
    };
    let waiting = timeout(Duration::from_secs(15), page(&query));
    let (page, ()) = tokio::join!(waiting, changing);

    let page = page.expect("it was woken");
    assert_eq!(page["changes"][0]["kind"], "ended", "{page}");
    database.verify().await;
}
