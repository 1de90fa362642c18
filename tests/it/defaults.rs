//! What a database or a role has for defaults changes nothing: the service sets what it relies on.

use futures_util::future::join_all;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row, raw_sql};

use super::support::{App, Database, run, text};

/// Defaults of which each would change what a query does, or whether it may.
const HOSTILE: &[(&str, &str)] = &[
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_read_only", "on"),
    ("default_transaction_deferrable", "on"),
    ("search_path", "hostile, pg_catalog"),
    ("statement_timeout", "900"),
    ("lock_timeout", "900"),
    ("idle_in_transaction_session_timeout", "900"),
    ("idle_session_timeout", "900"),
    ("synchronous_commit", "off"),
    ("TimeZone", "Pacific/Kiritimati"),
    ("DateStyle", "German"),
    ("IntervalStyle", "sql_standard"),
    ("standard_conforming_strings", "off"),
    ("transform_null_equals", "on"),
    ("array_nulls", "off"),
    ("bytea_output", "escape"),
    ("extra_float_digits", "-15"),
    ("client_encoding", "LATIN1"),
    ("plan_cache_mode", "force_custom_plan"),
];

/// A schema in front of Postgres' own, whose functions fail.
const SHADOWS: &str = "
    create schema hostile;
    create function hostile.refuse(p_name text) returns text language plpgsql volatile
        as $$ begin raise exception 'the hostile % was called', p_name; end $$;
    create function hostile.clock_timestamp() returns timestamptz language sql volatile
        as $$ select hostile.refuse('clock_timestamp')::timestamptz $$;
    create function hostile.now() returns timestamptz language sql volatile
        as $$ select hostile.refuse('now')::timestamptz $$;
    create function hostile.cardinality(anyarray) returns integer language sql volatile
        as $$ select hostile.refuse('cardinality')::integer $$;
    create function hostile.pg_notify(text, text) returns void language sql volatile
        as $$ select hostile.refuse('pg_notify')::void $$;
    create function hostile.set_config(text, text, boolean) returns text language sql volatile
        as $$ select hostile.refuse('set_config') $$;
    create function hostile.current_setting(text, boolean) returns text language sql volatile
        as $$ select hostile.refuse('current_setting') $$;
    create table hostile.members ();
    create table hostile.rooms ();";

async fn make_hostile(database: &Database) {
    database.execute(SHADOWS).await;
    let set = HOSTILE.iter().map(|(name, value)| {
        let value = match *name {
            "search_path" => (*value).to_owned(),
            _ => format!("''{value}''"),
        };
        format!("execute format('alter database %I set {name} = {value}', current_database());")
    });
    // All in one transaction, before any of it is in force for the next.
    let set: String = set.collect();
    database
        .execute(format!("do $do$ begin {set} end $do$"))
        .await;
}

/// The answer without what differs from run to run: instants, and places in the feed.
async fn scrubbed(response: Response) -> (u16, Value) {
    fn scrub(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(scrub),
            Value::Object(fields) => {
                for (name, value) in fields {
                    if matches!(name.as_str(), "position" | "next") || name.ends_with("AtMs") {
                        *value = Value::Bool(value.is_null());
                    }
                    scrub(value);
                }
            }
            Value::Number(number) if number.as_i64().is_some_and(|n| n > 1_000_000_000_000) => {
                *value = json!("an instant");
            }
            _ => {}
        }
    }
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let mut body = serde_json::from_str(&text).unwrap_or(Value::Null);
    scrub(&mut body);
    (status, body)
}

