//! A lobby: which rooms of a prefix open, close and fill.

use leasehold::access::Scope;
use leasehold::domain::JoinLimits;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::support::{
    App, Caller, Database, Events, Proxy, SECRET, Service, guarded, join, mint, session,
};

/// With polling as good as off: whatever a reader hears in time, something told it.
const NO_POLL: &[&str] = &["--poll-ms", "60s", "--sweep-interval-ms", "0"];

async fn lobby(app: &App, query: &str) -> Events {
    Events::of(app.get(&format!("/lobby/events?{query}")).await)
}

async fn stay(app: &App, room: &str, user: &str) {
    let body = json!({ "userId": user, "leaseMs": 300_000 });
    let joined = app.post(&format!("/rooms/{room}/join"), body).await;
    assert_eq!(joined.status(), 200);
}

fn rooms(snapshot: &Value) -> Vec<&str> {
    let rooms = snapshot["rooms"].as_array().unwrap();
    let ids = rooms.iter().map(|room| room["roomId"].as_str().unwrap());
    ids.collect()
}

fn figures(room: &str, generation: i64, member_count: i64) -> Value {
    json!({ "roomId": room, "generation": generation, "memberCount": member_count })
}

/// Puts so many rooms, each with one member, behind the back of the service.
async fn fill(database: &Database, rooms: i64) {
    let name = "'g-' || lpad(n::text, 4, '0')";
    database
        .execute(format!(
            "select leasehold.join_member({name}, 'alice', p_lease_ms => 300000)
               from generate_series(1, {rooms}) n"
        ))
        .await;
}

#[tokio::test]
async fn a_reader_hears_which_rooms_open_close_and_fill_on_any_instance() {
    let database = Database::new().await;
    let here = App::spawn_with(&database, NO_POLL).await;
    let there = App::spawn_with(&database, NO_POLL).await;
    stay(&here, "game-1", "alice").await;
    let mut readers = [
        lobby(&here, "prefix=game-").await,
        lobby(&there, "prefix=game-").await,
    ];
    for reader in &mut readers {
        let snapshot = reader.expect("snapshot").await.data;
        let expected = json!({ "rooms": [figures("game-1", 1, 1)], "next": null });
        assert_eq!(snapshot, expected);
    }
    // Other prefixes, which would be the next event.
    for room in ["game", "gamer-1", "Game-1", "a"] {
        stay(&here, room, "alice").await;
    }

    stay(&here, "game-2", "alice").await;
    for reader in &mut readers {
        assert_eq!(
            reader.expect("room_opened").await.data,
            figures("game-2", 1, 1)
        );
    }
    stay(&there, "game-2", "bob").await;
    for reader in &mut readers {
        assert_eq!(
            reader.expect("room_changed").await.data,
            figures("game-2", 1, 2)
        );
    }
    assert_eq!(here.leave("game-1", "alice", 1).await.status(), 204);
    let mut ids = Vec::new();
    for reader in &mut readers {
        let closed = reader.expect("room_closed").await;
        assert_eq!(closed.data, figures("game-1", 1, 0));
        ids.push(closed.id);
    }
    assert!(ids[0].is_some());
    assert_eq!(ids[0], ids[1], "one picture has one id on all instances");
    database.verify().await;
}

#[tokio::test]
async fn a_room_that_closes_and_opens_between_two_looks_is_told_as_both() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    let mut events = lobby(&app, "prefix=r").await;
    events.expect("snapshot").await;
    stay(&app, "r", "alice").await;
    events.expect("room_opened").await;
    // In the second before the next look.
    assert_eq!(app.leave("r", "alice", 1).await.status(), 204);
    stay(&app, "r", "bob").await;
    let closed = events.expect("room_closed").await.data;
    assert_eq!(closed, figures("r", 1, 0));
    assert_eq!(events.expect("room_opened").await.data, figures("r", 2, 1));
    database.verify().await;
}

#[tokio::test]
async fn a_reader_hears_nothing_of_what_is_no_change_and_once_a_second_at_most() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms", "100"]).await;
    stay(&app, "r", "user-0").await;
    let mut events = lobby(&app, "prefix=").await;
    events.expect("snapshot").await;
    // Another session, a cursor, a lock, and many looks.
    stay(&app, "r", "user-0").await;
    let cursor = json!({ "userId": "user-0", "epoch": 2, "cursor": { "line": 1 } });
    assert_eq!(app.post("/rooms/r/cursor", cursor).await.status(), 204);
    let locked = app.client.put(format!("{}/rooms/r/lock", app.url));
    assert_eq!(locked.send().await.unwrap().status(), 204);
    assert_eq!(app.delete("/rooms/r/lock").await.status(), 204);
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;

    let began = Instant::now();
    let mut heard = 0;
    for n in 1..40 {
        stay(&app, "r", &format!("user-{n}")).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    loop {
        let changed = events.expect("room_changed").await.data;
        heard += 1;
        assert!(changed["memberCount"].as_i64().unwrap() > 1, "{changed}");
        if changed["memberCount"] == 40 {
            break;
        }
    }
    let limit = 2 + began.elapsed().as_secs();
    assert!(heard <= limit, "{heard} events, more than {limit}");
    database.verify().await;
}

#[tokio::test]
async fn leases_that_end_close_a_room_without_a_sweep() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--sweep-interval-ms", "0"]).await;
    let mut events = lobby(&app, "prefix=r").await;
    events.expect("snapshot").await;
    let body = json!({ "userId": "alice", "leaseMs": 1_000 });
    assert_eq!(app.post("/rooms/r/join", body).await.status(), 200);
    events.expect("room_opened").await;
    assert_eq!(events.expect("room_closed").await.data, figures("r", 1, 0));
    database.verify().await;
}

