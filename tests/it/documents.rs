//! The documents are true: their examples run and answer what they show.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::CommandFactory;
use leasehold::cli::Cli;
use leasehold::telemetry::Metrics;
use private_postgres::{Cluster, ClusterOptions};
use sqlx::{Connection, PgConnection};

use super::support::curl::{self, Command};
use super::support::{App, Database, Document, Example, psql, run, signature, text};

/// As a reader of the documents would have set it.
async fn connect(url: &str) -> PgConnection {
    let mut connection = PgConnection::connect(url).await.unwrap();
    psql::run(
        &mut connection,
        "set timezone = 'UTC';\nset lc_messages = 'C';\nset datestyle = 'ISO';\n",
    )
    .await;
    connection
}

/// Moves everything that is in the database into the past: the sleep of a reader, without its time.
async fn let_time_pass(database: &Database, seconds: u64) {
    let by = format!("- interval '{seconds} seconds'");
    database
        .execute(format!(
            "update leasehold.members set joined_at = joined_at {by}, last_seen_at = last_seen_at {by},
                    lease_end = lease_end - {seconds} * 1000000::bigint;
             update leasehold.rooms set opened_at = opened_at {by}, next_end = next_end - {seconds} * 1000000::bigint;
             update leasehold.closed_generations set opened_at = opened_at {by}, closed_at = closed_at {by};
             update leasehold.membership_events set occurred_at = occurred_at {by},
                    recorded_at = recorded_at {by}, last_seen_at = last_seen_at {by};"
        ))
        .await;
}

/// Times of day and Unix milliseconds differ from run to run, everything else does not.
fn but_for_instants(text: &str) -> String {
    let mut normal = String::new();
    for line in text.lines() {
        let mut digits = 0;
        for c in line.trim_end().chars().chain(['\n']) {
            if c.is_ascii_digit() {
                digits += 1;
            } else if digits == 13 {
                normal.truncate(normal.len() - 13);
                normal.push_str("<ms>");
                digits = 0;
            } else {
                digits = 0;
            }
            normal.push(c);
        }
    }
    for n in 0..normal.len().saturating_sub(7) {
        let window = &normal.as_bytes()[n..n + 8];
        let is_time = window.iter().enumerate().all(|(k, b)| {
            if k == 2 || k == 5 {
                *b == b':'
            } else {
                b.is_ascii_digit()
            }
        });
        if is_time {
            normal.replace_range(n..n + 8, "hh:mm:ss");
        }
    }
    normal
}

