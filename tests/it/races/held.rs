//! Heartbeats that do not wait for a session that another transaction holds.

use super::super::support::race::{Side, at, beat_sql, leave_sql};
use super::super::support::{Database, t};
use super::with_alice;

const LOCK_ALICE: &str = "select from leasehold.members where user_id = 'alice' for update";

async fn with_alice_and_bob() -> Database {
    let database = with_alice().await;
    database
        .execute(format!(
            "select leasehold.join_member('r', 'bob', p_now => {})",
            at(0)
        ))
        .await;
    database
}

/// Heartbeats of alice and bob in one batch.
fn beats(ms: i64) -> String {
    format!(
        "select unnest(leasehold.heartbeat_members(
             array['r', 'r'], array['alice', 'bob'], array[1, 1]::bigint[], array['', ''],
             p_now => {}))",
        at(ms)
    )
}

#[tokio::test]
async fn the_held_session_is_busy_and_unchanged_and_the_others_are_renewed() {
    let database = with_alice_and_bob().await;
    let mut holder = Side::holding(&database, LOCK_ALICE).await;
    let mut batch = Side::new(&database).await;
    assert_eq!(batch.run(beats(100)).await, ["busy", "renewed"]);
    holder.run("rollback").await;

    let seen = sqlx::query_scalar!("select last_seen_at from leasehold.members order by user_id")
        .fetch_all(&database.pool)
        .await
        .unwrap();
    assert_eq!(seen, [t(0), t(100)]);
    assert_eq!(batch.run(beats(200)).await, ["renewed", "renewed"]);
    database.verify().await;
}

/// What not waiting is for.
#[tokio::test]
async fn a_batch_that_waited_would_hold_up_the_others() {
    let database = with_alice_and_bob().await;
    database
        .replace_in("lock_live_sessions", "skip locked", "")
        .await;
    let mut holder = Side::holding(&database, LOCK_ALICE).await;
    let batch = Side::new(&database).await.waits(beats(100)).await;
    holder.run("rollback").await;
    assert_eq!(batch.answer().await.unwrap(), ["renewed", "renewed"]);
}

/// Whether the lease has ended is for the one to say who waits for the other transaction.
#[tokio::test]
async fn a_session_whose_renewal_is_under_way_is_busy_also_past_its_old_lease() {
    let database = with_alice_and_bob().await;
    let mut renewal = Side::holding(&database, beat_sql("alice", 1, 15_000)).await;
    let mut batch = Side::new(&database).await;
    assert_eq!(batch.run(beats(15_001)).await, ["busy", "expired"]);
    renewal.run("commit").await;
    assert_eq!(batch.run(beats(15_001)).await, ["renewed", "expired"]);
    database.verify().await;
}

#[tokio::test]
async fn a_session_that_is_ending_is_busy_until_it_has_ended() {
    let database = with_alice_and_bob().await;
    let mut leave = Side::holding(&database, leave_sql("alice", 1, 100)).await;
    let mut batch = Side::new(&database).await;
    assert_eq!(batch.run(beats(200)).await, ["busy", "renewed"]);
    leave.run("commit").await;
    assert_eq!(batch.run(beats(300)).await, ["left", "renewed"]);
    database.verify().await;
}
