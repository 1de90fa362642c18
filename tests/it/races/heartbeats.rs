//! Where a heartbeat meets what ends, replaces or renews the same session.

use super::super::support::race::{Side, at, beat_sql, join_sql, leave_sql, prune_sql};
use super::super::support::t;
use super::{members, with_alice};

#[tokio::test]
async fn a_member_whose_heartbeat_came_before_the_pruning_survives_it() {
    let database = with_alice().await;
    let mut beat = Side::holding(&database, beat_sql("alice", 1, 15_000)).await;
    let mut prune = Side::new(&database).await;
    assert_eq!(prune.run(prune_sql(15_001)).await, ["0 0"], "it is held");
    beat.run("commit").await;

    assert_eq!(prune.run(prune_sql(15_001)).await, ["0 0"]);
    assert_eq!(members(&database).await, ["alice 1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_member_whose_heartbeat_gave_up_is_pruned() {
    let database = with_alice().await;
    let mut beat = Side::holding(&database, beat_sql("alice", 1, 15_000)).await;
    let mut prune = Side::new(&database).await;
    assert_eq!(prune.run(prune_sql(15_001)).await, ["0 0"], "it is held");
    beat.run("rollback").await;

    assert_eq!(prune.run(prune_sql(15_001)).await, ["1 1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_heartbeat_that_waited_for_the_pruning_is_refused() {
    let database = with_alice().await;
    let mut prune = Side::holding(&database, prune_sql(15_001)).await;
    let beat = Side::new(&database)
        .await
        .waits(beat_sql("alice", 1, 15_000))
        .await;
    prune.run("commit").await;

    assert_eq!(beat.word().await, "expired");
    assert!(members(&database).await.is_empty());
    database.verify().await;
}

#[tokio::test]
async fn a_heartbeat_that_waited_for_a_pruning_that_gave_up_renews() {
    let database = with_alice().await;
    let mut prune = Side::holding(&database, prune_sql(15_001)).await;
    let beat = Side::new(&database)
        .await
        .waits(beat_sql("alice", 1, 15_000))
        .await;
    prune.run("rollback").await;

    assert_eq!(beat.word().await, "renewed");
    assert_eq!(members(&database).await, ["alice 1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_heartbeat_that_waited_for_the_rejoin_is_superseded() {
    let database = with_alice().await;
    let mut rejoin = Side::holding(&database, join_sql("alice", 100)).await;
    let beat = Side::new(&database)
        .await
        .waits(beat_sql("alice", 1, 200))
        .await;
    rejoin.run("commit").await;

    assert_eq!(beat.word().await, "superseded");
    let seen = sqlx::query_scalar!("select last_seen_at from leasehold.members")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(seen, t(100), "not renewed by the old session");
    database.verify().await;
}

/// What the epoch in a heartbeat is for.
#[tokio::test]
async fn without_the_epoch_an_old_heartbeat_would_renew_the_new_session() {
    let database = with_alice().await;
    database
        .replace_in("lock_live_sessions", "and m.epoch = p_epochs[q.ord]", "")
        .await;
    let mut rejoin = Side::holding(&database, join_sql("alice", 100)).await;
    let beat = Side::new(&database)
        .await
        .waits(beat_sql("alice", 1, 200))
        .await;
    rejoin.run("commit").await;

    assert_eq!(beat.word().await, "renewed");
}

#[tokio::test]
async fn a_heartbeat_that_waited_for_the_leave_is_told_so() {
    let database = with_alice().await;
    let mut leave = Side::holding(&database, leave_sql("alice", 1, 100)).await;
    let beat = Side::new(&database)
        .await
        .waits(beat_sql("alice", 1, 100))
        .await;
    leave.run("commit").await;

    assert_eq!(beat.word().await, "left");
    assert!(members(&database).await.is_empty());
    database.verify().await;
}

#[tokio::test]
async fn a_leave_that_waited_for_a_heartbeat_records_that_heartbeat() {
    let database = with_alice().await;
    let mut beat = Side::holding(&database, beat_sql("alice", 1, 5_000)).await;
    let leave = Side::new(&database)
        .await
        .waits(leave_sql("alice", 1, 5_001))
        .await;
    beat.run("commit").await;

    assert_eq!(leave.word().await, "left");
    assert_eq!(last_seen_in_history(&database).await, t(5_000));
    database.verify().await;
}

#[tokio::test]
async fn a_rejoin_that_waited_for_a_heartbeat_records_that_heartbeat() {
    let database = with_alice().await;
    let mut beat = Side::holding(&database, beat_sql("alice", 1, 5_000)).await;
    let rejoin = Side::new(&database)
        .await
        .waits(join_sql("alice", 5_001))
        .await;
    beat.run("commit").await;

    assert_eq!(rejoin.word().await, "joined 2 1");
    assert_eq!(last_seen_in_history(&database).await, t(5_000));
    database.verify().await;
}

async fn last_seen_in_history(
    database: &super::super::support::Database,
) -> chrono::DateTime<chrono::Utc> {
    sqlx::query_scalar!(
        r#"select last_seen_at as "last_seen_at!" from leasehold.membership_events where kind = 'ended'"#
    )
    .fetch_one(&database.pool)
    .await
    .unwrap()
}

/// The row has a new place once the first has committed; the second must still find it.
#[tokio::test]
async fn of_two_heartbeats_of_one_member_both_renew() {
    let cursor = |line, ms| {
        format!(
            r#"select leasehold.set_cursor('r', 'alice', 1, '{{"line": {line}}}', p_now => {})"#,
            at(ms)
        )
    };
    let database = with_alice().await;
    let mut first = Side::holding(&database, cursor(1, 100)).await;
    let second = Side::new(&database).await.waits(cursor(2, 200)).await;
    first.run("commit").await;

    assert_eq!(second.word().await, "renewed");
    let line = sqlx::query_scalar!(r#"select cursor ->> 'line' as "line!" from leasehold.members"#)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(line, "2");
    database.verify().await;
}

/// The second update of a row makes Postgres check its foreign key, which must not wait for the room.
#[tokio::test]
async fn a_second_heartbeat_in_one_transaction_waits_for_no_change_of_the_room() {
    let database = with_alice().await;
    let mut change =
        Side::holding(&database, "select * from leasehold.lock_rooms(array['r'])").await;
    let mut beats = Side::holding(&database, "set local lock_timeout = '1s'").await;
    assert_eq!(beats.run(beat_sql("alice", 1, 100)).await, ["renewed"]);
    assert_eq!(beats.run(beat_sql("alice", 1, 200)).await, ["renewed"]);
    beats.run("commit").await;
    change.run("rollback").await;
    database.verify().await;
}

#[tokio::test]
async fn a_shorter_lease_lowers_the_rooms_bound_before_a_join_that_waited_for_it() {
    let database = with_alice().await;
    let mut beat = Side::holding(&database, shorter_lease(100)).await;
    let join = Side::new(&database).await.waits(join_sql("bob", 100)).await;
    beat.run("commit").await;

    assert_eq!(join.word().await, "joined 1 1");
    assert_eq!(next_end(&database).await, t(1_100));
    database.verify().await;
}

#[tokio::test]
async fn a_shorter_lease_that_waited_for_a_join_lowers_the_rooms_bound() {
    let database = with_alice().await;
    let mut join = Side::holding(&database, join_sql("bob", 100)).await;
    let beat = Side::new(&database).await.waits(shorter_lease(100)).await;
    join.run("commit").await;

    assert_eq!(beat.word().await, "renewed");
    assert_eq!(next_end(&database).await, t(1_100));
    database.verify().await;
}

#[tokio::test]
async fn a_shorter_lease_that_waited_for_a_pruning_lowers_the_bound_that_it_set() {
    let database = with_alice().await;
    let mut prune = Side::holding(&database, prune_sql(100)).await;
    let beat = Side::new(&database).await.waits(shorter_lease(100)).await;
    prune.run("commit").await;

    assert_eq!(beat.word().await, "renewed");
    assert_eq!(next_end(&database).await, t(1_100));
    database.verify().await;
}

fn shorter_lease(ms: i64) -> String {
    format!(
        "select leasehold.heartbeat_member('r', 'alice', 1, p_lease_ms => 1000, p_now => {})",
        at(ms)
    )
}

async fn next_end(database: &super::super::support::Database) -> chrono::DateTime<chrono::Utc> {
    sqlx::query_scalar!(r#"select leasehold.instant(next_end) as "at!" from leasehold.rooms"#)
        .fetch_one(&database.pool)
        .await
        .unwrap()
}
