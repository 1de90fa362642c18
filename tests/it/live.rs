//! Subscribers of a room: what they are told, when, and in which order.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{App, Database, Events, Picture, session};

/// So rarely that whatever arrives in time was not found by the poll.
const NO_POLL: &[&str] = &["--poll-ms", "60000", "--sweep-interval-ms", "0"];

async fn cursor(app: &App, room: &str, user: &str, epoch: i64, cursor: Value) {
    let body = json!({ "userId": user, "epoch": epoch, "cursor": cursor });
    let response = app.post(&format!("/rooms/{room}/cursor"), body).await;
    assert_eq!(response.status(), 204);
}

#[tokio::test]
async fn a_subscriber_hears_of_a_room_from_its_first_join_to_its_end() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    let response = app.get("/rooms/r/events").await;
    let header = |name| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("x-accel-buffering"), "no");
    assert_eq!(header("cache-control"), "no-cache, no-transform");
    let mut events = Events::of(response);

    let empty = events.expect("snapshot").await.data;
    assert_eq!(empty["participants"], json!([]));
    assert_eq!(
        (&empty["generation"], &empty["version"]),
        (&Value::Null, &Value::Null)
    );

    app.join("r", "alice").await;
    let joined = events.expect("joined").await.data;
    assert_eq!(joined["roomId"], "r");
    assert_eq!(joined["generation"], 1);
    assert_eq!(joined["version"], 1);
    assert!(joined["asOfMs"].is_i64());
    assert_eq!(joined["participant"]["userId"], "alice");
    assert_eq!(joined["participant"]["epoch"], 1);
    assert_eq!(joined["participant"]["status"], "connected");

    cursor(&app, "r", "alice", 1, json!({ "line": 3 })).await;
    let updated = events.expect("updated").await.data;
    assert_eq!(updated["participant"]["cursor"], json!({ "line": 3 }));
    assert_eq!(updated["version"], 1);

    app.leave("r", "alice", 1).await;
    let left = events.expect("left").await.data;
    assert_eq!(left["userId"], "alice");
    assert_eq!(left["epoch"], 1);
    assert_eq!(left["reason"], "left");
    assert_eq!(
        (&left["generation"], &left["version"]),
        (&json!(1), &json!(2))
    );
    let closed = events.expect("room_closed").await.data;
    assert_eq!(closed["reason"], "left");
    assert_eq!(
        (&closed["generation"], &closed["version"]),
        (&json!(1), &json!(2))
    );

    app.join("r", "alice").await;
    let again = events.expect("joined").await.data;
    assert_eq!(again["generation"], 2);
    assert_eq!(again["participant"]["epoch"], 2);
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn a_join_in_place_of_a_session_is_a_joined_without_a_left() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    app.join("r", "alice").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    app.join("r", "alice").await;

    let joined = events.expect("joined").await.data;
    assert_eq!(joined["participant"]["epoch"], 2);
    app.leave("r", "alice", 2).await;
    let left = events.expect("left").await.data;
    assert_eq!(
        (&left["epoch"], &left["reason"]),
        (&json!(2), &json!("left"))
    );
    database.verify().await;
}

