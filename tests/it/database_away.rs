//! Streams and sockets while the database is away: their readers are told, and told again when it is back.

use std::time::Duration;

use futures_util::future::join_all;
use leasehold::domain::JoinLimits;
use private_postgres::{Cluster, ClusterOptions};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::support::{App, Database, Events, Proxy, Socket, join, run, session};

const POLL: Duration = Duration::from_millis(400);
const TIMEOUT: Duration = Duration::from_millis(500);

const FLAGS: &[&str] = &[
    "--poll-ms=400",
    "--timeout-ms=500",
    "--lease-ms=300000",
    "--sweep-interval-ms=0",
];

/// What a busy machine may take above what is documented.
const SLACK: Duration = Duration::from_secs(3);

/// Two streams and a socket of a room, which have read their snapshot.
struct Readers {
    room: &'static str,
    streams: Vec<Events>,
    socket: Socket,
    /// Of the snapshot.
    as_of: i64,
}

impl Readers {
    async fn of(app: &App, room: &'static str) -> Self {
        let mut streams = vec![app.events(room).await, app.events(room).await];
        let mut as_of = 0;
        for stream in &mut streams {
            let snapshot = stream.expect("snapshot").await.data;
            as_of = snapshot["asOfMs"].as_i64().unwrap();
        }
        let mut socket = app.socket(room).await;
        socket.until("snapshot").await;
        Self {
            room,
            streams,
            socket,
            as_of,
        }
    }

    /// The next event of each, which must be of this kind.
    async fn expect(&mut self, kind: &str) -> Vec<Value> {
        let mut told = Vec::new();
        for stream in &mut self.streams {
            told.push(stream.expect(kind).await.data);
        }
        let message = self.socket.try_next().await.unwrap();
        assert_eq!(message["type"], kind, "{message}");
        told.push(message);
        told
    }

    async fn expect_stale(&mut self) {
        for stale in self.expect("stale").await {
            assert_eq!(stale["roomId"], self.room, "{stale}");
            let as_of = stale["asOfMs"].as_i64().unwrap();
            assert!(as_of >= self.as_of, "{stale}");
            assert!(stale.get("participants").is_none(), "{stale}");
        }
    }
}

fn users(picture: &Value) -> Vec<&str> {
    let people = picture["participants"].as_array().unwrap().iter();
    people.map(|p| p["userId"].as_str().unwrap()).collect()
}

/// In bounded time, whether or not somebody watches the room.
async fn require_no_new_streams(app: &App, rooms: &[&str]) {
    for room in rooms {
        for kind in ["events", "socket"] {
            let started = Instant::now();
            let request = app.client.get(format!("{}/rooms/{room}/{kind}", app.url));
            // The headers of a handshake, which is refused before it begins.
            let request = request.header("connection", "upgrade");
            let request = request.header("upgrade", "websocket");
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 503, "{room} {kind}");
            assert!(response.headers().contains_key("retry-after"));
            assert!(started.elapsed() < TIMEOUT + SLACK, "{room} {kind}");
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["code"], "unavailable", "{body}");
        }
    }
}

