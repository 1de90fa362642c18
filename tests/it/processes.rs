//! Several processes on one database, and processes that die.

use std::time::{Duration, Instant};

use leasehold::store::{DatabaseSettings, Migrations, Store};
use private_postgres::{Cluster, ClusterOptions};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::{PgPool, raw_sql};

use super::support::{Acknowledged, Database, Load, Service};

const SHORT_LEASES: [&str; 3] = [
    "--min-lease-ms=100",
    "--lease-ms=1000",
    "--heartbeat-ms=300",
];

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_one_database_agree_under_load() {
    let database = Database::new().await;
    let flags = [&SHORT_LEASES[..], &["--sweep-interval-ms=50"]].concat();
    let one = Service::serve(&database.url(), &flags).await;
    let two = Service::serve(&database.url(), &flags).await;

    let load = Load::start(&[&one.url, &two.url], 16);
    load.until_more_joins(100).await;
    let all = load.stop().await;

    database.verify().await;
    one.stop(Signal::TERM).await;
    two.stop(Signal::TERM).await;
    all.require_recorded(&database.pool).await;
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_under_load_loses_nothing_acknowledged() {
    let database = Database::new().await;
    let mut all = Acknowledged::default();
    for _ in 0..3 {
        let mut service = Service::serve(&database.url(), &SHORT_LEASES).await;
        let load = Load::start(&[&service.url], 16);
        load.until_more_joins(30).await;
        service.kill();
        all.add(load.stop().await);
        database.verify().await;
    }
    all.require_recorded(&database.pool).await;
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_is_killed_under_load_loses_nothing_acknowledged() {
    let options = ClusterOptions::throw_away("crash").setting("synchronous_commit", "on");
    let mut cluster = Cluster::start(options).unwrap();
    let settings = DatabaseSettings {
        url: cluster.url("postgres").into(),
        connections: 2,
        held_connections: 2,
        timeout: Duration::from_secs(20),
        serves: false,
    };
    Migrations::apply(&settings).await.unwrap();
    let flags = [&SHORT_LEASES[..], &["--timeout-ms=2000"]].concat();
    let service = Service::serve(&cluster.url("postgres"), &flags).await;

    let load = Load::start(&[&service.url], 16);
    for _ in 0..2 {
        load.until_more_joins(30).await;
        cluster.kill();
        tokio::time::sleep(Duration::from_millis(200)).await;
        cluster.restart().unwrap();
        served_again(&service).await;
    }
    load.until_more_joins(30).await;
    let all = load.stop().await;

    service.stop(Signal::TERM).await;
    let pool = PgPool::connect(&cluster.url("postgres")).await.unwrap();
    all.require_recorded(&pool).await;
    pool.close().await;
    let store = Store::new(&settings).unwrap();
    assert_eq!(store.verify().await.unwrap(), []);
    store.close().await;
    cluster.stop().unwrap();
}

/// Waits until a join succeeds, which must be soon.
async fn served_again(service: &Service) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let join = service
            .client
            .post(format!("{}/rooms/probe/join", service.url))
            .json(&json!({ "userId": "probe" }));
        if join.send().await.is_ok_and(|r| r.status() == 200) {
            return;
        }
        assert!(Instant::now() < deadline, "{}", service.said());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_asked_to_stop_answers_what_is_under_way() {
    for signal in [Signal::TERM, Signal::INT] {
        let database = Database::new().await;
        let service = Service::serve(&database.url(), &["--sweep-interval-ms=0"]).await;
        let mut blocker = database.connect().await;
        raw_sql("begin; lock table leasehold.rooms in access exclusive mode")
            .execute(&mut blocker)
            .await
            .unwrap();
        let join = service
            .client
            .post(format!("{}/rooms/r/join", service.url))
            .json(&json!({ "userId": "alice" }))
            .send();
        let under_way = tokio::spawn(join);
        database.until_waiting_for_locks(1).await;

        service.signal(signal);
        let deadline = Instant::now() + Duration::from_secs(5);
        let address = service.url.trim_start_matches("http://").to_owned();
        while tokio::net::TcpStream::connect(&address).await.is_ok() {
            assert!(Instant::now() < deadline, "it still accepts connections");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        raw_sql("commit").execute(&mut blocker).await.unwrap();

        let response = under_way.await.unwrap().unwrap();
        assert_eq!(response.status(), 200);
        let joined: Value = response.json().await.unwrap();
        assert_eq!(joined["epoch"], 1);
        let mut service = service;
        assert!(service.ended().await.success(), "{}", service.said());
        assert_eq!(database.rows().await, (1, 1));
        database.verify().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_postgres_keeps_members_and_history_over_runs() {
    let data_dir = std::env::temp_dir().join(format!("leasehold-it-dev-{}", std::process::id()));
    let first = Service::dev(&data_dir).await;
    let said = first.said();
    let links = said.split_whitespace().filter(|word| word.contains("://"));
    let links: Vec<_> = links
        .map(|link| link.strip_prefix(&first.url).unwrap_or(link))
        .collect();
    let tour = links[3].strip_suffix("/join").unwrap().to_owned();
    let demo = tour.replace("/rooms/", "/demo?room=");
    assert_eq!(&links[..3], ["", &demo, "/console"], "{said}");
    for page in &links[1..3] {
        let page = first.client.get(format!("{}{page}", first.url));
        assert_eq!(page.send().await.unwrap().status(), 200);
    }
    let joining = said.split_whitespace().find(|word| word.ends_with("/join"));
    let address = joining.unwrap().to_owned();
    let path = address.strip_prefix(&first.url).unwrap().to_owned();
    let room = path.strip_suffix("/join").unwrap();
    follow_the_tour(&first, &said).await;
    let body = json!({ "userId": "alice", "leaseMs": 300_000 });
    let joined: Value = first
        .client
        .post(address)
        .json(&body)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(joined["epoch"], 2);
    let server = said.split("psql '").nth(1).unwrap();
    let server = server.split('\'').next().unwrap().to_owned();

    first.stop(Signal::INT).await;
    assert!(
        PgPool::connect(&server).await.is_err(),
        "Postgres is still there"
    );

    let second = Service::dev(&data_dir).await;
    let address = format!("{}{room}/participants", second.url);
    let listed: Value = second
        .client
        .get(address)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(listed["participants"][0]["userId"], "alice");
    assert_eq!(listed["participants"][0]["epoch"], 2);
    assert_eq!(listed["generation"], 2);
    let pool = PgPool::connect(&server).await.unwrap();
    let history = sqlx::query!("select epoch, end_reason from leasehold.sessions order by epoch")
        .fetch_all(&pool)
        .await
        .unwrap();
    pool.close().await;
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].end_reason.as_deref(), Some("left"));
    assert_eq!(history[1].end_reason, None);
    second.stop(Signal::INT).await;
    std::fs::remove_dir_all(data_dir).unwrap();
}

/// Sends what the printed curl lines would send.
async fn follow_the_tour(service: &Service, said: &str) {
    let lines: Vec<&str> = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("curl "))
        .collect();
    assert_eq!(lines.len(), 4, "{said}");
    for line in lines {
        let url = line.split(' ').next().unwrap();
        let request = match line.split_once("-d '") {
            Some((_, body)) => service
                .client
                .post(url)
                .header("content-type", "application/json")
                .body(body.trim_end_matches('\'').to_owned()),
            None => service.client.get(url),
        };
        let response = request.send().await.unwrap();
        assert!(
            response.status().is_success(),
            "{line}: {}",
            response.status()
        );
    }
}
