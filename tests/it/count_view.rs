//! A room by its number alone: on lists, streams and sockets.

use std::time::{Duration, Instant};

use leasehold::access::Scope;
use serde_json::{Value, json};

use super::support::{App, Caller, Database, Events, Proxy, guarded, join, room, t};

async fn counts(app: &App, room: &str) -> Events {
    Events::of(app.get(&format!("/rooms/{room}/events?view=count")).await)
}

#[tokio::test]
async fn a_list_by_count_says_what_the_whole_list_says_without_names() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let nowhere = app.participants_page("r", "view=count").await;
    assert_eq!(
        (
            &nowhere["generation"],
            &nowhere["version"],
            &nowhere["memberCount"]
        ),
        (&Value::Null, &Value::Null, &json!(0))
    );
    app.join("r", "alice").await;
    let device = json!({ "userId": "alice", "deviceId": "phone" });
    assert_eq!(app.post("/rooms/r/join", device).await.status(), 200);
    app.join("r", "bob").await;

    let mut counted = app.participants_page("r", "view=count").await;
    let whole = app.participants("r").await;
    assert!(counted["asOfMs"].take().is_i64());
    assert_eq!(
        counted,
        json!({
            "roomId": "r", "generation": whole["generation"], "version": whole["version"],
            "asOfMs": null, "memberCount": 2,
        })
    );
    for address in ["participants", "events", "socket"] {
        let response = app
            .send(
                reqwest::Method::GET,
                &format!("/rooms/r/{address}?view=faces"),
                &[("upgrade", "websocket")],
                "",
            )
            .await;
        assert_eq!(response.status(), 400, "{address}");
    }
    database.verify().await;
}

#[tokio::test]
async fn a_count_leaves_out_who_has_expired_as_a_list_does() {
    let database = Database::new().await;
    let room = room("r");
    for (instant, user) in [(0, "alice"), (10_000, "bob")] {
        let store = database.at(t(instant));
        let joined = store.join(&[join("r", user)], Default::default()).await;
        joined.unwrap();
    }
    for (instant, members) in [(15_000, 2), (15_001, 1), (25_000, 1), (25_001, 0)] {
        let store = database.at(t(instant));
        let rooms = std::slice::from_ref(&room);
        let count = store.room_counts(rooms).await.unwrap()[&room];
        let whole = &store.participants(rooms).await.unwrap()[&room];
        assert_eq!(count.members, members, "at {instant}");
        assert_eq!(whole.participants.len(), members as usize, "at {instant}");
        let head = whole.room.map(|room| (room.generation, room.version));
        assert_eq!(count.generation.zip(count.version), head, "at {instant}");
    }
    database.verify().await;
}

#[tokio::test]
async fn a_count_reader_hears_the_number_at_once_and_then_at_most_once_a_second() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let began = Instant::now();
    let mut events = counts(&app, "hall").await;
    let first = events.expect("count").await.data;
    assert_eq!(first["memberCount"], 0);
    let mut heard = 0;
    for n in 0..60 {
        app.join("hall", &format!("user-{n}")).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    loop {
        let event = events.expect("count").await;
        heard += 1;
        let size = event.data.to_string().len();
        assert!(size < 100, "{size} bytes: {}", event.data);
        if event.data["memberCount"] == 60 {
            break;
        }
    }
    let limit = 2 + usize::try_from(began.elapsed().as_secs()).unwrap();
    assert!(heard <= limit, "{heard} events, more than {limit}");
    database.verify().await;
}

#[tokio::test]
async fn a_count_reader_hears_nothing_of_what_does_not_change_the_number() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms", "60000"]).await;
    let mut events = counts(&app, "r").await;
    app.join("r", "alice").await;
    while events.expect("count").await.data["memberCount"] != 1 {}
    // Another session, a cursor; and then somebody else, whose count is the next event.
    app.join("r", "alice").await;
    let cursor = json!({ "userId": "alice", "epoch": 2, "cursor": { "line": 1 } });
    assert_eq!(app.post("/rooms/r/cursor", cursor).await.status(), 204);
    let mut people = app.events("r").await;
    people.expect("snapshot").await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    app.join("r", "bob").await;
    assert_eq!(events.expect("count").await.data["memberCount"], 2);

    // The end of one view's watcher leaves the other's bell where it is.
    drop(events);
    app.until_subscribers(1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    people.expect("joined").await;
    app.join("r", "carol").await;
    people.expect("joined").await;
    database.verify().await;
}

#[tokio::test]
async fn a_lease_that_ends_lowers_the_count_without_a_sweep() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--sweep-interval-ms", "0"]).await;
    let mut events = counts(&app, "r").await;
    let join = json!({ "userId": "alice", "leaseMs": 1_000 });
    assert_eq!(app.post("/rooms/r/join", join).await.status(), 200);
    while events.expect("count").await.data["memberCount"] != 1 {}
    let gone = events.expect("count").await.data;
    assert_eq!(
        (&gone["memberCount"], &gone["generation"]),
        (&json!(0), &Value::Null)
    );
    database.verify().await;
}

#[tokio::test]
async fn a_socket_follows_a_room_by_one_view_at_a_time() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut socket = app.socket("other").await;
    socket.until("snapshot").await;
    for (view, first) in [(json!("count"), "count"), (Value::Null, "snapshot")] {
        let request = json!({ "type": "subscribe", "roomId": "r", "view": view });
        assert_eq!(socket.ask(request).await["status"], 204);
        let message = socket.try_next().await.unwrap();
        assert_eq!(
            (&message["type"], &message["roomId"]),
            (&json!(first), &json!("r"))
        );
        app.until_subscribers(2).await;
    }
    app.join("r", "alice").await;
    assert_eq!(socket.try_next().await.unwrap()["type"], "joined");
    database.verify().await;
}

#[tokio::test]
async fn a_count_reader_hears_that_the_database_is_away_and_how_many_there_are_when_it_is_back() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = ["--poll-ms", "200", "--timeout-ms", "500"];
    let app = App::spawn_at(&proxy.url, &flags).await;
    app.join("r", "alice").await;
    let mut events = counts(&app, "r").await;
    assert_eq!(events.expect("count").await.data["memberCount"], 1);
    proxy.silence();
    assert_eq!(events.expect("stale").await.data["roomId"], "r");
    database
        .execute("select leasehold.join_member('r', 'bob', p_lease_ms => 300000)")
        .await;
    proxy.open();
    assert_eq!(events.expect("count").await.data["memberCount"], 2);
}

#[tokio::test]
async fn a_count_reader_who_is_put_out_is_told_and_its_stream_ends() {
    let database = Database::new().await;
    let app = guarded(&database, &["--poll-ms", "100"]).await;
    let alice = Caller::new(&app, "alice", Scope::Observer);
    let bob = Caller::new(&app, "bob", Scope::Observer);
    let path = "/rooms/r/events?view=count";
    let (mut hers, mut his) = (
        Events::of(alice.open(path).await),
        Events::of(bob.open(path).await),
    );
    hers.expect("count").await;
    his.expect("count").await;
    let server = Caller::server(&app);
    server
        .delete("/rooms/r/participants/alice?blockForMs=60000")
        .await;
    let removed = json!({ "roomId": "r", "userId": "alice", "code": "blocked" });
    assert_eq!(hers.until("removed").await.data, removed);
    assert!(hers.try_next().await.is_none());
    assert_eq!(alice.open(path).await.status(), 403);
    server
        .post("/rooms/r/join", json!({ "userId": "carol" }))
        .await;
    assert_eq!(his.expect("count").await.data["memberCount"], 1);
}
