//! The commands: what they print, how they exit, and which settings they refuse.

use std::process::Output;

use leasehold::config::DatabaseArgs;
use rustix::process::Signal;

use super::support::{Database, Service, command, join, run, t, text};

fn out(output: &Output) -> String {
    text(&output.stdout)
}

fn err(output: &Output) -> String {
    text(&output.stderr)
}

#[tokio::test]
async fn migrate_applies_what_is_pending_and_check_tells_whether_anything_is() {
    let database = Database::empty().await;
    let url = database.url();
    let check = run(&["migrate", "--check"], &url);
    assert_eq!(check.status.code(), Some(1), "{}", err(&check));
    assert!(out(&check).starts_with("pending: 0001 tables\n"));

    let migrate = run(&["migrate"], &url);
    assert_eq!(migrate.status.code(), Some(0), "{}", err(&migrate));
    assert!(out(&migrate).starts_with("applied: 0001 tables\n"));
    assert!(out(&migrate).ends_with("\nthe schema is up to date\n"));

    for arguments in [&["migrate", "--check"][..], &["migrate"]] {
        let again = run(arguments, &url);
        assert_eq!(again.status.code(), Some(0), "{}", err(&again));
        assert_eq!(out(&again), "the schema is up to date\n");
    }
}

#[tokio::test]
async fn sweep_prints_what_it_removed() {
    let database = Database::new().await;
    let joins = [join("r", "alice"), join("r", "bob"), join("s", "carol")];
    // Long ago, so that all have expired.
    let joined = database.at(t(0)).join(&joins, Default::default()).await;
    assert_eq!(joined.unwrap().len(), 3);

    let sweep = run(&["sweep"], &database.url());
    assert_eq!(sweep.status.code(), Some(0), "{}", err(&sweep));
    assert_eq!(out(&sweep), "3 members expired, 2 rooms closed\n");
    assert_eq!(
        out(&run(&["sweep"], &database.url())),
        "0 members expired, 0 rooms closed\n"
    );
    assert_eq!(database.rows().await, (0, 0));
    database.verify().await;
}

#[tokio::test]
async fn verify_prints_each_violation_and_exits_with_1() {
    let database = Database::new().await;
    let joins = [join("r", "alice")];
    let joined = database.store.join(&joins, Default::default()).await;
    assert_eq!(joined.unwrap().len(), 1);
    let good = run(&["verify"], &database.url());
    assert_eq!(good.status.code(), Some(0), "{}", err(&good));
    assert_eq!(out(&good), "every invariant holds\n");

    database
        .execute("update leasehold.rooms set member_count = 7, peak_members = 7")
        .await;
    let bad = run(&["verify"], &database.url());
    assert_eq!(bad.status.code(), Some(1));
    assert_eq!(
        out(&bad),
        "invariant 5: room \"r\": member_count is 7, but 1 persons have a row\n"
    );
}

#[tokio::test]
async fn a_command_on_a_database_without_the_schema_says_what_to_run() {
    let database = Database::empty().await;
    for arguments in [
        &["sweep"][..],
        &["verify"],
        &["serve", "--bind=127.0.0.1:0"],
    ] {
        let refused = run(arguments, &database.url());
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        let said = err(&refused);
        assert!(said.starts_with("leasehold: "), "{said}");
        assert!(said.contains("run `leasehold migrate`"), "{said}");
    }
}

