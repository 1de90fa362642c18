//! A history that was put back to an older state, with the files of a real server.

use std::path::Path;
use std::process::Command;

use private_postgres::{Cluster, ClusterOptions};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, raw_sql};
use tempfile::TempDir;

use super::read;
use crate::support::{App, run};

fn start(directory: &Path) -> Cluster {
    Cluster::start(ClusterOptions::durable(directory.join("data"))).unwrap()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(copied.success());
}

async fn joins(cluster: &Cluster, users: i64) {
    let mut connection = PgConnection::connect(&cluster.url("postgres"))
        .await
        .unwrap();
    let sql = format!(
        "select leasehold.join_member('r', 'u' || n, p_lease_ms => 300000) from generate_series(1, {users}) n"
    );
    raw_sql(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

async fn status(app: &App, after: &str) -> (u16, Value) {
    let response = app.get(&format!("/changes?after={after}")).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_position_in_what_was_rolled_back_is_answered_410_however_much_followed() {
    let directory = TempDir::with_prefix("leasehold-rolled-back").unwrap();
    Command::new("chmod")
        .arg("a+rx")
        .arg(directory.path())
        .status()
        .unwrap();
    let (data, backup) = (
        directory.path().join("data"),
        directory.path().join("backup"),
    );
    let flags = ["--sweep-interval-ms=0"];
    let cluster = start(directory.path());
    assert!(run(&["migrate"], &cluster.url("postgres")).status.success());
    joins(&cluster, 3).await;
    let app = App::spawn_at(&cluster.url("postgres"), &flags).await;
    let (_, kept) = read(&app, "", 4).await;
    app.stop().await;
    cluster.stop().unwrap();
    copy(&data, &backup);

    let cluster = start(directory.path());
    joins(&cluster, 60).await;
    let app = App::spawn_at(&cluster.url("postgres"), &flags).await;
    let (items, end) = read(&app, "", 60).await;
    let lost = items.last().unwrap()["position"]
        .as_str()
        .unwrap()
        .to_owned();
    app.stop().await;
    cluster.stop().unwrap();

    std::fs::remove_dir_all(&data).unwrap();
    copy(&backup, &data);
    let cluster = start(directory.path());
    let app = App::spawn_at(&cluster.url("postgres"), &flags).await;
    for position in [&lost, &end] {
        assert_eq!(
            status(&app, position).await.0,
            410,
            "before anything follows"
        );
    }
    joins(&cluster, 200).await;
    read(&app, "", 200).await;
    for position in [&lost, &end] {
        let (status, body) = status(&app, position).await;
        assert_eq!(
            (status, body["code"].as_str()),
            (410, Some("position_expired"))
        );
    }
    let (rest, _) = read(&app, &format!("after={kept}"), 1).await;
    assert_eq!(rest[0]["userId"], "u1", "what both have seen stands");
    app.stop().await;
    cluster.stop().unwrap();
}
