//! What a reader of the feed is told whose place is near what was purged: 410 where it missed
//! something, and else the rest.

use std::time::Duration;

use serde_json::Value;

use super::support::{App, Database, join, purge_settled, session, t};

const DAY: Duration = Duration::from_hours(24);
const DAY_MS: i64 = 86_400_000;

async fn joins(database: &Database, room: &str, ms: i64) -> i64 {
    let joined = database
        .at(t(ms))
        .join(&[join(room, "alice")], Default::default())
        .await
        .unwrap();
    joined[0].as_ref().unwrap().epoch
}

async fn leaves(database: &Database, room: &str, epoch: i64, ms: i64) {
    let left = database
        .at(t(ms))
        .leave(&[session(room, "alice", "", epoch)])
        .await
        .unwrap();
    assert_eq!(left, [Ok(())]);
}

/// A lifetime of one session.
async fn visit(database: &Database, room: &str, ms: i64) {
    let epoch = joins(database, room, ms).await;
    leaves(database, room, epoch, ms + 1).await;
}

/// Where the part of each event of a room stands, in order of the events.
async fn positions(database: &Database, room: &str, part: i32) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select leasehold.position_text(f.name, e.era, e.xact_id, e.event_id, $2,
                                          leasehold.feed_mark(e.recorded_at)) as "position!"
             from leasehold.membership_events e, leasehold.feed f
            where room_id = $1
            order by generation, version"#,
        room,
        part,
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

async fn purge(database: &Database, ms: i64, generations: i32) {
    let batch = purge_settled(&database.at(t(ms)), DAY).await;
    assert_eq!(batch.generations_purged, generations);
}

/// Without the sweep, whose transaction would hold the newest changes back for a moment.
async fn spawn(database: &Database) -> App {
    App::spawn_with(database, &["--sweep-interval-ms=0"]).await
}

/// What the feed holds after a position, as `kind room` each, once it has so many; `410` where the
/// reader is told that it missed something.
async fn after(app: &App, position: &str, items: usize) -> Vec<String> {
    loop {
        let response = app.get(&format!("/changes?after={position}")).await;
        if response.status() == 410 {
            return vec!["410".to_owned()];
        }
        assert_eq!(response.status(), 200);
        let page: Value = response.json().await.unwrap();
        let changes = page["changes"].as_array().unwrap();
        // A transaction of another database that has just ended may hold the newest back for a moment.
        if changes.len() >= items {
            let word = |c: &Value, field: &str| c[field].as_str().unwrap().to_owned();
            return changes
                .iter()
                .map(|c| format!("{} {}", word(c, "kind"), word(c, "roomId")))
                .collect();
        }
    }
}

const NEW: [&str; 2] = ["room_opened new", "joined new"];

#[tokio::test]
async fn a_reader_that_has_seen_the_last_purged_item_goes_on_and_one_before_it_is_told() {
    let database = Database::new().await;
    visit(&database, "old", 0).await;
    let (events, closings) = (
        positions(&database, "old", 1).await,
        positions(&database, "old", 2).await,
    );
    joins(&database, "new", 2 * DAY_MS).await;
    purge(&database, 2 * DAY_MS, 1).await;
    let app = spawn(&database).await;

    assert_eq!(after(&app, &closings[1], 2).await, NEW);
    assert_eq!(after(&app, &events[0], 2).await, ["410"]);
    app.stop().await;
}

#[tokio::test]
async fn a_reader_between_the_last_purged_end_and_the_closing_of_its_room_is_told() {
    let database = Database::new().await;
    visit(&database, "old", 0).await;
    let ended = positions(&database, "old", 1).await.pop().unwrap();
    joins(&database, "new", 2 * DAY_MS).await;
    let app = spawn(&database).await;
    assert_eq!(
        after(&app, &ended, 3).await,
        ["room_closed old", "room_opened new", "joined new"]
    );

    purge(&database, 2 * DAY_MS, 1).await;

    assert_eq!(after(&app, &ended, 2).await, ["410"]);
    app.stop().await;
}

#[tokio::test]
async fn a_reader_that_has_seen_all_of_the_last_purged_event_that_closed_nothing_goes_on() {
    let database = Database::new().await;
    joins(&database, "old", 0).await;
    joins(&database, "old", 1).await;
    let ended = positions(&database, "old", 1).await.swap_remove(1);
    joins(&database, "new", 2 * DAY_MS).await;
    let joined = positions(&database, "old", 1).await.swap_remove(0);
    purge(&database, 2 * DAY_MS, 0).await;
    let app = spawn(&database).await;

    let rest = ["joined old", "room_opened new", "joined new"];
    assert_eq!(after(&app, &ended, 3).await, rest);
    assert_eq!(after(&app, &joined, 2).await, ["410"]);
    app.stop().await;
}

#[tokio::test]
async fn a_purge_of_a_session_that_joined_before_the_mark_does_not_take_the_mark_back() {
    let database = Database::new().await;
    let epoch = joins(&database, "long", 0).await;
    visit(&database, "short", 10).await;
    let seen = positions(&database, "short", 2).await.pop().unwrap();
    purge(&database, 2 * DAY_MS, 1).await;
    database
        .execute(
            "update leasehold.members set lease_end = 9223372036854775807;
             update leasehold.rooms set next_end = 9223372036854775807",
        )
        .await;
    leaves(&database, "long", epoch, 2 * DAY_MS).await;
    let app = spawn(&database).await;
    let left = ["ended long", "room_closed long"];
    assert_eq!(after(&app, &seen, 2).await, left);
    joins(&database, "new", 4 * DAY_MS).await;
    let closed = positions(&database, "long", 2).await.pop().unwrap();

    purge(&database, 4 * DAY_MS, 1).await;

    assert_eq!(after(&app, &seen, 0).await, ["410"]);
    assert_eq!(after(&app, &closed, 2).await, NEW);
    app.stop().await;
}

#[tokio::test]
async fn after_a_restore_into_another_cluster_what_was_purged_there_holds_up_no_reader_here() {
    let database = Database::new().await;
    visit(&database, "old", 0).await;
    purge(&database, 2 * DAY_MS, 1).await;
    visit(&database, "kept", 2 * DAY_MS).await;
    // As a logical restore leaves them, from a cluster whose transaction ids were far ahead.
    database
        .execute(
            "update leasehold.membership_events
                set xact_id = (xact_id::text::bigint + 1000000000)::text::xid8;
             update leasehold.purges
                set purged_xact_id = (purged_xact_id::text::bigint + 1000000000)::text::xid8,
                    looked_xact_id = (looked_xact_id::text::bigint + 1000000000)::text::xid8;
             select leasehold.renumber_changes()",
        )
        .await;
    let app = spawn(&database).await;
    let seen = positions(&database, "kept", 1).await;

    assert_eq!(
        after(&app, &seen[0], 2).await,
        ["ended kept", "room_closed kept"]
    );
    app.stop().await;
}
