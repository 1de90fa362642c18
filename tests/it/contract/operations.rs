//! What those who run the service ask it.

use serde_json::{Value, json};
use sqlx::raw_sql;

use super::{accepted, refused};
use crate::support::{App, Database};

#[tokio::test]
async fn the_service_says_that_it_lives() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let response = app.get("/healthz").await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.json::<Value>().await.unwrap(),
        json!({ "status": "ok" })
    );
}

#[tokio::test]
async fn the_service_is_ready_while_a_sweep_is_recent() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    database.store.sweep(1000).await.unwrap();
    let response = app.get("/readyz").await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.json::<Value>().await.unwrap(),
        json!({ "status": "ready" })
    );
}

#[tokio::test]
async fn the_service_is_unready_where_sweeps_have_stopped() {
    let database = Database::new().await;
    // So that the only sweep of this instance is the one at its start.
    let app = App::spawn_with(&database, &["--sweep-interval-ms=60000"]).await;
    app.until_ready().await;
    let allowed = 6 * 60;
    for (age, is_ready) in [(allowed - 5, true), (allowed + 5, false)] {
        database
            .execute(format!(
                "update leasehold.sweeps set last_swept_at = clock_timestamp() - {age} * interval '1 second'"
            ))
            .await;
        let response = app.get("/readyz").await;
        if is_ready {
            assert_eq!(response.status(), 200);
        } else {
            assert!(response.headers().contains_key("retry-after"));
            let sentence = refused(response, 503, "unavailable").await;
            assert_eq!(sentence, format!("the last sweep finished {age} s ago"));
        }
    }
    database
        .execute("update leasehold.sweeps set last_swept_at = null")
        .await;
    let sentence = refused(app.get("/readyz").await, 503, "unavailable").await;
    assert_eq!(sentence, "no sweep has finished yet");
    assert_eq!(app.get("/healthz").await.status(), 200);
}

/// An instance that swept at its start and not since, and the last sweep of any that finished long ago.
async fn unswept(database: &Database) -> App {
    let app = App::spawn_with(database, &["--sweep-interval-ms=60000"]).await;
    app.until_ready().await;
    let long_ago =
        "update leasehold.sweeps set last_swept_at = clock_timestamp() - interval '1 hour'";
    database.execute(long_ago).await;
    assert_eq!(app.get("/readyz").await.status(), 503);
    app
}

#[tokio::test]
async fn a_sweep_that_has_much_to_do_makes_nobody_unready() {
    let database = Database::new().await;
    let app = unswept(&database).await;
    for n in 0..3 {
        app.join("r", &format!("user-{n}")).await;
    }
    database.silence(60_000).await;
    let batch = database.store.sweep(1).await.unwrap();
    assert!(batch.ran && !batch.finished);
    assert_eq!(
        app.get("/readyz").await.status(),
        200,
        "batch follows batch"
    );
    let stopped =
        "update leasehold.sweeps set unfinished_at = clock_timestamp() - interval '365 seconds'";
    database.execute(stopped).await;
    let sentence = refused(app.get("/readyz").await, 503, "unavailable").await;
    assert!(
        sentence.starts_with("the last sweep finished 36"),
        "{sentence}"
    );
    while !database.store.sweep(1).await.unwrap().finished {}
    assert_eq!(app.get("/readyz").await.status(), 200);
    database.verify().await;
}

#[tokio::test]
async fn one_long_transaction_of_a_sweep_makes_nobody_unready_while_it_works() {
    let database = Database::new().await;
    let app = unswept(&database).await;
    let mut sweeping = database.connect().await;
    let begin = raw_sql("begin; select leasehold.sweep()");
    begin.execute(&mut sweeping).await.unwrap();
    // It has swept, and the rest of its transaction is forgotten.
    let sentence = refused(app.get("/readyz").await, 503, "unavailable").await;
    assert!(
        sentence.starts_with("the last sweep finished 36"),
        "{sentence}"
    );

    let mut gate = database.connect().await;
    let shut = raw_sql("select pg_advisory_lock(7)");
    shut.execute(&mut gate).await.unwrap();
    let working = tokio::spawn(async move {
        let work = raw_sql("select pg_advisory_xact_lock(7); commit");
        work.execute(&mut sweeping).await.unwrap();
    });
    database.until_waiting_for_locks(1).await;
    assert_eq!(app.get("/readyz").await.status(), 200, "it works");
    let open = raw_sql("select pg_advisory_unlock(7)");
    open.execute(&mut gate).await.unwrap();
    working.await.unwrap();
    assert_eq!(app.get("/readyz").await.status(), 200, "it has finished");
}

