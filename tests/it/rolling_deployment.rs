//! Programs and schemas of different releases, as they meet while a deployment is under way.

use leasehold::app::Application;
use leasehold::store::Migrations;

use super::support::{App, Database, serve_args};

/// Later than any that this program knows.
const NEWER: i64 = 9_999;

async fn newest(database: &Database) -> i64 {
    sqlx::query_scalar!(r#"select max(version) as "version!" from leasehold._sqlx_migrations"#)
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

/// As a newer program would have left it.
async fn apply_a_newer_migration(database: &Database) {
    database
        .execute(format!(
            "insert into leasehold._sqlx_migrations (version, description, success, checksum, execution_time)
             values ({NEWER}, 'of a later release', true, '\\x00', 0)"
        ))
        .await;
}

async fn say_that_it_serves_from(database: &Database, migration: i64) {
    database
        .execute(format!(
            "insert into leasehold.schema_compatibility values ({NEWER}, {migration})"
        ))
        .await;
}

async fn refusal(database: &Database) -> String {
    match Application::build(&serve_args(&[]), database.url().into()).await {
        Ok(_) => unreachable!("it serves on a schema that it cannot know"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_program_serves_on_a_newer_schema_that_says_so() {
    let database = Database::new().await;
    let known = newest(&database).await;
    apply_a_newer_migration(&database).await;
    say_that_it_serves_from(&database, known).await;

    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    app.stop().await;

    let applied = Migrations::apply(&database.settings()).await.unwrap();
    assert!(applied.is_empty());
    let found = Migrations::check(&database.settings()).await.unwrap();
    assert_eq!((found.unknown, found.unserved), (vec![NEWER], vec![]));
    database.verify().await;
}

#[tokio::test]
async fn a_running_instance_is_ready_on_a_newer_schema_once_that_says_so() {
    let database = Database::new().await;
    let known = newest(&database).await;
    let app = App::spawn_with(&database, &["--sweep-interval-ms", "0"]).await;
    assert_eq!(app.get("/readyz").await.status(), 200);

    apply_a_newer_migration(&database).await;
    assert_eq!(app.get("/readyz").await.status(), 503);

    say_that_it_serves_from(&database, known).await;
    assert_eq!(app.get("/readyz").await.status(), 200);
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn a_program_refuses_a_newer_schema_that_says_nothing() {
    let database = Database::new().await;
    apply_a_newer_migration(&database).await;
    let refusal = refusal(&database).await;
    assert!(refusal.contains("newer migrations [9999]"), "{refusal}");
    assert!(Migrations::apply(&database.settings()).await.is_err());
}

#[tokio::test]
async fn a_program_refuses_a_newer_schema_that_serves_only_later_programs() {
    let database = Database::new().await;
    apply_a_newer_migration(&database).await;
    say_that_it_serves_from(&database, NEWER - 1).await;
    let refusal = refusal(&database).await;
    assert!(refusal.contains("newer migrations [9999]"), "{refusal}");
}

/// Those before the table of compatibility are of the first release.
#[tokio::test]
async fn every_migration_says_which_older_programs_it_serves() {
    let database = Database::new().await;
    let silent = sqlx::query_scalar!(
        "select m.version from leasehold._sqlx_migrations m
          where m.version > 30
            and not exists (select from leasehold.schema_compatibility c where c.migration = m.version)"
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert!(
        silent.is_empty(),
        "{silent:?} must insert into leasehold.schema_compatibility; see migrations/README.md"
    );
}