#[tokio::test]
async fn the_first_thousand_are_followed_and_another_stream_follows_those_after() {
    let database = Database::new().await;
    fill(&database, 1_002).await;
    let app = App::spawn_with(&database, NO_POLL).await;
    let mut first = lobby(&app, "prefix=g-").await;
    let snapshot = first.expect("snapshot").await.data;
    assert_eq!(rooms(&snapshot).len(), 1_000);
    let page: Value = app
        .get("/rooms?prefix=g-&limit=1000")
        .await
        .json()
        .await
        .unwrap();
    assert!(page["next"].is_string());
    assert_eq!(snapshot["next"], page["next"]);
    let next = page["next"].as_str().unwrap();
    let mut second = lobby(&app, &format!("prefix=g-&after={next}")).await;
    let rest = second.expect("snapshot").await.data;
    assert_eq!(rooms(&rest), ["g-1001", "g-1002"]);
    assert_eq!(rest["next"], Value::Null);

    stay(&app, "g-1003", "alice").await;
    let opened = second.expect("room_opened").await.data;
    assert_eq!(opened["roomId"], "g-1003");
    // One that nobody of the first stream followed has changed nothing there.
    stay(&app, "g-0500", "bob").await;
    let changed = first.expect("room_changed").await.data;
    assert_eq!(changed, figures("g-0500", 1, 2));
    // Which are followed changes, and what is pushed out has not closed.
    stay(&app, "g-0000", "alice").await;
    let moved = first.expect("snapshot").await.data;
    let moved = rooms(&moved);
    assert_eq!((moved[0], moved[999]), ("g-0000", "g-0999"));
    database.verify().await;
}

#[tokio::test]
async fn a_token_follows_only_within_its_prefixes() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let alice = Caller::new(&app, "alice", Scope::Observer);
    for (query, status) in [
        ("prefix=r", 200),
        ("prefix=room", 200),
        ("prefix=", 403),
        ("", 403),
        ("prefix=s", 403),
    ] {
        let answer = alice.open(&format!("/lobby/events?{query}")).await;
        assert_eq!(answer.status(), status, "{query}");
    }
    let server = Caller::server(&app);
    for (query, status) in [
        ("", 200),
        ("prefix=%00", 400),
        ("prefix=a%0Ab", 400),
        ("after=x", 400),
    ] {
        let answer = server.open(&format!("/lobby/events?{query}")).await;
        assert_eq!(answer.status(), status, "{query}");
    }
    database.verify().await;
}

#[tokio::test]
async fn a_lobby_takes_the_seats_of_a_room_and_gives_them_back() {
    let database = Database::new().await;
    let flags = ["--max-subscribers-per-room", "1", "--max-subscribers", "2"];
    let app = App::spawn_with(&database, &flags).await;
    let first = lobby(&app, "prefix=a").await;
    let full: Value = app
        .get("/lobby/events?prefix=a")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(full["code"], "too_many_subscribers");
    assert!(
        full["error"].as_str().unwrap().contains("the lobby has 1"),
        "{full}"
    );
    // A room of that name is something else.
    let _second = app.events("a").await;
    let full = app.get("/lobby/events?prefix=b").await;
    assert_eq!(full.status(), 503);
    drop(first);
    app.until_subscribers(1).await;
    let _third = lobby(&app, "prefix=b").await;
    database.verify().await;
}

#[tokio::test]
async fn a_reader_hears_once_that_the_database_is_away_and_then_what_is_there() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = ["--poll-ms", "200", "--timeout-ms", "500"];
    let app = App::spawn_at(&proxy.url, &flags).await;
    stay(&app, "r-1", "alice").await;
    let mut events = lobby(&app, "prefix=r-").await;
    events.expect("snapshot").await;
    proxy.silence();
    let stale = events.expect("stale").await.data;
    assert_eq!(stale, json!({ "prefix": "r-" }));
    assert_eq!(app.get("/lobby/events?prefix=s").await.status(), 503);
    let limits = JoinLimits::default();
    let bob = [join("r-2", "bob")];
    database.store.join(&bob, limits).await.unwrap();
    database
        .store
        .leave(&[session("r-1", "alice", "", 1)])
        .await
        .unwrap();
    proxy.open();
    let snapshot = events.expect("snapshot").await.data;
    assert_eq!(rooms(&snapshot), ["r-2"]);
    database.verify().await;
}

#[tokio::test]
async fn a_stream_ends_with_the_credential_that_opened_it() {
    let database = Database::new().await;
    let app = guarded(&database, &["--jwt-leeway", "0"]).await;
    let rooms = Some(vec!["r*".to_owned()]);
    let token = mint(
        &SECRET.into(),
        "alice".to_owned(),
        rooms,
        Scope::Observer,
        2,
    )
    .unwrap();
    let alice = Caller::with(&app, token);
    let mut events = Events::of(alice.open("/lobby/events?prefix=r").await);
    events.expect("snapshot").await;
    assert!(events.try_next().await.is_none());
}

#[tokio::test]
async fn a_stream_ends_when_the_instance_drains() {
    let database = Database::new().await;
    let mut service = Service::serve(&database.url(), &["--drain", "1s"]).await;
    let url = format!("{}/lobby/events", service.url);
    let mut events = Events::of(reqwest::get(url).await.unwrap());
    events.expect("snapshot").await;
    service.signal(Signal::TERM);
    assert!(events.try_next().await.is_none());
    assert!(service.ended().await.success());
}
