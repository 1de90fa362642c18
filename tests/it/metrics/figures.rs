//! What the database says of itself: read seldom, by one at a time, and never waited for.

use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{Connection, Row, raw_sql};
use tokio::time::Instant;

use super::{Figures, is, until};
use crate::support::{App, Database, Proxy};

const AGE: &str = "leasehold_oldest_transaction_age_seconds";
const TRANSACTIONS: &str = "leasehold_oldest_transaction_age_transactions";
const LAG: &str = "leasehold_feed_lag_seconds";

/// Notes each count of the members at its beginning, and has it take so long.
async fn watch_scans(database: &Database, seconds: f64) {
    let sql = format!(
        "alter function leasehold.census rename to census_unwatched;
         create sequence public.scans;
         create function leasehold.census(p_now timestamptz, out active_rooms bigint,
             out active_members bigint, out oldest_lease_age_seconds double precision,
             out paused_seconds double precision, out pulse_age_seconds double precision,
             out outages bigint) language plpgsql
         as $$
         begin
             perform nextval('public.scans');
             perform pg_sleep({seconds});
             select c.* into active_rooms, active_members, oldest_lease_age_seconds, paused_seconds,
                             pulse_age_seconds, outages from leasehold.census_unwatched(p_now) c;
         end $$"
    );
    database.execute(sql).await;
}

async fn scans(database: &Database) -> i64 {
    let counted =
        raw_sql("select case when is_called then last_value else 0 end from public.scans");
    counted.fetch_one(&database.pool).await.unwrap().get(0)
}

#[tokio::test]
async fn the_members_are_counted_once_however_many_ask() {
    let database = Database::new().await;
    watch_scans(&database, 0.1).await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let began = Instant::now();
    for figures in join_all((0..50).map(|_| Figures::of(&app))).await {
        assert!(is(figures.sum("leasehold_active_members", &[]), 1));
    }
    app.join("r", "bob").await;
    for _ in 0..20 {
        Figures::of(&app).await;
    }
    let allowed = 1 + began.elapsed().as_secs().div_euclid(5);
    let scans = scans(&database).await;
    assert!(scans >= 1 && scans as u64 <= allowed, "{scans} scans");
    // They are kept for a while, and not for ever.
    until(&app, "counted anew", |figures| {
        is(figures.sum("leasehold_active_members", &[]), 2)
    })
    .await;
}

#[tokio::test]
async fn a_slow_count_keeps_neither_metrics_nor_joins_waiting_and_is_made_once() {
    let database = Database::new().await;
    watch_scans(&database, 6.0).await;
    // Joins have one connection; the count would take it.
    let app = App::spawn_with(&database, &["--db-connections=1", "--timeout-ms=10s"]).await;
    let began = Instant::now();
    for n in 0..3 {
        let asked = Instant::now();
        Figures::of(&app).await;
        assert!(
            asked.elapsed() < Duration::from_millis(2_500),
            "metrics wait"
        );
        let asked = Instant::now();
        app.join("r", &format!("user-{n}")).await;
        assert!(asked.elapsed() < Duration::from_millis(900), "joins wait");
    }
    if began.elapsed() < Duration::from_secs(9) {
        assert_eq!(scans(&database).await, 1);
    }
    let figures = Figures::of(&app).await;
    assert!(figures.sum("leasehold_figures_age_seconds", &[]) > 2.0);
    // Who asked long ago began it; whoever asks now finds it done.
    until(&app, "done", |figures| {
        figures.sum("leasehold_active_members", &[]) >= 3.0
            && figures.sum("leasehold_figures_age_seconds", &[]) < 2.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_without_a_database_have_all_that_needs_none() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = ["--timeout-ms=30s", "--sweep-interval-ms=0", "--hints=off"];
    let app = App::spawn_at(&proxy.url, &flags).await;
    app.join("r", "alice").await;
    let before = until(&app, "read", |f| {
        is(f.sum("leasehold_active_members", &[]), 1)
    })
    .await;
    let age = |figures: &Figures| figures.sum("leasehold_figures_age_seconds", &[]);
    assert!(age(&before) < 5.0);
    proxy.silence();
    let mut last = before;
    for _ in 0..8 {
        let asked = Instant::now();
        last = Figures::of(&app).await;
        assert!(
            asked.elapsed() < Duration::from_secs(3),
            "{:?}",
            asked.elapsed()
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(age(&last) > 5.0, "{}", age(&last));
    assert!(
        is(last.sum("leasehold_active_members", &[]), 1),
        "as it was"
    );
    let scraped = [("route", "/metrics"), ("status", "200")];
    assert!(last.sum("leasehold_http_requests_total", &scraped) >= 8.0);
}

#[tokio::test]
async fn an_open_transaction_shows_and_so_does_the_feed_that_waits_for_it() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let figures = Figures::of(&app).await;
    assert!(figures.sum(LAG, &[]) < 2.0);

    let mut open = database.connect().await;
    raw_sql("begin; select leasehold.join_member('elsewhere', 'dave')")
        .execute(&mut open)
        .await
        .unwrap();
    for user in ["bob", "carol", "dora"] {
        app.join("r", user).await;
    }
    let session = [("holder", "session")];
    until(&app, "held back", |figures| {
        figures.sum(LAG, &[]) >= 1.0
            && figures.sum(AGE, &session) >= figures.sum(LAG, &[])
            && figures.sum(TRANSACTIONS, &session) >= 3.0
            && is(figures.sum("leasehold_unseen_transactions", &[]), 0)
    })
    .await;
    raw_sql("rollback").execute(&mut open).await.unwrap();
    until(&app, "free", |figures| is(figures.sum(LAG, &[]), 0)).await;
}

#[tokio::test]
async fn a_role_that_may_not_see_when_others_began_says_of_how_many() {
    let database = Database::new().await;
    let role = format!("blind_{}", std::process::id());
    database
        .execute(format!(
            "create role {role} login; grant {role} to current_user"
        ))
        .await;
    let mut open = database.connect().await;
    raw_sql("begin; select leasehold.join_member('elsewhere', 'dave')")
        .execute(&mut open)
        .await
        .unwrap();
    let mut blind = database.connect().await;
    let sql = format!("grant usage on schema leasehold to {role}; set role {role}");
    raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(&mut blind)
        .await
        .unwrap();
    let unseen = "select unseen from leasehold.open_transactions() where holder = 'session'";
    let row = raw_sql(unseen).fetch_one(&mut blind).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 1);
    let row = raw_sql(unseen).fetch_one(&database.pool).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 0);
    open.close().await.unwrap();
    blind.close().await.unwrap();
    database
        .execute(format!("drop owned by {role}; drop role {role}"))
        .await;
}