#[tokio::test]
async fn an_instance_that_leaves_the_sweep_to_others_does_not_judge_it() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--sweep-interval-ms=0"]).await;
    assert_eq!(app.get("/readyz").await.status(), 200);
}

#[tokio::test]
async fn the_service_is_unready_on_a_schema_that_it_does_not_know() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.until_ready().await;
    database
        .execute(
            "insert into leasehold._sqlx_migrations
                    (version, description, success, checksum, execution_time)
             values (9999, 'from the future', true, '', 0)",
        )
        .await;
    let sentence = refused(app.get("/readyz").await, 503, "unavailable").await;
    assert!(sentence.contains("9999"), "{sentence}");
    database
        .execute("delete from leasehold._sqlx_migrations where version = 9999")
        .await;
    assert_eq!(app.get("/readyz").await.status(), 200);
    database.execute("drop schema leasehold cascade").await;
    refused(app.get("/readyz").await, 503, "unavailable").await;
}

#[tokio::test]
async fn the_metrics_have_these_names() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.until_ready().await;
    app.join("r", "alice").await;
    app.join("r", "bob").await;
    app.join("other", "alice").await;
    accepted(app.heartbeat("r", "alice", 1).await).await;
    app.heartbeat("r", "alice", 9).await;
    database.silence(5_000).await;

    let response = app.get("/metrics").await;
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].clone();
    assert!(kind.to_str().unwrap().starts_with("text/plain"), "{kind:?}");
    let text = response.text().await.unwrap();

    let value = |name: &str| -> f64 {
        let line = text.lines().find(|l| l.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| unreachable!("no {name} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let is = |name: &str, expected: f64| {
        assert!(
            (value(name) - expected).abs() < 1e-9,
            "{name}: {}",
            value(name)
        );
    };
    is("leasehold_active_rooms", 2.0);
    is("leasehold_active_members", 3.0);
    is("leasehold_members_expired_total", 0.0);
    is(
        "leasehold_stale_sessions_total{code=\"unknown_session\"}",
        1.0,
    );
    for code in ["superseded", "expired", "left", "removed", "room_closed"] {
        is(
            &format!("leasehold_stale_sessions_total{{code=\"{code}\"}}"),
            0.0,
        );
    }
    is("leasehold_heartbeat_duration_seconds_count", 2.0);
    assert!(value("leasehold_sweep_duration_seconds_count") >= 1.0);
    assert!(value("leasehold_oldest_lease_age_seconds") >= 5.0);
    for line in text
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
    {
        assert!(line.starts_with("leasehold_"), "{line}");
    }
}

#[tokio::test]
async fn every_answer_has_a_request_id_the_callers_own_where_it_is_plain() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let first = app.get("/healthz").await.headers()["x-request-id"].clone();
    let second = app.get("/nothing").await.headers()["x-request-id"].clone();
    assert_ne!(first, second);

    let long = "x".repeat(65);
    for (sent, is_kept) in [
        ("abc-123", true),
        (&long[..64], true),
        (long.as_str(), false),
        ("with space", false),
        ("", false),
    ] {
        let response = app
            .send(
                reqwest::Method::GET,
                "/healthz",
                &[("x-request-id", sent)],
                "",
            )
            .await;
        let found = response.headers()["x-request-id"].to_str().unwrap();
        assert_eq!(found == sent, is_kept, "{sent:?} became {found:?}");
        assert!(!found.is_empty());
    }
}
