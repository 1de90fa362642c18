//! Lock, then the clock: whoever waited decides by the instant at which it was let in. In real time.

use super::super::support::Database;
use super::super::support::race::Side;
use super::{generations, members};

const LOCK_MEMBER: &str = "select from leasehold.members where room_id = 'r' for update";
const LOCK_ROOM: &str = "select from leasehold.rooms where room_id = 'r' for update";
/// Ends alice's lease now, which is after the waiting step began and before it is let in.
const LEASE_ENDS: &str =
    "update leasehold.rooms set next_end = leasehold.micros(clock_timestamp());
     update leasehold.members set lease_end = leasehold.micros(clock_timestamp());
     commit";
const BEAT: &str = "select leasehold.heartbeat_member('r', 'alice', 1)";
const LEAVE: &str = "select leasehold.leave_member('r', 'alice', 1)";
const JOIN: &str = "select concat_ws(' ', outcome, epoch, generation)
     from leasehold.join_member('r', 'bob')";
/// What a step answers that waits for this lock while alice's lease ends.
async fn after_waiting(database: &Database, lock: &str, step: &str) -> String {
    database
        .execute("select * from leasehold.join_member('r', 'alice')")
        .await;
    let mut holder = Side::holding(database, lock).await;
    let waiting = Side::new(database).await.waits(step).await;
    holder.run(LEASE_ENDS).await;
    waiting.word().await
}

#[tokio::test]
async fn a_heartbeat_that_waited_past_its_lease_is_refused() {
    let database = Database::new().await;
    let answer = after_waiting(&database, LOCK_MEMBER, BEAT).await;
    assert_eq!(answer, "expired");
    database.verify().await;
}

/// What reading the clock after the lock is for.
#[tokio::test]
async fn by_a_clock_read_before_the_lock_a_heartbeat_would_revive_the_expired() {
    let database = Database::new().await;
    database
        .replace_in("clocks", "clock_timestamp()", "now()")
        .await;
    let answer = after_waiting(&database, LOCK_MEMBER, BEAT).await;
    assert_eq!(answer, "renewed");
}

#[tokio::test]
async fn a_leave_that_waited_past_its_lease_finds_it_expired() {
    let database = Database::new().await;
    let answer = after_waiting(&database, LOCK_ROOM, LEAVE).await;
    assert_eq!(answer, "expired");
    assert_eq!(generations(&database).await, ["1 expired"]);
    database.verify().await;
}

#[tokio::test]
async fn by_a_clock_read_before_the_lock_a_leave_would_end_what_had_expired() {
    let database = Database::new().await;
    database
        .replace_in("clocks", "clock_timestamp()", "now()")
        .await;
    let answer = after_waiting(&database, LOCK_ROOM, LEAVE).await;
    assert_eq!(answer, "left");
}

#[tokio::test]
async fn a_join_that_waited_past_the_last_lease_opens_the_next_generation() {
    let database = Database::new().await;
    let answer = after_waiting(&database, LOCK_ROOM, JOIN).await;
    assert_eq!(answer, "joined 1 2");
    assert_eq!(members(&database).await, ["bob 1"]);
    database.verify().await;
}

#[tokio::test]
async fn by_a_clock_read_before_the_lock_a_join_would_keep_the_expired() {
    let database = Database::new().await;
    database
        .replace_in("clocks", "clock_timestamp()", "now()")
        .await;
    let answer = after_waiting(&database, LOCK_ROOM, JOIN).await;
    assert_eq!(answer, "joined 1 1");
}

#[tokio::test]
async fn a_lease_begins_when_the_join_was_let_in_and_not_when_it_asked() {
    let database = Database::new().await;
    database
        .execute("select * from leasehold.join_member('r', 'alice')")
        .await;
    let mut holder = Side::holding(&database, LOCK_ROOM).await;
    let join = Side::new(&database)
        .await
        .waits("select as_of from leasehold.join_member('r', 'bob')")
        .await;
    let let_in = holder.run("select clock_timestamp()").await;
    holder.run("commit").await;
    join.word().await;

    let later: Vec<String> = holder
        .run(format!(
            "select user_id from leasehold.members where joined_at >= '{}'",
            let_in[0]
        ))
        .await;
    assert_eq!(later, ["bob"]);
    database.verify().await;
}
