//! Where a room opens or closes while somebody comes or goes.

use super::super::support::Database;
use super::super::support::race::{Side, join_sql, leave_sql, prune_sql};
use super::{generations, history, members, with_alice};

#[tokio::test]
async fn a_join_that_waited_for_the_pruning_of_the_last_member_opens_the_next_generation() {
    let database = with_alice().await;
    let mut prune = Side::holding(&database, prune_sql(15_001)).await;
    let join = Side::new(&database)
        .await
        .waits(join_sql("bob", 15_001))
        .await;
    prune.run("commit").await;

    assert_eq!(join.word().await, "joined 1 2");
    assert_eq!(members(&database).await, ["bob 1"]);
    assert_eq!(generations(&database).await, ["1 expired", "2"]);
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_waited_for_a_pruning_that_gave_up_prunes_itself() {
    let database = with_alice().await;
    let mut prune = Side::holding(&database, prune_sql(15_001)).await;
    let join = Side::new(&database)
        .await
        .waits(join_sql("bob", 15_001))
        .await;
    prune.run("rollback").await;

    assert_eq!(join.word().await, "joined 1 2");
    assert_eq!(members(&database).await, ["bob 1"]);
    assert_eq!(generations(&database).await, ["1 expired", "2"]);
    database.verify().await;
}

#[tokio::test]
async fn a_pruning_passes_over_a_room_that_somebody_joins() {
    let database = with_alice().await;
    let mut join = Side::holding(&database, join_sql("bob", 15_000)).await;
    let mut prune = Side::new(&database).await;
    assert_eq!(prune.run(prune_sql(15_001)).await, ["0 0"]);
    join.run("commit").await;

    assert_eq!(prune.run(prune_sql(15_001)).await, ["1 0"]);
    assert_eq!(members(&database).await, ["bob 1"]);
    assert_eq!(generations(&database).await, ["1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_pruning_after_a_join_that_gave_up_closes_the_room() {
    let database = with_alice().await;
    let mut join = Side::holding(&database, join_sql("bob", 15_000)).await;
    let mut prune = Side::new(&database).await;
    assert_eq!(prune.run(prune_sql(15_001)).await, ["0 0"]);
    join.run("rollback").await;

    assert_eq!(prune.run(prune_sql(15_001)).await, ["1 1"]);
    assert_eq!(generations(&database).await, ["1 expired"]);
    database.verify().await;
}

/// What the lock is for: a bound worked out before the join committed would outlast the new member's lease.
#[tokio::test]
async fn without_the_rooms_lock_a_pruning_would_overlook_the_lease_of_somebody_who_joins() {
    let database = with_alice().await;
    database
        .replace_in("lock_free_rooms", "for no key update skip locked", "")
        .await;
    let short = join_sql("bob", 100).replace("p_now", "p_lease_ms => 1000, p_now");
    let mut join = Side::holding(&database, short).await;
    let prune = Side::new(&database).await.waits(prune_sql(100)).await;
    join.run("commit").await;

    assert_eq!(prune.word().await, "0 0");
    let violations = database.store.verify().await.unwrap();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert!(
        violations[0].detail.starts_with("next_end is"),
        "{violations:?}"
    );
}

/// The lock alone is not enough: a statement that began before it was granted has an older snapshot.
#[tokio::test]
async fn a_deletion_decided_by_the_statement_that_waits_would_close_a_room_that_somebody_joined() {
    let database = with_alice().await;
    let mut join = Side::holding(&database, join_sql("bob", 15_000)).await;
    // Alice is taken out of the way, so that the snapshot of the waiting statement holds nobody.
    let mut leave = Side::holding(&database, "select").await;
    leave
        .run("delete from leasehold.members where user_id = 'alice'; commit")
        .await;
    let deletion = Side::new(&database)
        .await
        .waits(
            "delete from leasehold.rooms r where room_id = 'r'
                and not exists (select from leasehold.members m where m.room_id = r.room_id)",
        )
        .await;
    join.run("commit").await;

    let refused = deletion.answer().await.unwrap_err();
    assert!(
        refused.to_string().contains("members_room_fkey"),
        "only the foreign key stands in the way: {refused}"
    );
}

#[tokio::test]
async fn a_join_that_waited_for_the_leave_of_the_last_member_opens_the_next_generation() {
    let database = with_alice().await;
    let mut leave = Side::holding(&database, leave_sql("alice", 1, 100)).await;
    let join = Side::new(&database).await.waits(join_sql("bob", 100)).await;
    leave.run("commit").await;

    assert_eq!(join.word().await, "joined 1 2");
    assert_eq!(members(&database).await, ["bob 1"]);
    assert_eq!(generations(&database).await, ["1 left", "2"]);
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_waited_for_a_leave_that_gave_up_finds_the_room_as_it_was() {
    let database = with_alice().await;
    let mut leave = Side::holding(&database, leave_sql("alice", 1, 100)).await;
    let join = Side::new(&database).await.waits(join_sql("bob", 100)).await;
    leave.run("rollback").await;

    assert_eq!(join.word().await, "joined 1 1");
    assert_eq!(members(&database).await, ["alice 1", "bob 1"]);
    assert_eq!(generations(&database).await, ["1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_leave_that_waited_for_a_join_keeps_the_room_for_the_one_who_joined() {
    let database = with_alice().await;
    let mut join = Side::holding(&database, join_sql("bob", 100)).await;
    let leave = Side::new(&database)
        .await
        .waits(leave_sql("alice", 1, 100))
        .await;
    join.run("commit").await;

    assert_eq!(leave.word().await, "left");
    assert_eq!(members(&database).await, ["bob 1"]);
    assert_eq!(generations(&database).await, ["1"]);
    database.verify().await;
}

#[tokio::test]
async fn of_two_leaves_of_the_last_two_members_the_second_closes_the_room() {
    let database = with_alice().await;
    let mut first = Side::holding(&database, join_sql("bob", 50)).await;
    first.run("commit; begin").await;
    first.run(leave_sql("alice", 1, 100)).await;
    let second = Side::new(&database)
        .await
        .waits(leave_sql("bob", 1, 100))
        .await;
    first.run("commit").await;

    assert_eq!(second.word().await, "left");
    assert_eq!(generations(&database).await, ["1 left"]);
    database.verify().await;
}

#[tokio::test]
async fn two_first_joins_of_a_room_meet_in_one_generation() {
    let database = Database::new().await;
    let mut first = Side::holding(&database, join_sql("alice", 0)).await;
    let second = Side::new(&database).await.waits(join_sql("bob", 0)).await;
    first.run("commit").await;

    assert_eq!(second.word().await, "joined 1 1");
    assert_eq!(members(&database).await, ["alice 1", "bob 1"]);
    assert_eq!(generations(&database).await, ["1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_first_join_that_gave_up_leaves_the_opening_to_the_one_that_waited() {
    let database = Database::new().await;
    let mut first = Side::holding(&database, join_sql("alice", 0)).await;
    let second = Side::new(&database).await.waits(join_sql("bob", 0)).await;
    first.run("rollback").await;

    assert_eq!(second.word().await, "joined 1 1");
    assert_eq!(history(&database).await, ["1 bob 1 joined"]);
    database.verify().await;
}
