//! Subscribers of real processes, while connections, databases and the subscribers themselves break.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::store::{DatabaseSettings, Migrations};
use private_postgres::{Cluster, ClusterOptions};
use reqwest::{Client, Response};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection, raw_sql};
use tokio::task::JoinSet;

use crate::support::{Database, Events, Picture, Service};

async fn post(client: &Client, url: &str, action: &str, body: Value) -> Response {
    let request = client.post(format!("{url}/{action}")).json(&body);
    request.send().await.unwrap()
}

async fn subscribe(url: &str) -> Events {
    Events::of(reqwest::get(format!("{url}/events")).await.unwrap())
}

async fn participants(url: &str) -> Value {
    let response = reqwest::get(format!("{url}/participants")).await.unwrap();
    response.json().await.unwrap()
}

/// Applies events until the picture is whole and the marker has moved to `end`.
async fn read_to_the_end(picture: &mut Picture, events: &mut Events, end: &str) {
    loop {
        let event = events.next().await;
        picture.apply(&event.kind, &event.data);
        let marker = &picture.0.get("marker");
        let is_over = marker.is_some_and(|marker| marker["cursor"]["end"] == end);
        // Only the last event of a batch has an id.
        if is_over && event.id.is_some() {
            return;
        }
    }
}

/// A subscriber that comes and goes: sometimes to another instance, sometimes without having read everything.
async fn comes_and_goes(
    urls: [String; 2],
    seed: u64,
    running: Arc<AtomicBool>,
) -> (Picture, Events) {
    let mut random = Random(seed);
    let mut reconnects = 0;
    loop {
        let mut events = subscribe(&urls[random.below(2)]).await;
        let mut picture = Picture::default();
        let mut patience = 1 + random.below(60);
        while running.load(Ordering::SeqCst) && patience > 0 {
            let mut event = events.next().await;
            picture.apply(&event.kind, &event.data);
            patience -= 1;
            // What is compared in the end must be whole batches.
            while event.id.is_none() {
                event = events.next().await;
                picture.apply(&event.kind, &event.data);
            }
        }
        if !running.load(Ordering::SeqCst) {
            assert!(reconnects > 2, "{reconnects} reconnects");
            return (picture, events);
        }
        reconnects += 1;
    }
}