#[tokio::test]
async fn closing_one_of_two_tabs_does_not_say_that_the_person_left() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    for device in ["phone", "laptop"] {
        app.post(
            "/rooms/r/join",
            json!({ "userId": "alice", "deviceId": device }),
        )
        .await;
    }
    let mut events = app.events("r").await;
    let snapshot = events.expect("snapshot").await.data;
    assert_eq!(
        snapshot["participants"][0]["devices"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    app.post(
        "/rooms/r/leave",
        json!({ "userId": "alice", "deviceId": "laptop", "epoch": 2 }),
    )
    .await;

    let updated = events.expect("updated").await.data;
    assert_eq!(updated["participant"]["epoch"], 1);
    assert_eq!(updated["participant"].get("devices"), None);
    database.verify().await;
}

#[tokio::test]
async fn a_lease_that_ends_is_seen_within_250_ms_without_the_sweep() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    let joined: Value = app
        .post(
            "/rooms/r/join",
            json!({ "userId": "alice", "leaseMs": 1000 }),
        )
        .await
        .json()
        .await
        .unwrap();
    let mut events = app.events("r").await;
    events.expect("snapshot").await;
    // The test's and the database's clocks are the same machine's, but only durations are compared.
    let started = Instant::now();
    let left_ms = joined["leaseMs"].as_u64().unwrap();

    let lost = events.expect("updated").await.data;
    assert_eq!(
        lost["participant"]["status"], "reconnecting",
        "first it looks lost"
    );
    let left = events.expect("left").await.data;

    assert!(
        started.elapsed() < Duration::from_millis(left_ms + 250),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(left["reason"], "expired");
    let late_ms = left["asOfMs"].as_i64().unwrap() - joined["expiresAtMs"].as_i64().unwrap();
    assert!(
        (0..250).contains(&late_ms),
        "{late_ms} ms by the database's clock"
    );
    events.expect("room_closed").await;
    database.verify().await;
}

#[tokio::test]
async fn a_status_that_turns_and_turns_back_is_an_updated_each_time() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_POLL).await;
    app.join("r", "alice").await;
    app.join("r", "bob").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    database
        .execute("update leasehold.members set last_seen_at = last_seen_at - interval '7 s' where user_id = 'alice'")
        .await;
    cursor(&app, "r", "bob", 1, json!({})).await;
    events.expect("updated").await;
    let lost = events.expect("updated").await.data;
    assert_eq!(lost["participant"]["userId"], "alice");
    assert_eq!(lost["participant"]["status"], "reconnecting");

    app.heartbeat("r", "alice", 1).await;
    let back = events.expect("updated").await.data;
    assert_eq!(back["participant"]["userId"], "alice");
    assert_eq!(back["participant"]["status"], "connected");
    database.verify().await;
}

#[tokio::test]
async fn an_id_tells_a_subscriber_that_comes_back_whether_anything_changed() {
    let database = Database::new().await;
    let (here, there) = (
        App::spawn_with(&database, NO_POLL).await,
        App::spawn_with(&database, NO_POLL).await,
    );
    here.join("r", "alice").await;
    let mut events = here.events("r").await;
    events.expect("snapshot").await;
    here.join("r", "bob").await;
    let last = events.expect("joined").await;
    assert!(last.id.is_some());
    drop(events);

    assert_eq!(here.heartbeat("r", "alice", 1).await.status(), 204);
    let unchanged = there.events("r").await.expect("snapshot").await;
    assert_eq!(
        unchanged.id, last.id,
        "a renewal is nothing to see, on any instance"
    );

    cursor(&here, "r", "alice", 1, json!({ "line": 1 })).await;
    let changed = there.events("r").await.expect("snapshot").await;
    assert_ne!(changed.id, last.id);
    database.verify().await;
}

#[tokio::test]
async fn a_stream_without_news_shows_that_it_lives() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--keep-alive-ms", "100"]).await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;
    events.comment().await;
    events.comment().await;
}

