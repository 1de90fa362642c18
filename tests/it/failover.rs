//! A streaming standby that takes over, with real servers.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use private_postgres::{Cluster, ClusterOptions};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, raw_sql};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use leasehold::store::{DatabaseSettings, Store};

use super::support::{Load, Service, run, text};

const SLACK: Duration = Duration::from_secs(5);

/// A migrated primary, a standby that streams from it, and a file that says which of them to use.
struct Pair {
    primary: Cluster,
    standby: Cluster,
    address: PathBuf,
    _directory: TempDir,
}

impl Pair {
    async fn start(purpose: &str, synchronous: bool) -> Self {
        let names = if synchronous { "*" } else { "" };
        let options = ClusterOptions::throw_away(purpose)
            .setting("synchronous_commit", "on")
            .setting("synchronous_standby_names", names);
        let mut primary = Cluster::start(options).unwrap();
        // A standby that is away holds no migration up.
        let migrated = run(&["migrate"], &primary.url("postgres"));
        assert!(migrated.status.success(), "{}", text(&migrated.stderr));

        let options = ClusterOptions::throw_away(&format!("{purpose}-standby"));
        let standby = primary.start_standby(options).unwrap();
        let directory = TempDir::new().unwrap();
        let address = directory.path().join("url");
        fs::write(&address, primary.url("postgres")).unwrap();
        let pair = Self {
            primary,
            standby,
            address,
            _directory: directory,
        };
        pair.until_streaming(if synchronous { "sync" } else { "async" })
            .await;
        pair
    }

    async fn until_streaming(&self, state: &str) {
        let sql = format!(
            "select count(*) from pg_stat_replication where state = 'streaming' and sync_state = '{state}'"
        );
        until(&self.primary.url("postgres"), &sql, 1).await;
    }

    /// The primary is gone, as a machine that lost its power, and the standby takes its place.
    async fn fail_over(&mut self) {
        self.primary.kill();
        let url = self.standby.url("postgres");
        let mut connection = PgConnection::connect(&url).await.unwrap();
        raw_sql("select pg_promote()")
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        fs::write(&self.address, url).unwrap();
    }
}

/// Waits until a query answers this number.
async fn until(url: &str, sql: &str, number: i64) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let asked = raw_sql(AssertSqlSafe(sql.to_owned()));
        let answer: i64 = asked.fetch_one(&mut connection).await.unwrap().get(0);
        if answer == number {
            return;
        }
        assert!(Instant::now() < deadline, "{sql}: {answer}");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn require_valid(url: &str) {
    let settings = DatabaseSettings {
        url: url.into(),
        connections: 2,
        held_connections: 1,
        timeout: Duration::from_secs(20),
        serves: false,
    };
    let store = Store::new(&settings).unwrap();
    assert_eq!(store.verify().await.unwrap(), []);
    store.close().await;
}

async fn post(service: &Service, action: &str, body: &Value) -> u16 {
    let address = format!("{}/rooms/r/{action}", service.url);
    let request = service.client.post(address).json(body);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_and_no_epoch_comes_twice_when_a_synchronous_standby_takes_over()
 {
    let mut pair = Pair::start("synchronous", true).await;
    let flags = [
        "--min-lease-ms=100",
        "--lease-ms=1000",
        "--heartbeat-ms=300",
        "--timeout-ms=2s",
    ];
    let services = [
        Service::serve_from_file(&pair.address, &flags).await,
        Service::serve_from_file(&pair.address, &flags).await,
    ];
    let faithful = json!({ "userId": "faithful", "epoch": 1, "leaseMs": 60_000 });
    assert_eq!(post(&services[0], "join", &faithful).await, 200);
    let load = Load::start(&[&services[0].url, &services[1].url], 16);
    load.until_more_joins(60).await;

    pair.fail_over().await;

    let promoted = Instant::now();
    while post(&services[0], "join", &json!({ "userId": "probe" })).await != 200 {
        let took = promoted.elapsed();
        assert!(
            took < Duration::from_secs(4) + SLACK,
            "{took:?}: {}",
            services[0].said()
        );
        sleep(Duration::from_millis(20)).await;
    }
    load.until_more_joins(60).await;
    let all = load.stop().await;

    assert_eq!(
        post(&services[1], "heartbeat", &faithful).await,
        204,
        "nobody flickered"
    );
    for service in services {
        service.stop(Signal::TERM).await;
    }
    let url = pair.standby.url("postgres");
    let pool = PgPool::connect(&url).await.unwrap();
    all.require_recorded(&pool).await;
    pool.close().await;
    require_valid(&url).await;
    pair.standby.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_waits_for_a_synchronous_standby_that_is_away_is_503_and_heartbeats_go_on() {
    let mut pair = Pair::start("away-standby", true).await;
    let flags = ["--timeout-ms=1s", "--lease-ms=300000"];
    let service = Service::serve_from_file(&pair.address, &flags).await;
    let alice = json!({ "userId": "alice", "epoch": 1 });
    assert_eq!(post(&service, "join", &alice).await, 200);

    pair.standby.kill();
    let bob = json!({ "userId": "bob" });
    for _ in 0..3 {
        let started = Instant::now();
        assert_eq!(post(&service, "join", &bob).await, 503);
        assert!(started.elapsed() < Duration::from_millis(1_500) + SLACK);
        assert_eq!(post(&service, "heartbeat", &alice).await, 204);
    }

    pair.standby.restart().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while post(&service, "join", &bob).await != 200 {
        assert!(Instant::now() < deadline, "{}", service.said());
        sleep(Duration::from_millis(50)).await;
    }
    service.stop(Signal::TERM).await;
    require_valid(&pair.primary.url("postgres")).await;
    pair.standby.stop().unwrap();
    pair.primary.stop().unwrap();
}

/// What a failover lost may have been acknowledged; what is there is consistent, and service goes on.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_asynchronous_standby_has_is_consistent_when_it_takes_over() {
    let mut pair = Pair::start("asynchronous", false).await;
    let flags = ["--min-lease-ms=100", "--timeout-ms=2s"];
    let service = Service::serve_from_file(&pair.address, &flags).await;
    let load = Load::start(&[&service.url], 16);
    load.until_more_joins(100).await;

    pair.fail_over().await;

    load.until_more_joins(30).await;
    load.stop().await;
    service.stop(Signal::TERM).await;
    require_valid(&pair.standby.url("postgres")).await;
    pair.standby.stop().unwrap();
}
