//! `leasehold migrations export` and `migrate --to`: a schema that another tool applied is one to serve on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use leasehold::store::Migrations;

use super::support::{Database, Service, run, text};

fn export(format: &str, directory: &Path) -> Output {
    let directory = directory.to_str().unwrap();
    run(
        &["migrations", "export", "--format", format, directory],
        "postgres://127.0.0.1:1/nobody",
    )
}

/// Those of the directory, oldest first.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn psql(database: &Database, file: &Path) -> Output {
    Command::new("psql")
        .args(["--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-q", "-f"])
        .arg(file)
        .args(["-d", &database.url()])
        .output()
        .unwrap()
}

/// What the bookkeeping says, and how it is made.
async fn bookkeeping(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select format('%s %s %s %s', version, description, success, encode(checksum, 'hex')) as "line!"
           from leasehold._sqlx_migrations
         union all
         select format('%s %s %s %s %s', attnum, attname, atttypid::regtype, attnotnull,
                       pg_get_expr(d.adbin, d.adrelid))
           from pg_attribute a
           left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
          where attrelid = 'leasehold._sqlx_migrations'::regclass and attnum > 0
         union all
         select pg_get_constraintdef(oid) from pg_constraint
          where conrelid = 'leasehold._sqlx_migrations'::regclass
         order by 1"#,
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_service_serves_on_what_psql_applied() {
    let directory = tempfile::tempdir().unwrap();
    let exported = export("sql", directory.path());
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    let files = files(directory.path());
    assert_eq!(text(&exported.stdout).lines().count(), files.len());
    let database = Database::empty().await;
    for file in &files {
        let applied = psql(&database, file);
        assert!(applied.status.success(), "{}", text(&applied.stderr));
    }
    let check = run(&["migrate", "--check"], &database.url());
    assert_eq!(text(&check.stdout), "the schema is up to date\n");
    let service = Service::serve(&database.url(), &[]).await;
    let join = service.client.post(format!("{}/rooms/r/join", service.url));
    let join = join.header("content-type", "application/json");
    let joined = join.body(r#"{"userId":"alice"}"#).send().await.unwrap();
    assert_eq!(joined.status(), 200);
    database.verify().await;
    let migrated = Database::new().await;
    assert_eq!(bookkeeping(&database).await, bookkeeping(&migrated).await);

    // Once more is an error, and changes nothing.
    let again = psql(&database, &files[0]);
    assert!(!again.status.success());
    assert_eq!(bookkeeping(&database).await, bookkeeping(&migrated).await);
}

#[tokio::test]
async fn what_another_tool_began_leasehold_goes_on_with_and_the_other_way_round() {
    let directory = tempfile::tempdir().unwrap();
    assert!(export("sql", directory.path()).status.success());
    let files = files(directory.path());
    let database = Database::empty().await;
    assert!(psql(&database, &files[0]).status.success());
    let next = run(&["migrate", "--to", "2"], &database.url());
    assert!(next.status.success(), "{}", text(&next.stderr));
    let said = text(&next.stdout);
    assert_eq!(said.matches("applied: ").count(), 1, "{said}");
    let left = files.len() - 2;
    assert!(
        said.ends_with(&format!("\n{left} migrations are pending\n")),
        "{said}"
    );
    for file in &files[2..] {
        let applied = psql(&database, file);
        assert!(applied.status.success(), "{}", text(&applied.stderr));
    }
    let check = Migrations::check(&database.settings()).await.unwrap();
    assert_eq!(check.require_fit(), Ok(()));
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_applied_and_changes_nothing() {
    let database = Database::empty().await;
    let dry = run(&["migrate", "--to", "2", "--dry-run"], &database.url());
    assert!(dry.status.success(), "{}", text(&dry.stderr));
    let said = text(&dry.stdout);
    assert_eq!(said.matches("would apply: ").count(), 2, "{said}");
    let is_there =
        sqlx::query_scalar!(r#"select to_regnamespace('leasehold') is not null as "is_there!""#)
            .fetch_one(&database.pool)
            .await
            .unwrap();
    assert!(!is_there);
    for dry_run in [&["--dry-run"][..], &[]] {
        let wrong = [&["migrate", "--to", "9999"], dry_run].concat();
        let wrong = run(&wrong, &database.url());
        assert_eq!(wrong.status.code(), Some(1));
        let said = text(&wrong.stderr);
        assert!(said.contains("no migration 9999; its newest is"), "{said}");
    }
    let changed = Database::new().await;
    changed
        .execute("update leasehold._sqlx_migrations set checksum = 'other' where version = 1")
        .await;
    let dry = run(&["migrate", "--dry-run"], &changed.url());
    assert_eq!(dry.status.code(), Some(1));
    assert!(text(&dry.stderr).contains("the database's schema is not one"));
}

#[test]
fn an_export_adds_what_is_missing_and_never_changes_a_file() {
    for format in ["sql", "flyway", "dbmate", "goose"] {
        let directory = tempfile::tempdir().unwrap();
        assert!(export(format, directory.path()).status.success());
        let all = files(directory.path());
        let text_of = |path: &PathBuf| fs::read_to_string(path).unwrap();
        let texts: Vec<String> = all.iter().map(text_of).collect();
        fs::remove_file(all.last().unwrap()).unwrap();
        let again = export(format, directory.path());
        assert_eq!(
            text(&again.stdout).trim_end(),
            all.last().unwrap().to_str().unwrap()
        );
        assert_eq!(all.iter().map(text_of).collect::<Vec<_>>(), texts);

        fs::remove_file(all.last().unwrap()).unwrap();
        fs::write(&all[0], "mine").unwrap();
        let refused = export(format, directory.path());
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains("is there already with another text"));
        assert_eq!(text_of(&all[0]), "mine");
        assert!(!all.last().unwrap().exists());
    }
}