/// Small numbers that differ from call to call and not from run to run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_long_random_run_every_subscribers_picture_is_the_list() {
    const ROOMS: usize = 3;
    const ACTORS: usize = 8;
    const TURNS: usize = 250;
    let database = Database::new().await;
    let flags = [
        "--min-lease-ms=100",
        "--poll-ms=300",
        "--sweep-interval-ms=200",
        "--lease-ms=60000",
    ];
    let one = Service::serve(&database.url(), &flags).await;
    let two = Service::serve(&database.url(), &flags).await;
    let bases = [one.url.clone(), two.url.clone()];
    let room = |base: &str, n: usize| format!("{base}/rooms/r{n}");
    let client = Client::new();
    for n in 0..ROOMS {
        let marker = json!({ "userId": "marker", "cursor": { "end": "no" } });
        post(&client, &room(&bases[0], n), "join", marker).await;
    }

    let running = Arc::new(AtomicBool::new(true));
    let mut subscribers = JoinSet::new();
    for n in 0..ROOMS {
        for seed in 0..3 {
            let urls = [room(&bases[0], n), room(&bases[1], n)];
            let coming = comes_and_goes(urls, seed * 7 + n as u64, Arc::clone(&running));
            subscribers.spawn(async move { (n, coming.await) });
        }
    }
    let mut actors = JoinSet::new();
    for actor in 0..ACTORS {
        let (bases, client) = (bases.clone(), client.clone());
        actors.spawn(async move {
            let mut random = Random(1_000 + actor as u64);
            let mut epochs = [None::<i64>; ROOMS];
            for turn in 0..TURNS {
                let n = random.below(ROOMS);
                let url = format!("{}/rooms/r{n}", bases[random.below(2)]);
                let user = format!("u{actor}");
                let device = ["phone", "laptop"][random.below(2)];
                match (random.below(6), epochs[n]) {
                    (0, _) | (_, None) => {
                        // Some leases end unrenewed.
                        let lease_ms = [150, 60_000][random.below(2)];
                        let body =
                            json!({ "userId": user, "deviceId": device, "leaseMs": lease_ms });
                        let joined: Value = post(&client, &url, "join", body)
                            .await
                            .json()
                            .await
                            .unwrap();
                        epochs[n] = joined["epoch"].as_i64();
                    }
                    (1, Some(epoch)) => {
                        let body = json!({ "userId": user, "deviceId": device, "epoch": epoch });
                        post(&client, &url, "leave", body).await;
                        epochs[n] = None;
                    }
                    (_, Some(epoch)) => {
                        let body = json!({ "userId": user, "deviceId": device, "epoch": epoch,
                                           "cursor": { "turn": turn } });
                        post(&client, &url, "cursor", body).await;
                    }
                }
            }
        });
    }
    // Whoever listens for hints loses the connection again and again.
    let killing = async {
        loop {
            database
                .execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity
                      where datname = current_database() and query like 'LISTEN%'",
                )
                .await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let acting = async {
        while let Some(done) = actors.join_next().await {
            done.unwrap()
        }
    };
    tokio::select! { () = killing => {}, () = acting => {} }

    // Nothing more changes by itself once the short leases are over.
    for n in 0..ROOMS {
        loop {
            let list = participants(&room(&bases[0], n)).await;
            let as_of = list["asOfMs"].as_i64().unwrap();
            let is_short =
                |session: &Value| session["expiresAtMs"].as_i64().unwrap() - as_of < 5_000;
            let people = list["participants"].as_array().unwrap();
            let devices = people
                .iter()
                .filter_map(|p| p["devices"].as_array())
                .flatten();
            if !people.iter().chain(devices).any(is_short) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    running.store(false, Ordering::SeqCst);
    for n in 0..ROOMS {
        let end = json!({ "userId": "marker", "epoch": 1, "cursor": { "end": "yes" } });
        assert_eq!(
            post(&client, &room(&bases[1], n), "cursor", end)
                .await
                .status(),
            204
        );
    }
    while let Some(done) = subscribers.join_next().await {
        let (n, (mut picture, mut events)) = done.unwrap();
        if picture
            .0
            .get("marker")
            .is_none_or(|marker| marker["cursor"]["end"] != "yes")
        {
            read_to_the_end(&mut picture, &mut events, "yes").await;
        }
        assert_eq!(
            picture,
            Picture::of(&participants(&room(&bases[0], n)).await),
            "room {n}"
        );
    }
    database.verify().await;
    one.stop(Signal::TERM).await;
    two.stop(Signal::TERM).await;
}

async fn private_cluster(purpose: &str, setting: (&str, &str)) -> Cluster {
    let options = ClusterOptions::throw_away(purpose).setting(setting.0, setting.1);
    let cluster = Cluster::start(options).unwrap();
    let settings = DatabaseSettings {
        url: cluster.url("postgres").into(),
        connections: 2,
        held_connections: 2,
        timeout: Duration::from_secs(20),
        serves: false,
    };
    Migrations::apply(&settings).await.unwrap();
    cluster
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_survive_a_restart_and_a_crash_of_postgres() {
    let mut cluster = private_cluster("live", ("synchronous_commit", "on")).await;
    let url = cluster.url("postgres");
    let flags = ["--poll-ms=300", "--lease-ms=300000"];
    let one = Service::serve(&url, &flags).await;
    let two = Service::serve(&url, &flags).await;
    let (here, there) = (
        format!("{}/rooms/r", one.url),
        format!("{}/rooms/r", two.url),
    );
    let client = Client::new();
    post(&client, &here, "join", json!({ "userId": "marker" })).await;
    let mut subscribers = [subscribe(&here).await, subscribe(&there).await];
    let mut pictures = [Picture::default(), Picture::default()];
    for (picture, events) in pictures.iter_mut().zip(&mut subscribers) {
        let snapshot = events.expect("snapshot").await;
        picture.apply("snapshot", &snapshot.data);
    }

    for round in ["restart", "crash"] {
        if round == "crash" {
            cluster.kill();
        }
        cluster.restart().unwrap();
        // A change behind the services' back, while they may still be reconnecting.
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let script = format!(
            "select leasehold.join_member('r', '{round}', p_lease_ms => 300000);
             select leasehold.set_cursor('r', 'marker', 1, '{{\"end\": \"{round}\"}}');"
        );
        raw_sql(AssertSqlSafe(script))
            .execute(&mut connection)
            .await
            .unwrap();
        for (picture, events) in pictures.iter_mut().zip(&mut subscribers) {
            read_to_the_end(picture, events, round).await;
            assert!(picture.0.contains_key(round), "{picture:?}");
        }
        let list = loop {
            let response = reqwest::get(format!("{there}/participants")).await.unwrap();
            if response.status() == 200 {
                break response.json::<Value>().await.unwrap();
            }
        };
        for picture in &pictures {
            assert_eq!(*picture, Picture::of(&list));
        }
    }
    one.stop(Signal::TERM).await;
    two.stop(Signal::TERM).await;
}

/// A commit with NOTIFY holds a lock of the whole database until it is durable.
/// A standby that never answers stretches that moment for ever.
#[tokio::test(flavor = "multi_thread")]
async fn membership_commits_do_not_wait_for_the_lock_of_a_notify() {
    let cluster = private_cluster("notify", ("synchronous_standby_names", "nobody")).await;
    let connect = async || {
        PgConnection::connect(&cluster.url("postgres"))
            .await
            .unwrap()
    };
    let mut watcher = connect().await;
    let mut stuck = connect().await;
    let stuck = tokio::spawn(async move {
        let _ = raw_sql("set synchronous_commit = on; create table written (); notify rooms;")
            .execute(&mut stuck)
            .await;
    });
    loop {
        let holders = sqlx::query_scalar!(
            r#"select count(*) as "n!" from pg_locks
               where locktype = 'object' and classid = 'pg_database'::regclass and objid = 0 and granted"#
        )
        .fetch_one(&mut watcher)
        .await
        .unwrap();
        if holders > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let mut member = connect().await;
    let prepare = "set synchronous_commit = local; set lock_timeout = '2s';";
    raw_sql(prepare).execute(&mut member).await.unwrap();
    for statement in [
        "select leasehold.join_member('r', 'alice')",
        "select leasehold.heartbeat_member('r', 'alice', 1)",
        "select leasehold.set_cursor('r', 'alice', 1, '{}')",
        "select leasehold.disconnect_members('{r}', '{alice}', '{1}', '{\"\"}')",
        "select leasehold.leave_member('r', 'alice', 1)",
        "select leasehold.sweep()",
    ] {
        raw_sql(statement).execute(&mut member).await.unwrap();
    }
    // And the test can fail.
    assert!(raw_sql("notify rooms").execute(&mut member).await.is_err());
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'";
    raw_sql(end).execute(&mut watcher).await.unwrap();
    stuck.await.unwrap();
    for connection in [watcher, member] {
        connection.close().await.unwrap();
    }
}
