//! `migrate` and `serve` behind a lock that somebody holds: they say whom they wait for, and not for ever.

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgConnection, raw_sql};
use tokio::task::spawn_blocking;

use super::support::{Database, Service, command, run, text};

/// What a busy machine may take above a limit.
const SLACK: Duration = Duration::from_secs(6);

/// A transaction of a program that calls itself `backup` and holds something.
async fn hold(database: &Database, statement: &str) -> PgConnection {
    let mut holder = database.connect().await;
    let sql = format!("set application_name = 'backup'; begin; {statement}");
    raw_sql(AssertSqlSafe(sql))
        .execute(&mut holder)
        .await
        .unwrap();
    holder
}

async fn pid(connection: &mut PgConnection) -> i32 {
    sqlx::query_scalar!(r#"select pg_backend_pid() as "pid!""#)
        .fetch_one(connection)
        .await
        .unwrap()
}

async fn release(mut holder: PgConnection) {
    raw_sql("rollback").execute(&mut holder).await.unwrap();
}

/// Runs the program to its end beside the test.
async fn start(arguments: &'static [&'static str], database: &Database) -> (Output, Duration) {
    let url = database.url();
    let started = Instant::now();
    let output = spawn_blocking(move || run(arguments, &url)).await.unwrap();
    (output, started.elapsed())
}

fn require_refusal(output: &Output, parts: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in parts {
        // Once in the log while it waits, and once as the reason for its end.
        assert!(said.matches(part).count() >= 2, "{part} is not in: {said}");
    }
    assert!(said.contains("gave up waiting for"), "{said}");
}

const MIGRATIONS: &str = "lock table leasehold._sqlx_migrations in access exclusive mode";
const PULSE: &str = "lock table leasehold.pulse in access exclusive mode";
const PULSE_ROW: &str = "select from leasehold.pulse for update";

#[tokio::test(flavor = "multi_thread")]
async fn a_service_names_who_holds_what_it_needs_and_gives_up() {
    for (held, what) in [
        (MIGRATIONS, "table leasehold._sqlx_migrations"),
        (PULSE, "table leasehold.pulse"),
        (PULSE_ROW, "a row"),
    ] {
        let database = Database::new().await;
        let mut holder = hold(&database, held).await;
        let by = format!(
            "process {} (backup of postgres, idle in transaction",
            pid(&mut holder).await
        );

        let arguments = &[
            "serve",
            "--bind=127.0.0.1:0",
            "--timeout-ms=1500",
            "--log=warn",
        ];
        let (output, took) = start(arguments, &database).await;

        require_refusal(&output, &[what, &by]);
        assert!(took < Duration::from_millis(1_500) + SLACK, "{took:?}");
        release(holder).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_starts_when_what_it_needs_is_released_in_time() {
    for held in [MIGRATIONS, PULSE, PULSE_ROW] {
        let database = Database::new().await;
        let holder = hold(&database, held).await;
        let url = database.url();
        let starting =
            Service::serve_logging("warn,leasehold::cli=info", &url, &["--timeout-ms=20s"]);
        let releasing = async {
            database.until_waiting_for_locks(1).await;
            tokio::time::sleep(Duration::from_millis(700)).await;
            release(holder).await;
        };
        let (service, ()) = tokio::join!(starting, releasing);
        assert!(service.said().contains("waiting for"), "{}", service.said());
        service.stop(rustix::process::Signal::TERM).await;
        database.verify().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_names_who_holds_what_it_needs_and_gives_up() {
    let database = Database::new().await;
    let holder = hold(&database, MIGRATIONS).await;
    for arguments in [
        &["migrate", "--lock-wait=1s"][..],
        &["migrate", "--check", "--lock-wait=1s"],
    ] {
        let (output, took) = start(arguments, &database).await;
        require_refusal(
            &output,
            &["table leasehold._sqlx_migrations", "backup of postgres"],
        );
        assert!(took < Duration::from_secs(1) + SLACK, "{took:?}");
    }
    release(holder).await;
    database.verify().await;
}

/// Of several, one waits for whom holds the schema, and the others for it.
#[tokio::test(flavor = "multi_thread")]
async fn migrations_behind_each_other_all_give_up_or_all_succeed() {
    let database = Database::empty().await;
    let holder = hold(&database, "create schema leasehold").await;
    let waiting = || {
        command(&["migrate", "--lock-wait=3s"])
            .env("DATABASE_URL", database.url())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let first = waiting();
    database.until_waiting_for_locks(1).await;
    let second = waiting();
    let started = Instant::now();
    let ended = spawn_blocking(|| {
        (
            first.wait_with_output().unwrap(),
            second.wait_with_output().unwrap(),
        )
    });
    let (first, second) = ended.await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5) + SLACK);
    require_refusal(&first, &["backup of postgres"]);
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("the lock of migrations"), "{said}");
    assert!(said.contains("leasehold of postgres"), "{said}");

    let patient = || start(&["migrate", "--lock-wait=1m"], &database);
    let releasing = async {
        database.until_waiting_for_locks(2).await;
        release(holder).await;
    };
    let ((one, _), (two, _), ()) = tokio::join!(patient(), patient(), releasing);
    for output in [one, two] {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    database.verify().await;
}

/// Whoever queues behind a migration that waits is let through in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_waits_does_not_keep_others_waiting() {
    let database = Database::empty().await;
    // What the first migration would make: it waits for this to end.
    let holder = hold(&database, "create schema leasehold").await;
    let (output, took) = {
        let migrating = start(&["migrate", "--lock-wait=6s"], &database);
        let looking = async {
            database.until_waiting_for_locks(1).await;
            // Its turns are shorter than its patience.
            let deadline = Instant::now() + Duration::from_secs(6);
            loop {
                if database.waiting_for_locks().await == 0 {
                    return;
                }
                assert!(Instant::now() < deadline, "it never gives way");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let (ended, ()) = tokio::join!(migrating, looking);
        ended
    };
    require_refusal(&output, &["backup of postgres"]);
    assert!(took > Duration::from_secs(5), "{took:?}");
    release(holder).await;
}
