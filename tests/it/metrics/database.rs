//! Connections, what goes wrong on them, and rows that others hold.

use std::time::Duration;

use serde_json::json;
use sqlx::raw_sql;
use tokio::task::JoinSet;

use super::{Figures, is, until};
use crate::support::{App, Database, Proxy};

#[tokio::test]
async fn connections_are_shown_in_use_idle_and_waited_for() {
    let database = Database::new().await;
    let flags = [
        "--db-connections=2",
        "--timeout-ms=10s",
        "--coalesce-lanes=4",
        "--coalesce-max-batch=1",
    ];
    let app = App::spawn_with(&database, &flags).await;
    app.join("r", "alice").await;
    let of = |figures: &Figures, state| {
        figures.sum(
            "leasehold_database_connections",
            &[("pool", "durable"), ("state", state)],
        )
    };
    let figures = until(&app, "idle", |f| is(of(f, "in_use"), 0)).await;
    assert!(of(&figures, "idle") >= 1.0);
    let limit = figures.sum(
        "leasehold_database_connections_limit",
        &[("pool", "durable")],
    );
    assert!(is(limit, 2));

    let mut holder = database.connect().await;
    raw_sql("begin; lock table leasehold.members")
        .execute(&mut holder)
        .await
        .unwrap();
    let users = 0..6;
    let joins = users.map(|n| app.post("/rooms/r/join", json!({ "userId": format!("user-{n}") })));
    let joining = futures_util::future::join_all(joins);
    let watching = async {
        until(&app, "busy", |figures| {
            let waiters = [("pool", "durable")];
            is(of(figures, "in_use"), 2)
                && is(of(figures, "idle"), 0)
                && figures.sum("leasehold_database_connection_waiters", &waiters) >= 1.0
        })
        .await;
        raw_sql("rollback").execute(&mut holder).await.unwrap();
    };
    tokio::join!(joining, watching);
    let waiters = [("pool", "durable")];
    until(&app, "idle again", |figures| {
        is(of(figures, "in_use"), 0)
            && is(
                figures.sum("leasehold_database_connection_waiters", &waiters),
                0,
            )
    })
    .await;
}

/// What Postgres says, and what it is counted as.
const FAILURES: &[(&str, &str)] = &[
    ("57014", "timeout"),
    ("08006", "connection"),
    ("57P01", "connection"),
    ("40001", "serialization"),
    ("40P01", "serialization"),
    ("25006", "read_only"),
    ("53100", "resources"),
    ("22001", "rejected"),
    ("42P01", "schema"),
    ("XX000", "other"),
    // The last: the service goes on trying for as long as somebody might wait.
    ("55P03", "lock"),
];

#[tokio::test]
async fn what_goes_wrong_with_the_database_is_counted_by_kind() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--timeout-ms=2s"]).await;
    app.join("r", "alice").await;
    for (code, kind) in FAILURES {
        let of =
            |figures: &Figures| figures.sum("leasehold_database_errors_total", &[("kind", kind)]);
        let all = |figures: &Figures| figures.sum("leasehold_database_errors_total", &[]);
        let before = Figures::of(&app).await;
        database
            .execute(format!(
                "create or replace function leasehold.refuse() returns trigger language plpgsql
                     as $$ begin raise exception 'on purpose' using errcode = '{code}'; end $$;
                 create or replace trigger refuse before insert on leasehold.membership_events
                     execute function leasehold.refuse()"
            ))
            .await;
        app.post("/rooms/r/join", json!({ "userId": "bob" })).await;
        let after = Figures::of(&app).await;
        assert!(of(&after) > of(&before), "{code} is no {kind}");
        let others = all(&after) - of(&after) - (all(&before) - of(&before));
        assert!(is(others, 0), "{code} is counted as something else");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_silent_or_away_is_counted_too() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = ["--timeout-ms=300", "--sweep-interval-ms=0", "--hints=off"];
    let app = App::spawn_at(&proxy.url, &flags).await;
    app.join("r", "alice").await;
    let of =
        |figures: &Figures, kind| figures.sum("leasehold_database_errors_total", &[("kind", kind)]);
    let before = Figures::of(&app).await;
    proxy.silence();
    let refused = app.post("/rooms/r/join", json!({ "userId": "bob" })).await;
    assert_eq!(refused.status(), 503);
    until(&app, "late", |figures| {
        of(figures, "timeout") > of(&before, "timeout")
    })
    .await;
}

#[tokio::test]
async fn rows_that_are_held_and_those_who_wait_for_them_are_shown() {
    let database = Database::new().await;
    // As many places as requests that may be queued.
    let flags = ["--coalesce-queue=8", "--timeout-ms=10s"];
    let app = App::spawn_with(&database, &flags).await;
    app.join("held", "alice").await;
    let figures = Figures::of(&app).await;
    for name in [
        "leasehold_held_rows",
        "leasehold_held_requests",
        "leasehold_held_refused_total",
    ] {
        assert!(is(figures.sum(name, &[]), 0), "{name}");
    }
    let mut holder = database.connect().await;
    raw_sql("begin; select from leasehold.rooms where room_id = 'held' for update")
        .execute(&mut holder)
        .await
        .unwrap();
    let mut joins = JoinSet::new();
    for n in 0..12 {
        let request = app.client.post(format!("{}/rooms/held/join", app.url));
        let request = request.json(&json!({ "userId": format!("user-{n}") }));
        joins.spawn(async move { request.send().await.unwrap().status().as_u16() });
        // So that they do not meet in the queue, which is as short.
        until(&app, "gone from the queue", |figures| {
            let held = figures.sum("leasehold_held_requests", &[]);
            let refused = figures.sum("leasehold_held_refused_total", &[]);
            is(held + refused, n + 1)
        })
        .await;
    }
    let figures = Figures::of(&app).await;
    assert!(is(figures.sum("leasehold_held_rows", &[]), 1));
    assert!(is(figures.sum("leasehold_held_requests", &[]), 8));
    assert!(is(figures.sum("leasehold_held_refused_total", &[]), 4));
    raw_sql("rollback").execute(&mut holder).await.unwrap();
    let mut statuses = joins.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 8].as_slice(), &[503; 4]].concat());
    until(&app, "free", |figures| {
        is(figures.sum("leasehold_held_rows", &[]), 0)
    })
    .await;
    tokio::time::timeout(Duration::from_secs(20), app.stop())
        .await
        .unwrap();
    database.verify().await;
}
