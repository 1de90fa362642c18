//! The feed: ordered, without gaps and repetitions, from any position.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, raw_sql};
use tokio::task::JoinSet;

use crate::support::{App, Database};

async fn changes(app: &App, query: &str) -> Value {
    let response = app.get(&format!("/changes{query}")).await;
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

fn next(page: &Value) -> String {
    page["next"].as_str().unwrap().to_owned()
}

fn kinds(page: &Value) -> Vec<&str> {
    let changes = page["changes"].as_array().unwrap();
    changes
        .iter()
        .map(|c| c["kind"].as_str().unwrap())
        .collect()
}

/// Without the sweep, whose transaction would hold the newest changes back for a moment.
async fn spawn(database: &Database) -> App {
    App::spawn_with(database, &["--sweep-interval-ms=0"]).await
}

/// The page once it has so many: on a busy server a transaction of another
/// database that has just ended cannot be placed, and holds the newest back for a moment.
async fn page_of(app: &App, query: &str, items: usize) -> Value {
    loop {
        let page = changes(app, query).await;
        if page["changes"].as_array().unwrap().len() >= items {
            return page;
        }
    }
}

#[tokio::test]
async fn the_feed_tells_a_rooms_life_from_the_oldest_kept() {
    let database = Database::new().await;
    let app = spawn(&database).await;
    app.join("r", "alice").await;
    app.join("r", "alice").await;
    app.leave("r", "alice", 2).await;

    let page = page_of(&app, "", 6).await;

    assert_eq!(
        kinds(&page),
        [
            "room_opened",
            "joined",
            "ended",
            "joined",
            "ended",
            "room_closed"
        ]
    );
    let superseded = &page["changes"][2];
    assert_eq!(superseded["reason"], "superseded");
    assert_eq!(
        (&superseded["epoch"], &superseded["version"]),
        (&json!(1), &json!(2))
    );
    let closed = &page["changes"][5];
    assert_eq!(
        (
            &closed["roomId"],
            &closed["generation"],
            &closed["version"],
            &closed["reason"],
            &closed["userId"]
        ),
        (
            &json!("r"),
            &json!(1),
            &json!(4),
            &json!("left"),
            &Value::Null
        )
    );
    assert!(closed["atMs"].is_i64());
    database.verify().await;
}

#[tokio::test]
async fn the_feed_goes_on_from_every_position_and_from_every_next() {
    let database = Database::new().await;
    let app = spawn(&database).await;
    for user in ["alice", "bob"] {
        app.join("r", user).await;
        app.leave("r", user, 1).await;
    }
    let whole = page_of(&app, "", 8).await["changes"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(whole.len(), 8);
    for (place, change) in whole.iter().enumerate() {
        let after = change["position"].as_str().unwrap();
        let rest = page_of(&app, &format!("?after={after}"), 7 - place).await;
        assert_eq!(rest["changes"].as_array().unwrap(), &whole[place + 1..]);
    }
    let mut read = Vec::new();
    let mut page = page_of(&app, "?limit=1", 1).await;
    read.extend(page["changes"].as_array().unwrap().clone());
    while read.len() < whole.len() {
        page = page_of(&app, &format!("?limit=1&after={}", next(&page)), 1).await;
        read.extend(page["changes"].as_array().unwrap().clone());
    }
    let page = changes(&app, &format!("?limit=1&after={}", next(&page))).await;
    assert_eq!(page["changes"], json!([]));
    assert_eq!(read, whole);

    app.join("r", "carol").await;
    let page = page_of(&app, &format!("?after={}", next(&page)), 2).await;
    assert_eq!(
        kinds(&page),
        ["room_opened", "joined"],
        "the next of an empty page is usable"
    );
    database.verify().await;
}

#[tokio::test]
async fn latest_starts_after_what_has_happened() {
    let database = Database::new().await;
    let app = spawn(&database).await;
    app.join("r", "alice").await;
    page_of(&app, "", 2).await;
    let page = changes(&app, "?after=latest").await;
    assert_eq!(page["changes"], json!([]));
    app.join("r", "bob").await;
    let page = page_of(&app, &format!("?after={}", next(&page)), 1).await;
    let newest = page["changes"].as_array().unwrap().last().unwrap();
    assert_eq!(newest["userId"], "bob");
}

#[tokio::test]
async fn a_waiting_reader_is_answered_when_something_happens_here_or_elsewhere() {
    let database = Database::new().await;
    let flags = &["--poll-ms", "60000", "--sweep-interval-ms", "0"];
    let here = App::spawn_with(&database, flags).await;
    let there = App::spawn_with(&database, flags).await;
    let position = next(&changes(&here, "?after=latest").await);
    for actor in [&here, &there] {
        let query = format!("?after={position}&waitMs=20000");
        let waiting = changes(&here, &query);
        let acting = async {
            // Hints are heard once the listeners listen, however late: until then the actor repeats itself.
            loop {
                let epoch = actor.join("r", "alice").await["epoch"].as_i64().unwrap();
                actor.leave("r", "alice", epoch).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let page = tokio::select! {
            page = waiting => page,
            () = acting => unreachable!(),
        };
        assert_eq!(page["changes"][0]["kind"], "room_opened");
    }
}

#[tokio::test]
async fn a_reader_waits_no_longer_than_it_asked_to() {
    let database = Database::new().await;
    let app = spawn(&database).await;
    let started = Instant::now();
    let page = changes(&app, "?waitMs=300").await;
    assert_eq!(page["changes"], json!([]));
    assert!((300..2_000).contains(&started.elapsed().as_millis()));
    for query in [
        "?waitMs=60001",
        "?waitMs=-1",
        "?limit=0",
        "?limit=1001",
        "?after=x",
        "?after=1.2.9",
        "?kinds=left",
        "?room=",
        "?prefix=%00",
    ] {
        assert_eq!(
            app.get(&format!("/changes{query}")).await.status(),
            400,
            "{query}"
        );
    }
}

#[tokio::test]
async fn what_commits_behind_an_older_transaction_waits_for_it_and_is_not_lost() {
    let database = Database::new().await;
    let app = spawn(&database).await;
    let mut older = database.connect().await;
    raw_sql("begin; select leasehold.join_member('older', 'alice');")
        .execute(&mut older)
        .await
        .unwrap();
    app.join("younger", "bob").await;

    let page = changes(&app, "").await;
    assert_eq!(
        page["changes"],
        json!([]),
        "the older transaction can still come before it"
    );

    let waiting = changes(&app, "?waitMs=20000");
    let committing = async {
        raw_sql("commit").execute(&mut older).await.unwrap();
    };
    let (page, ()) = tokio::join!(waiting, committing);
    assert_eq!(page["changes"][0]["roomId"], "older");
    let page = page_of(&app, "", 4).await;
    let rooms: Vec<&Value> = page["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["roomId"])
        .collect();
    assert_eq!(rooms, ["older", "older", "younger", "younger"]);
    database.verify().await;
}

#[tokio::test]
async fn a_transaction_of_another_database_holds_nothing_back() {
    let database = Database::new().await;
    let other = Database::new().await;
    let app = spawn(&database).await;
    let mut elsewhere = other.connect().await;
    raw_sql("begin; select leasehold.join_member('r', 'alice');")
        .execute(&mut elsewhere)
        .await
        .unwrap();
    app.join("r", "bob").await;
    let page = page_of(&app, "", 2).await;
    assert_eq!(kinds(&page), ["room_opened", "joined"]);
}

#[tokio::test]
async fn a_position_older_than_the_purge_is_answered_410() {
    let database = Database::new().await;
    let app = spawn(&database).await;
    app.join("r", "alice").await;
    let old = page_of(&app, "", 2).await["changes"][0]["position"]
        .as_str()
        .unwrap()
        .to_owned();
    app.leave("r", "alice", 1).await;
    let new = next(&page_of(&app, "", 4).await);
    database
        .execute(
            "update leasehold.purges
                set (purged_era, purged_xact_id, purged_event_id, purged_part, purged_mark) =
                    (select era, xact_id, event_id, 2, leasehold.feed_mark(recorded_at)
                       from leasehold.membership_events order by xact_id desc limit 1)",
        )
        .await;

    let expired = app.get(&format!("/changes?after={old}")).await;
    assert_eq!(expired.status(), 410);
    assert_eq!(
        expired.json::<Value>().await.unwrap()["code"],
        "position_expired"
    );
    changes(&app, &format!("?after={new}")).await;
    changes(&app, "").await;

    let elsewhere = new.replace(&new[..8], "00000000");
    let elsewhere = app.get(&format!("/changes?after={elsewhere}")).await;
    assert_eq!(elsewhere.status(), 410, "a position of another database");
}

#[tokio::test]
async fn after_a_restore_into_another_cluster_the_history_can_be_put_before_what_follows() {
    let database = Database::new().await;
    let app = spawn(&database).await;
    app.join("r", "alice").await;
    app.leave("r", "alice", 1).await;
    // As a logical restore leaves it, from a cluster whose transaction ids were far ahead.
    database
        .execute(
            "update leasehold.membership_events set xact_id = (xact_id::text::bigint + 1000000000)::text::xid8;
             update leasehold.rooms set last_xact_id = (last_xact_id::text::bigint + 1000000000)::text::xid8",
        )
        .await;
    app.join("elsewhere", "bob").await;
    let page = page_of(&app, "", 2).await;
    assert_eq!(
        kinds(&page),
        ["room_opened", "joined"],
        "the restored part is not reached"
    );
    let before = next(&page);

    database
        .execute("select leasehold.renumber_changes()")
        .await;
    app.join("r", "bob").await;

    let page = page_of(&app, "", 8).await;
    let rooms: Vec<(&str, i64)> = page["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            (
                c["roomId"].as_str().unwrap(),
                c["generation"].as_i64().unwrap(),
            )
        })
        .collect();
    let (elsewhere, first, second) = (("elsewhere", 1), ("r", 1), ("r", 2));
    assert_eq!(
        rooms,
        [
            elsewhere, elsewhere, first, first, first, first, second, second
        ]
    );
    let rest = changes(&app, &format!("?after={before}")).await;
    assert_eq!(
        rest["changes"].as_array().unwrap()[..],
        page["changes"].as_array().unwrap()[2..]
    );
    database.verify().await;
}

/// 32 writers in transactions that stay open for a while, two readers that never stop reading.
#[tokio::test(flavor = "multi_thread")]
async fn under_32_writers_readers_miss_nothing_and_see_nothing_twice() {
    const WRITERS: usize = 32;
    const TURNS: usize = 25;
    let database = Arc::new(Database::new().await);
    let app = Arc::new(spawn(&database).await);
    // How many events there are, once that is known.
    let recorded_events = Arc::new(AtomicUsize::new(usize::MAX));

    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let database = Arc::clone(&database);
        writers.spawn(async move {
            let mut connection = database.connect().await;
            for turn in 0..TURNS {
                // Rooms of its own and one of all; some transactions are rolled back.
                let end = if (writer + turn) % 7 == 0 {
                    "rollback"
                } else {
                    "commit"
                };
                let held = (writer * 13 + turn * 7) % 40;
                let script = format!(
                    "begin;
                     select leasehold.join_member('own-{writer}', 'u{turn}');
                     select pg_sleep({held} / 1000.0);
                     select leasehold.join_member('shared', 'u{writer}');
                     {end};
                     select leasehold.leave_member('own-{writer}', 'u{turn}', 1);"
                );
                raw_sql(AssertSqlSafe(script))
                    .execute(&mut connection)
                    .await
                    .unwrap();
            }
        });
    }
    let mut readers = JoinSet::new();
    for limit in [3, 100] {
        let (app, recorded_events) = (Arc::clone(&app), Arc::clone(&recorded_events));
        readers.spawn(async move {
            let mut read: Vec<Value> = Vec::new();
            let mut after = String::new();
            let mut patience = 200;
            loop {
                let page = changes(&app, &format!("?{after}limit={limit}&waitMs=50")).await;
                let items = page["changes"].as_array().unwrap();
                read.extend(items.iter().cloned());
                after = format!("after={}&", next(&page));
                let is_event = |c: &&Value| !c["kind"].as_str().unwrap().starts_with("room_");
                let events = recorded_events.load(Ordering::SeqCst);
                if events != usize::MAX && items.is_empty() {
                    // A transaction of the service's own jobs may hold the last ones back for a moment.
                    patience -= 1;
                    if patience == 0 || read.iter().filter(is_event).count() >= events {
                        return read;
                    }
                }
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }

    let recorded = sqlx::query!(
        r#"select room_id, generation, version, kind from leasehold.membership_events"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    let recorded: BTreeSet<(String, i64, i64)> = recorded
        .into_iter()
        .map(|e| (e.room_id, e.generation, e.version))
        .collect();
    recorded_events.store(recorded.len(), Ordering::SeqCst);
    while let Some(read) = readers.join_next().await {
        let read = read.unwrap();
        let mut events = BTreeSet::new();
        let mut opened: BTreeMap<(String, i64), (u32, u32)> = BTreeMap::new();
        for change in &read {
            let room = change["roomId"].as_str().unwrap().to_owned();
            let generation = change["generation"].as_i64().unwrap();
            let lifetime = opened.entry((room.clone(), generation)).or_default();
            match change["kind"].as_str().unwrap() {
                "room_opened" => lifetime.0 += 1,
                "room_closed" => lifetime.1 += 1,
                _ => {
                    let version = change["version"].as_i64().unwrap();
                    assert!(
                        events.insert((room, generation, version)),
                        "twice: {change}"
                    );
                }
            }
        }
        let missed: Vec<_> = recorded.difference(&events).collect();
        assert!(missed.is_empty(), "{missed:?}");
        assert_eq!(events.len(), recorded.len());
        for ((room, generation), (opens, closes)) in opened {
            let is_open = room == "shared";
            assert_eq!(
                (opens, closes),
                (1, u32::from(!is_open)),
                "{room} {generation}"
            );
        }
    }
    database.verify().await;
}