#[tokio::test]
async fn a_deleted_and_recreated_room_shows_both_lifetimes_in_order() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms", "100", "--hints", "off"]).await;
    for user in ["alice", "bob"] {
        app.join("r", user).await;
    }
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    // In one transaction, so that no reader can see the time between.
    database
        .execute(
            "begin;
             select leasehold.leave_member('r', 'bob', 1);
             select leasehold.leave_member('r', 'alice', 1);
             select leasehold.join_member('r', 'alice');
             commit;",
        )
        .await;

    for user in ["bob", "alice"] {
        let left = events.expect("left").await.data;
        assert_eq!(left["userId"], user);
        assert_eq!(
            (&left["generation"], &left["reason"]),
            (&json!(1), &json!("left"))
        );
    }
    let closed = events.expect("room_closed").await.data;
    assert_eq!(
        (&closed["generation"], &closed["version"]),
        (&json!(1), &json!(4))
    );
    let joined = events.expect("joined").await.data;
    assert_eq!(
        (&joined["generation"], &joined["version"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(joined["participant"]["epoch"], 2);
    database.verify().await;
}

#[tokio::test]
async fn a_person_who_left_and_came_back_unseen_left_with_the_last_session() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms", "100", "--hints", "off"]).await;
    app.join("r", "alice").await;
    app.join("r", "bob").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    database
        .execute(
            "begin;
             select leasehold.join_member('r', 'alice');
             select leasehold.leave_member('r', 'alice', 2);
             select leasehold.join_member('r', 'alice');
             commit;",
        )
        .await;

    let left = events.expect("left").await.data;
    assert_eq!(
        (&left["epoch"], &left["reason"]),
        (&json!(2), &json!("left"))
    );
    let joined = events.expect("joined").await.data;
    assert_eq!(joined["participant"]["epoch"], 3);
    database.verify().await;
}

#[tokio::test]
async fn a_change_on_another_instance_arrives_by_a_hint() {
    let database = Database::new().await;
    let here = App::spawn_with(&database, NO_POLL).await;
    let there = App::spawn_with(&database, NO_POLL).await;
    let mut events = there.events("r").await;
    events.expect("snapshot").await;
    listening(&database, 2).await;

    here.join("r", "alice").await;
    events.expect("joined").await;
    here.leave("r", "alice", 1).await;
    events.expect("left").await;
    events.expect("room_closed").await;
    database.verify().await;
}

#[tokio::test]
async fn without_hints_a_change_on_another_instance_arrives_within_the_poll() {
    let database = Database::new().await;
    let flags = &["--hints", "off", "--sweep-interval-ms", "0"];
    let here = App::spawn_with(&database, flags).await;
    let there = App::spawn_with(&database, flags).await;
    let mut events = there.events("r").await;
    events.expect("snapshot").await;

    here.join("r", "alice").await;
    let acknowledged = Instant::now();
    events.expect("joined").await;
    assert!(
        acknowledged.elapsed() < Duration::from_millis(1_250),
        "{:?}",
        acknowledged.elapsed()
    );
    database.verify().await;
}

/// Waits until so many instances listen.
async fn listening(database: &Database, instances: i64) {
    loop {
        let listening = sqlx::query_scalar!(
            r#"select count(*) as "n!" from pg_stat_activity
               where datname = current_database() and query like 'LISTEN%' and state = 'idle'"#
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
        if listening >= instances {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_listener_that_lost_its_connection_reads_everything_again_and_goes_on() {
    let database = Database::new().await;
    let here = App::spawn_with(&database, NO_POLL).await;
    let there = App::spawn_with(&database, NO_POLL).await;
    let mut events = there.events("r").await;
    events.expect("snapshot").await;
    listening(&database, 2).await;

    // Behind every instance's back: only the reconnect makes anybody look.
    database
        .execute("select leasehold.join_member('r', 'alice')")
        .await;
    database
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity
              where datname = current_database() and query like 'LISTEN%'",
        )
        .await;
    events.expect("joined").await;

    listening(&database, 2).await;
    here.join("r", "bob").await;
    events.expect("joined").await;
    database.verify().await;
}

#[tokio::test]
async fn no_function_of_the_schema_notifies() {
    let database = Database::new().await;
    let sources = sqlx::query!(
        r#"select p.proname::text as "name!", pg_get_functiondef(p.oid) as "source!"
           from pg_proc p join pg_namespace n on n.oid = p.pronamespace
           where n.nspname = 'leasehold'"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert!(sources.len() > 20);
    for function in sources {
        let source = function.source.to_lowercase();
        assert!(!source.contains("notify"), "{} notifies", function.name);
    }
}

#[tokio::test]
async fn a_listener_holds_no_transaction_open() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    listening(&database, 1).await;
    app.join("r", "alice").await;
    let open = sqlx::query_scalar!(
        r#"select count(*) as "n!" from pg_stat_activity
           where datname = current_database() and query like 'LISTEN%'
             and (xact_start is not null or backend_xmin is not null)"#
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(open, 0);
}

#[tokio::test]
async fn more_subscribers_than_allowed_are_refused_until_one_goes() {
    let database = Database::new().await;
    let per_client = ["--max-subscribers-per-client", "3"];
    let per_room = ["--max-subscribers-per-room", "2"];
    let flags = [&["--max-subscribers", "3"][..], &per_room, &per_client].concat();
    let app = App::spawn_with(&database, &flags).await;
    let mut first = app.events("a").await;
    first.expect("snapshot").await;
    let mut second = app.events("a").await;
    second.expect("snapshot").await;
    let refused = app.get("/rooms/a/events").await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["code"], "too_many_subscribers");
    assert!(
        body["error"].as_str().unwrap().contains("the room has 2"),
        "{body}"
    );

    let _third = app.events("b").await;
    let refused: Value = app.get("/rooms/c/events").await.json().await.unwrap();
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("this instance has 3"),
        "{refused}"
    );

    drop(first);
    loop {
        let response = app.get("/rooms/a/events").await;
        if response.status() == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_head_request_subscribes_nobody() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--max-subscribers", "0"]).await;
    let response = app
        .client
        .head(format!("{}/rooms/r/events", app.url))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.text().await.unwrap(), "");
}

#[tokio::test]
async fn a_slow_reader_is_sent_a_fresh_snapshot_and_catches_up() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms", "100"]).await;
    let epoch = app.join("r", "alice").await["epoch"].as_i64().unwrap();
    let mut slow = app.events("r").await;
    let mut quick = app.events("r").await;
    slow.expect("snapshot").await;
    quick.expect("snapshot").await;

    // What is in the sockets' buffers, the server's and the queue is bounded; this is more.
    let metadata = "x".repeat(4_000);
    let mut behind = false;
    for line in 0..5_000 {
        let body = json!({ "userId": "alice", "epoch": epoch, "cursor": { "line": line },
                           "metadata": { "padding": metadata } });
        assert_eq!(app.post("/rooms/r/heartbeat", body).await.status(), 204);
        while quick.expect("updated").await.data["participant"]["cursor"]["line"] != line {}
        if line % 50 == 0 {
            let metrics = app.get("/metrics").await.text().await.unwrap();
            behind = !metrics.contains("leasehold_subscribers_behind_total 0");
            if behind {
                break;
            }
        }
    }
    assert!(behind, "the slow reader was not noticed");
    let snapshot = slow.until("snapshot").await.data;
    let mut picture = Picture::of(&snapshot);
    cursor(&app, "r", "alice", epoch, json!({ "line": -1 })).await;
    loop {
        let event = slow.next().await;
        picture.apply(&event.kind, &event.data);
        if event.data["participant"]["cursor"]["line"] == -1 {
            break;
        }
    }
    assert_eq!(picture, Picture::of(&app.participants("r").await));
    database.verify().await;
}

#[tokio::test]
async fn a_lost_transport_shows_at_once() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--poll-ms", "100"]).await;
    app.join("r", "alice").await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;
    let lost = session("r", "alice", "", 1);
    assert_eq!(
        database.store.disconnect(&[lost]).await.unwrap(),
        [Some(Ok(()))]
    );
    let updated = events.expect("updated").await.data;
    assert_eq!(updated["participant"]["status"], "reconnecting");
    database.verify().await;
}

#[tokio::test]
async fn streams_end_when_the_service_stops() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut events = app.events("r").await;
    events.expect("snapshot").await;
    let started = Instant::now();
    app.stop().await;
    assert!(events.try_next().await.is_none());
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn the_page_about_live_names_the_fields_and_settings_that_there_are() {
    let text = include_str!("../../docs/live.md");
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut events = app.events("r").await;
    let mut told = vec![events.expect("snapshot").await];
    app.join("r", "alice").await;
    told.push(events.expect("joined").await);
    cursor(&app, "r", "alice", 1, json!({})).await;
    told.push(events.expect("updated").await);
    app.leave("r", "alice", 1).await;
    told.push(events.expect("left").await);
    told.push(events.expect("room_closed").await);
    let mut columns = "";
    for event in told {
        let row = format!("| `{}` | ", event.kind);
        let (_, rest) = text.split_once(&row).unwrap();
        columns = match rest.split(" | ").next().unwrap() {
            "as `/participants`" => continue,
            "the same" => columns,
            named => named.trim_matches('`'),
        };
        let mut named: Vec<&str> = columns.split(", ").collect();
        let mut sent: Vec<&String> = event.data.as_object().unwrap().keys().collect();
        named.sort_unstable();
        sent.sort_unstable();
        assert_eq!(named, sent, "{}", event.kind);
    }

    let serve =
        <leasehold::config::ServeArgs as clap::Args>::augment_args(clap::Command::new("serve"));
    let settings: Vec<&str> = serve
        .get_arguments()
        .filter_map(|argument| argument.get_env()?.to_str())
        .collect();
    for word in text.split(|c: char| !c.is_ascii_uppercase() && c != '_') {
        if word.starts_with("LEASEHOLD_") {
            assert!(settings.contains(&word), "{word}");
        }
    }
}