#[test]
fn a_bad_setting_is_refused_with_its_variable_its_value_and_what_is_allowed() {
    for (variable, value, allowed) in [
        ("LEASEHOLD_BIND", "nowhere", "127.0.0.1:3000"),
        ("LEASEHOLD_BIND", "127.0.0.1", "127.0.0.1:3000"),
        ("LEASEHOLD_BIND", "127.0.0.1:70000", "127.0.0.1:3000"),
        ("LEASEHOLD_LEASE_MS", "999", "from 1s to 1day"),
        ("LEASEHOLD_LEASE_MS", "-5", "from 1s to 1day"),
        ("LEASEHOLD_LEASE_MS", "15x", "from 1s to 1day"),
        ("LEASEHOLD_LEASE_MS", "1e4", "from 1s to 1day"),
        (
            "LEASEHOLD_LEASE_MS",
            "99999999999999999999",
            "from 1s to 1day",
        ),
        (
            "LEASEHOLD_LEASE_MS",
            "400000",
            "LEASEHOLD_MAX_LEASE_MS (5m)",
        ),
        ("LEASEHOLD_MIN_LEASE_MS", "99", "from 100ms to 1day"),
        ("LEASEHOLD_MAX_LEASE_MS", "86400001", "from 1s to 1day"),
        ("LEASEHOLD_HEARTBEAT_MS", "0", "from 100ms to 1day"),
        (
            "LEASEHOLD_HEARTBEAT_MS",
            "15000",
            "less than LEASEHOLD_LEASE_MS (15s)",
        ),
        ("LEASEHOLD_SWEEP_INTERVAL_MS", "3600001", "from 0s to 1h"),
        ("LEASEHOLD_TIMEOUT_MS", "99", "from 100ms to 1m"),
        ("LEASEHOLD_DB_CONNECTIONS", "0", "from 1 to 1000"),
        ("LEASEHOLD_WORKERS", "1025", "from 0 to 1024"),
        ("LEASEHOLD_COALESCE_LANES", "0", "from 1 to 256"),
        ("LEASEHOLD_COALESCE_MAX_BATCH", "0", "from 1 to 10000"),
        ("LEASEHOLD_COALESCE_QUEUE", "0", "from 1 to 1000000"),
        (
            "LEASEHOLD_MAX_MEMBERS_PER_ROOM",
            "0",
            "from 1 to 2147483647",
        ),
        (
            "LEASEHOLD_MAX_DEVICES_PER_MEMBER",
            "10001",
            "from 1 to 10000",
        ),
        ("LEASEHOLD_MAX_ROOMS", "many", "from 1 to 2147483647"),
        ("LEASEHOLD_MAX_METADATA_BYTES", "1", "from 2 to 1048576"),
        ("LEASEHOLD_MAX_CURSOR_BYTES", "1048577", "from 2 to 1048576"),
        ("LEASEHOLD_MAX_BODY_BYTES", "1023", "from 1024 to 16777216"),
        ("LEASEHOLD_LOG", "info,=,", "info,sqlx=debug"),
        ("LEASEHOLD_LOG_FORMAT", "xml", "human, json"),
    ] {
        let refused = command(&["serve"])
            .env("DATABASE_URL", "postgres://127.0.0.1:1/nothing")
            .env(variable, value)
            .output()
            .unwrap();
        let said = err(&refused);
        assert!(!refused.status.success(), "{variable}={value}");
        assert!(out(&refused).is_empty());
        for part in [variable, value, allowed] {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
    }
}

#[test]
fn a_database_that_is_not_named_or_not_there_is_said_so() {
    for arguments in [&["serve"][..], &["migrate"], &["sweep"], &["verify"]] {
        let unnamed = command(arguments).output().unwrap();
        assert!(!unnamed.status.success());
        assert!(err(&unnamed).contains("DATABASE_URL"), "{}", err(&unnamed));

        for url in [
            "nonsense",
            "mysql://u:hunter2@h/d",
            "postgres://u:hunter2@h:port/d",
        ] {
            let unreadable = run(arguments, url);
            assert_eq!(unreadable.status.code(), Some(1), "{url}");
            let said = err(&unreadable);
            assert!(
                said.contains("DATABASE_URL is not a Postgres address"),
                "{said}"
            );
            assert!(
                said.contains("postgres://user:password@host:5432/database"),
                "{said}"
            );
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    // The others wait for a server that may be starting.
    for arguments in [&["serve"][..], &["migrate"]] {
        let silent = run(arguments, "postgres://u:hunter2@127.0.0.1:1/nothing");
        assert_eq!(silent.status.code(), Some(1));
        let said = err(&silent);
        assert!(said.contains("the database is not available"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named_with_what_to_set() {
    let database = Database::new().await;
    let first = Service::serve(&database.url(), &[]).await;
    let address = first.url.trim_start_matches("http://");
    let second = run(&["serve", "--bind", address], &database.url());
    assert_eq!(second.status.code(), Some(1));
    let said = err(&second);
    assert!(said.contains(address), "{said}");
    assert!(said.contains("LEASEHOLD_BIND"), "{said}");
    first.stop(Signal::TERM).await;
}

#[tokio::test]
async fn secrets_are_neither_logged_nor_shown() {
    let database = Database::new().await;
    let url = database.url().replacen("postgres@", "postgres:hunter2@", 1);
    assert!(url.contains("hunter2"));
    let service = Service::serve_logging("trace", &url, &[]).await;
    let address = format!("{}/rooms/r/participants?after=topsecret", service.url);
    assert_eq!(
        service.client.get(address).send().await.unwrap().status(),
        400
    );
    let said = service.said();
    assert!(said.contains("/rooms/r/participants"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    assert!(!said.contains("topsecret"), "{said}");
    service.stop(Signal::TERM).await;

    let arguments = DatabaseArgs {
        database_url: Some(url.clone().into()),
        database_url_file: None,
    };
    for shown in [format!("{arguments:?}"), format!("{:?}", arguments.once())] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    let help = command(&["serve", "--help"])
        .env("DATABASE_URL", url)
        .output()
        .unwrap();
    assert!(out(&help).contains("DATABASE_URL"));
    assert!(!out(&help).contains("hunter2"), "{}", out(&help));
}

#[tokio::test]
async fn a_request_is_one_line_of_the_log() {
    let database = Database::new().await;
    let service = Service::serve_logging("info", &database.url(), &[]).await;
    let join = service
        .client
        .post(format!("{}/rooms/a%20b/join?token=topsecret", service.url))
        .header("x-request-id", "abc")
        .json(&serde_json::json!({ "userId": "alice" }));
    assert_eq!(join.send().await.unwrap().status(), 200);
    let beat = service
        .client
        .post(format!("{}/rooms/a%20b/heartbeat", service.url))
        .json(&serde_json::json!({ "userId": "alice", "epoch": 7 }));
    assert_eq!(beat.send().await.unwrap().status(), 409);
    let said = service.said();
    service.stop(Signal::TERM).await;

    let requests: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| line["message"] == "request")
        .collect();
    assert_eq!(requests.len(), 2, "{said}");
    let [join, beat] = &requests[..] else {
        unreachable!()
    };
    assert_eq!(join["request_id"], "abc");
    assert_eq!(join["method"], "POST");
    assert_eq!(join["room"], "a b");
    assert_eq!(join["user"], "alice");
    assert_eq!(join["epoch"], 1);
    assert_eq!(join["status"], 200);
    assert_eq!(join["outcome"], "ok");
    assert!(join["duration_us"].is_u64());
    assert_eq!(beat["epoch"], 7);
    assert_eq!(beat["outcome"], "unknown_session");
    assert!(!said.contains("topsecret"), "{said}");
}
