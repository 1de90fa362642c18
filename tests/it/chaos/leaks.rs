//! An instance that loses its database, its readers and its sockets again and again holds no more than before.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::support::{Database, Events, Proxy, Service, Socket};
use super::long_run;

const PATIENCE: Duration = Duration::from_secs(20);
/// Until everything that is kept for later use is there.
const WARM_UP: usize = 20;
const CYCLES: usize = 100;
/// What an allocator may hold more at one time than at another.
const SLACK_KIB: u64 = 24 * 1024;

/// Those of both kinds, for held rooms, and two for hints.
const MOST_CONNECTIONS: i64 = 10 + 10 + 4 + 2;

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    threads: u64,
    memory_kib: u64,
    connections: i64,
}

impl Held {
    async fn by(service: &Service, database: &Database) -> Self {
        let directory = format!("/proc/{}", service.pid());
        let status = fs::read_to_string(format!("{directory}/status")).unwrap();
        let number = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            let number = line.split_whitespace().nth(1).unwrap();
            number.parse().unwrap()
        };
        let connections = sqlx::query_scalar!(
            r#"select count(*) as "n!" from pg_stat_activity
                where datname = current_database() and application_name = 'leasehold'"#
        );
        Self {
            descriptors: fs::read_dir(format!("{directory}/fd")).unwrap().count(),
            threads: number("Threads:"),
            memory_kib: number("VmRSS:"),
            connections: connections.fetch_one(&database.pool).await.unwrap(),
        }
    }

    fn exceeds(self, before: Self) -> bool {
        self.descriptors > before.descriptors + 4
            || self.threads > before.threads + 2
            || self.memory_kib > before.memory_kib + SLACK_KIB
            || self.connections > MOST_CONNECTIONS
    }
}

/// Members, readers and a socket come; the network fails; they go; it heals.
async fn cycle(n: usize, service: &Service, proxy: &Proxy) {
    let url = &service.url;
    // A client of its own, so that its connections end with it.
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .build()
        .unwrap();
    let body = json!({ "userId": format!("user-{}", n % 10), "leaseMs": 1_000 });
    let deadline = Instant::now() + PATIENCE;
    loop {
        let join = client
            .post(format!("{url}/rooms/r{}/join", n % 7))
            .json(&body);
        if join.send().await.unwrap().status() == 200 {
            break;
        }
        assert!(Instant::now() < deadline, "no service");
        sleep(Duration::from_millis(20)).await;
    }
    let mut readers = Vec::new();
    for room in 0..3 {
        let stream = client.get(format!("{url}/rooms/r{room}/events"));
        let response = stream.send().await.unwrap();
        if response.status() == 200 {
            readers.push(Events::of(response));
        }
    }
    let socket = Socket::connect(&format!("{url}/rooms/r0/socket")).await;
    match n % 3 {
        0 => proxy.cut(),
        1 => proxy.half_close(),
        _ => proxy.stall(),
    }
    let list = client.get(format!("{url}/rooms/r{}/participants", n % 7));
    let answer = list.send().await.unwrap().status();
    assert!([200, 503].contains(&answer.as_u16()), "{answer}");
    drop((readers, socket));
    proxy.open();
}

/// Cycles until it is enough, and a comparison of what is held before and after.
async fn holds_no_more(enough: impl Fn(usize) -> bool) {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = [
        "--min-lease-ms=100ms",
        "--timeout-ms=300ms",
        "--keep-alive-ms=200ms",
        "--sweep-interval-ms=200ms",
    ];
    let service = Service::serve(&proxy.url, &flags).await;
    for n in 0..WARM_UP {
        cycle(n, &service, &proxy).await;
    }
    let before = Held::by(&service, &database).await;
    let mut cycles = 0;
    while !enough(cycles) {
        cycle(cycles, &service, &proxy).await;
        cycles += 1;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let metrics = reqwest::get(format!("{}/metrics", service.url))
            .await
            .unwrap();
        let metrics = metrics.text().await.unwrap();
        let after = Held::by(&service, &database).await;
        if metrics.contains("\nleasehold_subscribers 0\n") && !after.exceeds(before) {
            eprintln!("after {cycles} cycles {after:?}, before {before:?}");
            break;
        }
        assert!(
            Instant::now() < deadline,
            "after {cycles} cycles {after:?}, before {before:?}: {metrics}"
        );
        sleep(Duration::from_millis(100)).await;
    }
    service.stop(Signal::TERM).await;
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_holds_no_more_after_a_hundred_failures() {
    holds_no_more(|cycles| cycles == CYCLES).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a third of CHAOS_SECONDS; `make chaos`"]
async fn an_instance_holds_no_more_after_a_long_run_of_failures() {
    let end = Instant::now() + long_run();
    holds_no_more(|_| Instant::now() > end).await;
}
