//! The same with real processes: killed, stopped, cut off from the database.

use std::time::Duration;

use private_postgres::{Cluster, ClusterOptions};
use reqwest::Response;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::super::support::{App, Database, Proxy, Service, run};

/// Leases of three seconds; the pulse notices an outage after as long.
const SHORT: &[&str] = &[
    "--min-lease-ms",
    "1s",
    "--lease-ms",
    "3s",
    "--heartbeat-ms",
    "1s",
];

async fn post(service: &Service, action: &str, body: &Value) -> u16 {
    let request = service
        .client
        .post(format!("{}/rooms/r/{action}", service.url));
    request.json(body).send().await.unwrap().status().as_u16()
}

async fn get(service: &Service, path: &str) -> Response {
    let request = service.client.get(format!("{}{path}", service.url));
    request.send().await.unwrap()
}

#[tokio::test]
async fn members_outlive_the_death_of_every_instance() {
    let database = Database::new().await;
    let mut services = [
        Service::serve(&database.url(), SHORT).await,
        Service::serve(&database.url(), SHORT).await,
    ];
    let alice = json!({ "userId": "alice", "epoch": 1 });
    assert_eq!(post(&services[0], "join", &alice).await, 200);
    // Who stops beating while somebody serves expires.
    let bob = json!({ "userId": "bob", "leaseMs": 1_000 });
    assert_eq!(post(&services[1], "join", &bob).await, 200);
    sleep(Duration::from_millis(1_300)).await;
    assert_eq!(post(&services[0], "heartbeat", &alice).await, 204);
    for service in &mut services {
        service.kill();
    }

    sleep(Duration::from_secs(7)).await;
    let service = Service::serve(&database.url(), SHORT).await;

    let list: Value = get(&service, "/rooms/r/participants")
        .await
        .json()
        .await
        .unwrap();
    let there: Vec<_> = list["participants"].as_array().unwrap().iter().collect();
    assert_eq!(there.len(), 1, "{list}");
    assert_eq!(there[0]["userId"], "alice");
    assert_eq!(list["generation"], 1);
    assert_eq!(post(&service, "heartbeat", &alice).await, 204);
    let metrics = get(&service, "/metrics").await.text().await.unwrap();
    assert!(metrics.contains("leasehold_outages 1"), "{metrics}");
    service.stop(Signal::TERM).await;
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_outlive_an_outage_of_postgres() {
    let options = ClusterOptions::throw_away("outage").setting("synchronous_commit", "on");
    let mut cluster = Cluster::start(options).unwrap();
    let migrated = run(&["migrate"], &cluster.url("postgres"));
    assert!(migrated.status.success());
    let flags = [SHORT, &["--timeout-ms", "500"]].concat();
    let app = App::spawn_at(&cluster.url("postgres"), &flags).await;
    app.join("r", "alice").await;
    sleep(Duration::from_millis(1_100)).await;

    cluster.kill();
    sleep(Duration::from_secs(6)).await;
    cluster.restart().unwrap();

    let deadline = Instant::now() + Duration::from_secs(5);
    while app.heartbeat("r", "alice", 1).await.status() != 204 {
        assert!(Instant::now() < deadline, "alice is gone");
        sleep(Duration::from_millis(50)).await;
    }
    let list = app.participants("r").await;
    assert_eq!(list["generation"], 1, "{list}");
    app.stop().await;
    cluster.stop().unwrap();
}

#[tokio::test]
async fn leases_stand_still_while_no_renewal_gets_through_to_the_database() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = [SHORT, &["--timeout-ms", "300"]].concat();
    let app = App::spawn_at(&proxy.url, &flags).await;
    app.join("r", "alice").await;
    sleep(Duration::from_millis(1_100)).await;

    proxy.silence();
    sleep(Duration::from_secs(7)).await;
    // Nobody else judges otherwise meanwhile.
    let there = sqlx::query_scalar!(r#"select user_id as "user_id!" from leasehold.live_members"#)
        .fetch_all(&database.pool)
        .await
        .unwrap();
    assert_eq!(there, ["alice"]);
    proxy.open();

    let deadline = Instant::now() + Duration::from_secs(5);
    while app.heartbeat("r", "alice", 1).await.status() != 204 {
        assert!(Instant::now() < deadline, "alice is gone");
        sleep(Duration::from_millis(50)).await;
    }
    app.stop().await;
    database.verify().await;
}
