//! Where a person comes back while something of theirs is still under way.

use super::super::support::race::{Side, join_sql, leave_sql, prune_sql};
use super::{generations, history, members, with_alice};

#[tokio::test]
async fn a_leave_that_waited_for_the_rejoin_changes_nothing() {
    let database = with_alice().await;
    let mut rejoin = Side::holding(&database, join_sql("alice", 100)).await;
    let leave = Side::new(&database)
        .await
        .waits(leave_sql("alice", 1, 100))
        .await;
    rejoin.run("commit").await;

    assert_eq!(leave.word().await, "superseded");
    assert_eq!(members(&database).await, ["alice 2"]);
    database.verify().await;
}

#[tokio::test]
async fn a_leave_that_waited_for_a_rejoin_that_gave_up_is_a_leave() {
    let database = with_alice().await;
    let mut rejoin = Side::holding(&database, join_sql("alice", 100)).await;
    let leave = Side::new(&database)
        .await
        .waits(leave_sql("alice", 1, 100))
        .await;
    rejoin.run("rollback").await;

    assert_eq!(leave.word().await, "left");
    assert_eq!(generations(&database).await, ["1 left"]);
    database.verify().await;
}

/// What the epoch in a leave is for.
#[tokio::test]
async fn without_the_epoch_a_late_leave_would_remove_the_one_who_came_back() {
    let database = with_alice().await;
    database
        .replace_in("leave_members", "and m.epoch = q.epoch", "")
        .await;
    let mut rejoin = Side::holding(&database, join_sql("alice", 100)).await;
    let leave = Side::new(&database)
        .await
        .waits(leave_sql("alice", 1, 100))
        .await;
    rejoin.run("commit").await;

    assert_eq!(leave.word().await, "left");
    assert!(members(&database).await.is_empty());
}

#[tokio::test]
async fn a_rejoin_that_waited_for_the_leave_has_a_higher_epoch_in_the_next_generation() {
    let database = with_alice().await;
    let mut leave = Side::holding(&database, leave_sql("alice", 1, 100)).await;
    let rejoin = Side::new(&database)
        .await
        .waits(join_sql("alice", 100))
        .await;
    leave.run("commit").await;

    assert_eq!(rejoin.word().await, "joined 2 2");
    assert_eq!(members(&database).await, ["alice 2"]);
    assert_eq!(generations(&database).await, ["1 left", "2"]);
    database.verify().await;
}

#[tokio::test]
async fn of_two_joins_of_one_user_the_second_supersedes_the_first() {
    let database = with_alice().await;
    let mut first = Side::holding(&database, join_sql("alice", 100)).await;
    let second = Side::new(&database)
        .await
        .waits(join_sql("alice", 100))
        .await;
    first.run("commit").await;

    assert_eq!(second.word().await, "joined 3 1");
    assert_eq!(members(&database).await, ["alice 3"]);
    assert_eq!(
        history(&database).await,
        [
            "1 alice 1 joined",
            "2 alice 1 superseded",
            "3 alice 2 joined",
            "4 alice 2 superseded",
            "5 alice 3 joined",
        ]
    );
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_gave_up_hands_its_epoch_to_the_one_that_waited() {
    let database = with_alice().await;
    let mut first = Side::holding(&database, join_sql("alice", 100)).await;
    let second = Side::new(&database)
        .await
        .waits(join_sql("alice", 100))
        .await;
    first.run("rollback").await;

    assert_eq!(second.word().await, "joined 2 1");
    assert_eq!(members(&database).await, ["alice 2"]);
    database.verify().await;
}

#[tokio::test]
async fn of_two_joins_that_reject_the_present_one_is_let_in() {
    let reject = |ms| join_sql("alice", ms).replace("p_now", "p_if_present => 'reject', p_now");
    let database = super::super::support::Database::new().await;
    let mut first = Side::holding(&database, reject(0)).await;
    let phone = reject(0).replace("p_if_present", "p_device_id => 'phone', p_if_present");
    let second = Side::new(&database).await.waits(phone).await;
    first.run("commit").await;

    assert_eq!(second.word().await, "already_present 1 1");
    assert_eq!(members(&database).await, ["alice 1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_pruning_passes_over_a_room_that_somebody_rejoins() {
    let database = with_alice().await;
    let mut rejoin = Side::holding(&database, join_sql("alice", 15_000)).await;
    let mut prune = Side::new(&database).await;
    assert_eq!(prune.run(prune_sql(15_001)).await, ["0 0"]);
    rejoin.run("commit").await;

    assert_eq!(prune.run(prune_sql(15_001)).await, ["0 0"]);
    assert_eq!(members(&database).await, ["alice 2"]);
    database.verify().await;
}
