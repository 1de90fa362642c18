//! Migrating: from many instances at once, beside others' tables, and what a
//! service says of a schema that is not its own.

use std::process::Output;

use leasehold::app::Application;
use leasehold::store::Migrations;

use super::support::{App, Database, command, run, serve_args, text};

async fn require_current(database: &Database) {
    let migrations = Migrations::check(&database.settings()).await.unwrap();
    migrations.require_fit().unwrap();
}

#[tokio::test]
async fn eight_processes_that_migrate_at_once_all_succeed() {
    let database = Database::empty().await;
    let children: Vec<_> = (0..8)
        .map(|_| {
            command(&["migrate"])
                .env("DATABASE_URL", database.url())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).ends_with("the schema is up to date\n"));
    }
    require_current(&database).await;
    database.verify().await;
}

#[tokio::test]
async fn eight_instances_that_migrate_at_once_all_succeed() {
    let database = Database::empty().await;
    let settings = database.settings();
    let instances = (0..8).map(|_| Migrations::apply(&settings));
    for outcome in futures_util::future::join_all(instances).await {
        outcome.unwrap();
    }
    require_current(&database).await;
}

#[tokio::test]
async fn a_check_changes_nothing() {
    let database = Database::empty().await;
    let pending = Migrations::check(&database.settings()).await.unwrap();
    assert!(pending.require_fit().is_err());
    assert_eq!(schemas(&database).await, Vec::<String>::new());
}

/// Those that hold any relation or function of their own.
async fn schemas(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select distinct n.nspname::text as "name!"
             from pg_namespace n
            where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
              and (exists (select from pg_class c where c.relnamespace = n.oid)
                   or exists (select from pg_proc p where p.pronamespace = n.oid)
                   or n.nspname = 'leasehold')
            order by 1"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn everything_is_inside_the_schema_leasehold_the_bookkeeping_too() {
    let database = Database::empty().await;
    Migrations::apply(&database.settings()).await.unwrap();
    assert_eq!(schemas(&database).await, ["leasehold"]);
}

#[tokio::test]
async fn it_shares_a_database_with_tables_and_migrations_of_the_same_names() {
    let database = Database::empty().await;
    database
        .execute(
            "create table public._sqlx_migrations (version bigint primary key, mine text);
             insert into public._sqlx_migrations values (1, 'theirs');
             create table public.rooms (room_id integer primary key);
             create table public.members (room_id integer);
             create table public.membership_events (nothing boolean);
             create function public.lease_expired(timestamptz, timestamptz) returns boolean
                language sql return null::boolean;
             create function public.lock_rooms(text[], timestamptz) returns integer
                language sql return 1 / 0",
        )
        .await;
    Migrations::apply(&database.settings()).await.unwrap();
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    assert_eq!(app.heartbeat("r", "alice", 1).await.status(), 204);
    assert_eq!(app.leave("r", "alice", 1).await.status(), 204);
    app.join("r", "bob").await;
    database.silence(60_000).await;
    database.store.sweep(1000).await.unwrap();
    assert_eq!(database.rows().await, (0, 0));
    let theirs = sqlx::query_scalar!(
        r#"select (xpath('/row/n/text()', query_to_xml(
               'select count(*) as n from public._sqlx_migrations', false, true, '')))[1]::text as "n!""#
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(theirs, "1");
    database.verify().await;
}

fn refusal_to_serve(database: &Database) -> String {
    let refused: Output = run(&["serve", "--bind=127.0.0.1:0"], &database.url());
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[tokio::test]
async fn a_service_refuses_a_database_without_the_schema_and_says_what_to_run() {
    let database = Database::empty().await;
    let said = refusal_to_serve(&database);
    assert!(said.contains("run `leasehold migrate`"), "{said}");
    let built = Application::build(&serve_args(&[]), database.url().into()).await;
    assert!(
        built
            .err()
            .unwrap()
            .to_string()
            .contains("run `leasehold migrate`")
    );
    assert_eq!(schemas(&database).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_service_refuses_a_schema_that_lacks_a_migration_and_says_what_to_run() {
    let database = Database::new().await;
    database
        .execute(
            "delete from leasehold._sqlx_migrations
              where version = (select max(version) from leasehold._sqlx_migrations)",
        )
        .await;
    let said = refusal_to_serve(&database);
    assert!(said.contains("lacks 1 migration"), "{said}");
    assert!(said.contains("run `leasehold migrate`"), "{said}");
    let check = run(&["migrate", "--check"], &database.url());
    assert_eq!(check.status.code(), Some(1));
    assert_eq!(text(&check.stdout).lines().count(), 1);
}

#[tokio::test]
async fn a_service_refuses_a_schema_that_it_does_not_know() {
    for (change, names) in [
        (
            "insert into leasehold._sqlx_migrations
                    (version, description, success, checksum, execution_time)
             values (9999, 'from the future', true, '', 0)",
            "9999",
        ),
        (
            "update leasehold._sqlx_migrations set checksum = 'other' where version = 1",
            "1",
        ),
    ] {
        let database = Database::new().await;
        database.execute(change).await;
        let said = refusal_to_serve(&database);
        assert!(said.contains("the database's schema is not one"), "{said}");
        assert!(said.contains(names), "{said}");
        assert!(said.contains("or a newer one"), "{said}");
        let check = run(&["migrate", "--check"], &database.url());
        assert_eq!(check.status.code(), Some(1));
        assert!(text(&check.stdout).contains(names));
    }
}

#[tokio::test]
async fn a_migration_whose_text_was_changed_is_not_passed_over() {
    let database = Database::new().await;
    database
        .execute("update leasehold._sqlx_migrations set checksum = 'other' where version = 1")
        .await;
    let migrate = run(&["migrate"], &database.url());
    assert_eq!(migrate.status.code(), Some(1));
    assert!(text(&migrate.stderr).contains("a migration was not applied"));
}