fn exactly(text: &str) -> String {
    text.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Runs the SQL of a document in one session on a server of its own: what ends in other databases holds the
/// feed back for a moment.
async fn run_sql_of(path: &str, at_least: usize) {
    let purpose = format!("document-{}", path.replace(['/', '.'], "-"));
    let options = ClusterOptions::throw_away(&purpose).setting("autovacuum", "off");
    let server = Cluster::start(options).unwrap();
    let url = server.url("postgres");
    let migrated = run(&["migrate"], &url);
    assert!(migrated.status.success(), "{}", text(&migrated.stderr));
    let mut connection = connect(&url).await;
    let document = Document::read(path);
    let mut outputs: Vec<(Example, String)> = Vec::new();
    for example in document.examples() {
        let output = match example.info.split_once(' ') {
            Some(("signature", name)) => signature::of(&mut connection, name).await,
            _ if example.info == "sql" => psql::run(&mut connection, &example.commands).await,
            _ => continue,
        };
        outputs.push((example, output));
    }
    assert!(outputs.len() >= at_least, "only {} examples", outputs.len());
    document.expect(outputs, exactly);
    let violations = psql::run(&mut connection, "select * from leasehold.verify();\n").await;
    assert_eq!(violations, "(0 rows)\n");
    connection.close().await.unwrap();
    server.stop().unwrap();
}

#[tokio::test]
async fn the_sql_reference_shows_what_postgres_answers() {
    run_sql_of("docs/sql.md", 50).await;
}

#[tokio::test]
async fn the_operators_guide_shows_what_postgres_answers() {
    run_sql_of("docs/operations.md", 2).await;
}

#[tokio::test]
async fn the_page_on_sizes_shows_what_postgres_answers() {
    run_sql_of("docs/sizing.md", 1).await;
}

#[test]
fn the_operators_guide_lists_every_metric() {
    let metrics = Metrics::new().unwrap();
    // A histogram shows itself with its first value, a counter by status with its first request.
    metrics.presence.heartbeat_took(Duration::ZERO);
    metrics.presence.sweep_took(Duration::ZERO);
    let route = metrics.requests.route("/", []);
    route.answered("GET", 200, None, Duration::ZERO);
    let queue = metrics.queue("test");
    queue.batch_began(1, Duration::ZERO);
    metrics.tidy();
    let rendered = metrics.render();
    let there: BTreeSet<&str> = rendered
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let section = Document::read("docs/operations.md").section("metrics");
    let listed: BTreeSet<&str> = section
        .lines()
        .filter_map(|row| row.strip_prefix("| `"))
        .filter_map(|row| row.split('`').next())
        .collect();
    assert_eq!(
        listed, there,
        "left: docs/operations.md, right: the service"
    );
}

#[tokio::test]
async fn the_sql_reference_has_every_public_function_table_and_view() {
    let database = Database::new().await;
    let text = Document::read("docs/sql.md").text();
    let public = sqlx::query_scalar!(
        r#"select '<!-- signature ' || p.proname || ' -->' as "text!"
             from pg_proc p
            where p.pronamespace = 'leasehold'::regnamespace
              and obj_description(p.oid, 'pg_proc') not like 'Internal.%'
           union all
           select '`' || c.relname || '`'
             from pg_class c
            where c.relnamespace = 'leasehold'::regnamespace and c.relkind in ('r', 'v')
              and c.relname <> '_sqlx_migrations'"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    let missing: Vec<&String> = public.iter().filter(|name| !text.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/sql.md lacks {missing:#?}");
}

/// Runs the commands and the SQL of a document against a service of its own.
async fn run_commands_of(path: &str, at_least: usize) {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut connection = connect(&database.url()).await;
    let document = Document::read(path);
    let mut outputs = Vec::new();
    for example in document.examples() {
        let output = match example.info.as_str() {
            "sql" => psql::run(&mut connection, &example.commands).await,
            "sh" => {
                let Some(commands) = curl::commands(&example.commands) else {
                    continue;
                };
                let mut shown = String::new();
                for command in commands {
                    match command {
                        Command::Sleep(time) => let_time_pass(&database, time.as_secs()).await,
                        Command::Curl(arguments) => {
                            shown += &curl::curl(&app.client, &app.url, &arguments).await;
                            if !shown.is_empty() && !shown.ends_with('\n') {
                                shown.push('\n');
                            }
                        }
                    }
                }
                shown
            }
            _ => continue,
        };
        outputs.push((example, output));
    }
    assert!(outputs.len() >= at_least, "only {} examples", outputs.len());
    document.expect(outputs, but_for_instants);
    database.verify().await;
    app.stop().await;
}

#[tokio::test]
async fn the_readme_shows_what_the_service_answers() {
    run_commands_of("README.md", 4).await;
}

#[tokio::test]
async fn the_tour_shows_what_the_service_answers() {
    run_commands_of("docs/tour.md", 6).await;
}

#[test]
fn the_readme_is_read_in_minutes() {
    let lines = Document::read("README.md").text().lines().count();
    assert!(lines <= 170, "README.md has {lines} lines");
}

#[tokio::test]
async fn the_api_reference_shows_what_the_service_answers() {
    run_commands_of("docs/api.md", 15).await;
}

#[test]
fn every_setting_of_serve_is_in_the_documents() {
    let cli = Cli::command();
    let serve = cli.find_subcommand("serve").unwrap();
    let mut table = "| flag | variable | default | meaning |\n|---|---|---|---|\n".to_owned();
    for setting in serve.get_arguments().filter(|a| a.get_id() != "help") {
        let variable = setting.get_env().unwrap().to_str().unwrap();
        let default: Vec<&str> = setting
            .get_default_values()
            .iter()
            .map(|value| value.to_str().unwrap())
            .collect();
        let default = match default.as_slice() {
            [] => String::new(),
            values => format!("`{}`", values.join(" ")),
        };
        let words: Vec<String> = setting
            .get_possible_values()
            .iter()
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        let words = match words.as_slice() {
            [] => String::new(),
            words => format!(": {}", words.join(" or ")),
        };
        table += &format!(
            "| `--{}` | `{variable}` | {default} | {}{words} |\n",
            setting.get_long().unwrap(),
            setting.get_help().unwrap()
        );
    }
    Document::read("docs/settings.md").expect_section("settings", &table);
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let mut sources = String::new();
    let mut directories = vec!["tests".into(), "src".into()];
    while let Some(directory) = directories.pop() {
        let directory: std::path::PathBuf = directory;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                sources += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let guarantees = Document::read("docs/guarantees.md").section("guarantees");
    let named: BTreeSet<&str> = guarantees
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.matches('_').count() > 3)
        .collect();
    assert!(named.len() > 5, "{named:?}");
    let missing: Vec<&&str> = named
        .iter()
        .filter(|name| !sources.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

#[test]
fn every_relative_link_of_the_documents_leads_to_a_file() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![
        root.join("README.md"),
        root.join("CONTRIBUTING.md"),
        root.join("CHANGELOG.md"),
        root.join("SECURITY.md"),
        root.join("deploy/README.md"),
        root.join("migrations/README.md"),
    ];
    documents.extend(
        std::fs::read_dir(root.join("docs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    let mut broken = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            if !document.parent().unwrap().join(target).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