/// Every kind of request once, one after the other, and what came of it.
async fn everything(database: &Database) -> Vec<(String, (u16, Value))> {
    let app = App::spawn_with(database, &["--timeout-ms=20000", "--poll-ms=200"]).await;
    let other = App::spawn_with(database, &["--poll-ms=200"]).await;
    app.until_ready().await;
    let mut events = other.events("r").await;
    events.expect("snapshot").await;
    let mut answers = Vec::new();
    let wide = r"back\slash 'quote' ünï 💐";
    for (method, path, body) in [
        (
            "POST",
            "/rooms/r/join",
            json!({ "userId": "alice", "metadata": { "name": wide }, "cursor": { "line": 1.1 } }),
        ),
        (
            "POST",
            "/rooms/r/join",
            json!({ "userId": "alice", "deviceId": "phone" }),
        ),
        ("POST", "/rooms/r/join", json!({ "userId": wide })),
        (
            "POST",
            "/rooms/r/join",
            json!({ "userId": "bob", "leaseMs": 60_000, "ifPresent": "reject" }),
        ),
        ("POST", "/rooms/s/join", json!({ "userId": "alice" })),
        (
            "POST",
            "/rooms/r/heartbeat",
            json!({ "userId": "alice", "epoch": 1, "cursor": { "name": wide }, "metadata": null }),
        ),
        (
            "POST",
            "/rooms/r/heartbeat",
            json!({ "userId": "bob", "epoch": 1, "leaseMs": 30_000 }),
        ),
        (
            "POST",
            "/rooms/r/heartbeat",
            json!({ "userId": "bob", "epoch": 7 }),
        ),
        (
            "POST",
            "/rooms/r/cursor",
            json!({ "userId": "bob", "epoch": 1, "cursor": { "line": 3 } }),
        ),
        (
            "POST",
            "/heartbeats",
            json!({ "heartbeats": [{ "roomId": "r", "userId": "bob", "epoch": 1 },
                                   { "roomId": "x", "userId": "bob", "epoch": 1 }] }),
        ),
        (
            "POST",
            "/rooms/r/disconnect",
            json!({ "userId": "bob", "epoch": 1 }),
        ),
        ("GET", "/rooms/r/participants", Value::Null),
        ("GET", "/rooms/r/participants?limit=1", Value::Null),
        ("GET", "/rooms/r", Value::Null),
        ("GET", "/rooms", Value::Null),
        ("GET", "/users/alice/rooms", Value::Null),
        (
            "POST",
            "/rooms/r/leave",
            json!({ "userId": "alice", "epoch": 1 }),
        ),
        (
            "POST",
            "/leaves",
            json!({ "leaves": [{ "roomId": "s", "userId": "alice", "epoch": 1 }] }),
        ),
        (
            "DELETE",
            "/rooms/r/participants/bob?blockForMs=60000",
            Value::Null,
        ),
        ("POST", "/rooms/r/join", json!({ "userId": "bob" })),
        ("GET", "/rooms/r/generations", Value::Null),
        ("GET", "/rooms/r/generations/1/sessions", Value::Null),
        ("GET", "/users/alice/sessions", Value::Null),
        ("DELETE", "/rooms/r", Value::Null),
        ("GET", "/changes?limit=1000", Value::Null),
        ("GET", "/readyz", Value::Null),
    ] {
        let headers = [("content-type", "application/json")];
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let response = app.send(method, path, &headers, body).await;
        answers.push((path.to_owned(), scrubbed(response).await));
    }
    // Of another instance, by a hint.
    events.until("room_closed").await;
    let metrics = other.get("/metrics").await.text().await.unwrap();
    assert!(
        !metrics.contains("leasehold_hints_heard_total 0"),
        "{metrics}"
    );
    assert!(metrics.contains("leasehold_active_members 0"), "{metrics}");
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_answered_as_on_a_database_with_the_usual_defaults() {
    let (usual, hostile) = (Database::new().await, Database::new().await);
    make_hostile(&hostile).await;
    let (usual_answers, hostile_answers) = (everything(&usual).await, everything(&hostile).await);
    for (usual, hostile) in usual_answers.iter().zip(&hostile_answers) {
        assert_eq!(usual, hostile);
    }
    assert!(
        usual_answers.iter().all(|(_, (status, _))| *status < 500),
        "{usual_answers:?}"
    );
    hostile.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_works_whatever_the_defaults_are() {
    let hostile = Database::empty().await;
    make_hostile(&hostile).await;
    for arguments in [
        &["migrate"][..],
        &["migrate", "--check"],
        &["sweep"],
        &["purge", "--older-than", "1d"],
        &["verify"],
    ] {
        let ended = run(arguments, &hostile.url());
        assert!(
            ended.status.success(),
            "{arguments:?}: {}{}",
            text(&ended.stdout),
            text(&ended.stderr)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_all_answered_where_transactions_are_serializable_by_default() {
    let database = Database::new().await;
    make_hostile(&database).await;
    let app = App::spawn_with(&database, &["--timeout-ms=20000"]).await;
    for round in 1..=3 {
        for (action, expected) in [("join", 200), ("heartbeat", 204), ("leave", 204)] {
            let asked = (0..120).map(async |n| {
                let me = json!({ "userId": format!("user-{n}"), "epoch": round });
                let path = format!("/rooms/room-{}/{action}", n % 6);
                app.post(&path, me).await.status()
            });
            for status in join_all(asked).await {
                assert_eq!(status, expected, "{action}");
            }
        }
    }
    database.verify().await;
}

/// Joins and leaves wait for the disk and heartbeats do not; nothing waits for ever.
#[tokio::test]
async fn transactions_run_with_the_settings_that_are_promised() {
    let database = Database::new().await;
    database
        .execute(
            "create table public.seen (act text, name text, value text);
             create function public.look() returns trigger language plpgsql as $$
             begin
                 insert into public.seen
                 select lower(tg_op), name, setting from pg_catalog.pg_settings
                  where name in ('synchronous_commit', 'statement_timeout', 'transaction_isolation',
                                 'transaction_read_only', 'idle_in_transaction_session_timeout', 'idle_session_timeout',
                                 'lock_timeout', 'search_path', 'TimeZone');
                 return null;
             end $$;
             create trigger look after insert or update or delete on leasehold.members
                for each row execute function public.look()",
        )
        .await;
    make_hostile(&database).await;
    let app = App::spawn_with(&database, &["--timeout-ms=7000"]).await;
    app.join("r", "alice").await;
    assert_eq!(app.heartbeat("r", "alice", 1).await.status(), 204);
    assert_eq!(app.leave("r", "alice", 1).await.status(), 204);

    for (act, synchronous_commit) in [("insert", "on"), ("update", "off"), ("delete", "on")] {
        for (name, value) in [
            ("synchronous_commit", synchronous_commit),
            ("statement_timeout", "7000"),
            ("idle_in_transaction_session_timeout", "7000"),
            ("idle_session_timeout", "0"),
            ("lock_timeout", "50"),
            ("transaction_isolation", "read committed"),
            ("transaction_read_only", "off"),
            ("search_path", "pg_catalog, pg_temp"),
            ("TimeZone", "UTC"),
        ] {
            let sql = format!(
                "select string_agg(distinct value, ' and ') from public.seen
                  where act = '{act}' and name = '{name}'"
            );
            let row = raw_sql(AssertSqlSafe(sql)).fetch_one(&database.pool);
            let seen: String = row.await.unwrap().get(0);
            assert_eq!(seen, value, "{act}: {name}");
        }
    }
    database.verify().await;
}
