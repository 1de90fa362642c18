//! The service runs fully as a role with the documented grants, and that role can do nothing beside.

use std::time::Duration;

use leasehold::store::{DatabaseSettings, Store};
use serde_json::json;

use super::support::{App, Database, purge_settled};

const GRANTS: &str = include_str!("../../docs/grants.sql");

#[tokio::test]
async fn the_service_runs_fully_with_the_documented_grants() {
    let database = Database::new().await;
    let role = format!("leasehold_role_{}", std::process::id());
    database.execute(format!("create role {role} login")).await;
    database
        .execute(GRANTS.replace("leasehold_service", &role))
        .await;
    let mut url = reqwest::Url::parse(&database.url()).unwrap();
    url.set_username(&role).unwrap();

    let app = App::spawn_at(url.as_str(), &[]).await;
    app.join("r", "alice").await;
    app.join("r", "alice").await;
    let session = json!({ "userId": "alice", "epoch": 2, "cursor": { "x": 1 }, "leaseMs": 20_000 });
    for action in ["heartbeat", "cursor", "disconnect"] {
        let done = app
            .post(&format!("/rooms/r/{action}"), session.clone())
            .await;
        assert_eq!(done.status(), 204, "{action}");
    }
    let listed = app
        .post(
            "/rooms/r/join?include=participants",
            json!({ "userId": "bob" }),
        )
        .await;
    assert_eq!(listed.status(), 200);
    for path in [
        "/rooms",
        "/rooms/r",
        "/rooms/r/participants",
        "/rooms/r/generations",
        "/rooms/r/generations/1/sessions",
        "/users/alice/rooms",
        "/users/alice/sessions",
        "/readyz",
        "/metrics",
    ] {
        assert_eq!(app.get(path).await.status(), 200, "{path}");
    }
    let removed = app.delete("/rooms/r/participants/bob?blockForMs=1").await;
    assert_eq!(removed.status(), 204);
    assert_eq!(app.leave("r", "alice", 2).await.status(), 204);
    app.join("r", "alice").await;
    assert_eq!(app.delete("/rooms/r").await.status(), 204);
    assert_eq!(app.delete("/users/bob/history").await.status(), 200);
    assert_eq!(app.get("/changes").await.status(), 200);
    app.stop().await;

    let store = Store::new(&DatabaseSettings {
        url: url.to_string().into(),
        connections: 1,
        held_connections: 1,
        timeout: Duration::from_secs(20),
        serves: false,
    })
    .unwrap();
    assert!(store.sweep(10).await.unwrap().ran);
    database
        .execute(
            "update leasehold.membership_events set recorded_at = recorded_at - interval '1 day'",
        )
        .await;
    let purged = purge_settled(&store, Duration::from_secs(1)).await;
    assert_eq!(purged.generations_purged, 2);
    assert_eq!(store.verify().await.unwrap(), []);
    store.close().await;

    let pool = sqlx::PgPool::connect(url.as_str()).await.unwrap();
    for forbidden in [
        "update leasehold.membership_events set epoch = 1",
        "create table leasehold.mine ()",
        "drop table leasehold.rooms",
        "truncate leasehold.members",
    ] {
        let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(forbidden.to_owned()))
            .execute(&pool)
            .await
            .unwrap_err();
        let code = refused.as_database_error().unwrap().code();
        assert_eq!(code.as_deref(), Some("42501"), "{forbidden}");
    }
    pool.close().await;
    database
        .execute(format!("drop owned by {role}; drop role {role}"))
        .await;
    database.verify().await;
}