#[tokio::test]
async fn readers_are_told_once_that_the_database_is_silent_and_who_is_there_when_it_is_back() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let app = App::spawn_at(&proxy.url, FLAGS).await;
    for room in ["a", "b"] {
        app.join(room, "alice").await;
    }
    let mut readers = [Readers::of(&app, "a").await, Readers::of(&app, "b").await];

    proxy.silence();
    let started = Instant::now();
    join_all(readers.iter_mut().map(Readers::expect_stale)).await;
    let told_after = started.elapsed();
    assert!(told_after < 2 * POLL + TIMEOUT + SLACK, "{told_after:?}");
    require_no_new_streams(&app, &["a", "unwatched"]).await;
    // Behind the back of the service, while reads go on to fail.
    let limits = JoinLimits::default();
    let bob = [join("a", "bob"), join("b", "bob")];
    database.store.join(&bob, limits).await.unwrap();
    let alice = [session("a", "alice", "", 1)];
    database.store.leave(&alice).await.unwrap();
    sleep(3 * (POLL + TIMEOUT)).await;
    proxy.open();

    let expected: [&[&str]; 2] = [&["bob"], &["alice", "bob"]];
    for (readers, expected) in readers.iter_mut().zip(expected) {
        for snapshot in readers.expect("snapshot").await {
            assert_eq!(users(&snapshot), expected, "{snapshot}");
        }
    }
    for room in ["a", "b"] {
        app.join(room, "carol").await;
    }
    for readers in &mut readers {
        for joined in readers.expect("joined").await {
            assert_eq!(joined["participant"]["userId"], "carol");
        }
    }
    let mut anew = app.events("unwatched").await;
    assert!(users(&anew.expect("snapshot").await.data).is_empty());
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_are_told_once_that_the_database_is_down_and_who_is_there_when_it_is_back() {
    let options = ClusterOptions::throw_away("away").setting("synchronous_commit", "on");
    let mut cluster = Cluster::start(options).unwrap();
    let url = cluster.url("postgres");
    assert!(run(&["migrate"], &url).status.success());
    let app = App::spawn_at(&url, FLAGS).await;
    for room in ["a", "b"] {
        app.join(room, "alice").await;
    }
    let mut readers = [Readers::of(&app, "a").await, Readers::of(&app, "b").await];

    for round in 0..2 {
        cluster.kill();
        join_all(readers.iter_mut().map(Readers::expect_stale)).await;
        require_no_new_streams(&app, &["a", "unwatched"]).await;
        cluster.restart().unwrap();
        let back = Instant::now();
        for readers in &mut readers {
            for snapshot in readers.expect("snapshot").await {
                assert_eq!(users(&snapshot).len(), 1 + round, "{snapshot}");
            }
        }
        assert!(back.elapsed() < Duration::from_secs(2) + SLACK);
        for room in ["a", "b"] {
            app.join(room, &format!("after-{round}")).await;
        }
        for readers in &mut readers {
            readers.expect("joined").await;
        }
    }
    app.stop().await;
    cluster.stop().unwrap();
}

#[tokio::test]
async fn a_reader_that_comes_back_after_the_outage_knows_whether_it_missed_anything() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let app = App::spawn_at(&proxy.url, FLAGS).await;
    app.join("r", "alice").await;
    let mut goes = app.events("r").await;
    let known = goes.expect("snapshot").await.id.unwrap();
    let mut stays = app.events("r").await;
    stays.expect("snapshot").await;

    proxy.silence();
    assert_eq!(goes.expect("stale").await.id.as_ref(), Some(&known));
    drop(goes);
    stays.expect("stale").await;
    proxy.open();

    let snapshot = stays.expect("snapshot").await;
    assert_eq!(snapshot.id.as_ref(), Some(&known), "nothing has changed");
    let mut back = app.events("r").await;
    assert_eq!(back.expect("snapshot").await.id, Some(known));
    database.verify().await;
}

/// A refusal or two is not an outage: nobody hears of it.
#[tokio::test]
async fn a_read_that_fails_once_is_tried_again_before_anybody_is_told() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms=1s", "--lease-ms=300000"]).await;
    app.join("r", "alice").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;
    for user in ["bob", "carol", "dora"] {
        database
            .execute(
                "select pg_terminate_backend(pid) from pg_stat_activity
                  where datname = current_database() and application_name = 'leasehold'",
            )
            .await;
        let join = format!("select leasehold.join_member('r', '{user}', p_lease_ms => 300000)");
        database.execute(join).await;
        let joined = events.expect("joined").await.data;
        assert_eq!(joined["participant"]["userId"], user);
    }
    database.verify().await;
}

#[tokio::test]
async fn a_slow_reader_is_told_when_it_has_caught_up() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let app = App::spawn_at(&proxy.url, FLAGS).await;
    app.join("r", "alice").await;
    let mut slow = app.events("r").await;
    let mut quick = app.events("r").await;
    slow.expect("snapshot").await;
    quick.expect("snapshot").await;
    // What is in the sockets' buffers, the server's and the queue is bounded; this is more.
    let metadata = "x".repeat(4_000);
    let mut is_behind = false;
    for line in 0..5_000 {
        let body = json!({ "userId": "alice", "epoch": 1, "cursor": { "line": line },
                           "metadata": { "padding": metadata } });
        assert_eq!(app.post("/rooms/r/heartbeat", body).await.status(), 204);
        while quick.expect("updated").await.data["participant"]["cursor"]["line"] != line {}
        if line % 50 == 0 {
            let metrics = app.get("/metrics").await.text().await.unwrap();
            is_behind = !metrics.contains("leasehold_subscribers_behind_total 0");
            if is_behind {
                break;
            }
        }
    }
    assert!(is_behind, "the slow reader was not noticed");

    proxy.silence();
    quick.expect("stale").await;
    // It reads what waited for it, and then that all of it is old.
    slow.until("stale").await;
    proxy.open();

    slow.expect("snapshot").await;
    quick.expect("snapshot").await;
    database.verify().await;
}
