//! Transactions that are open when the fence falls.

use std::time::Duration;

use leasehold::cells::Move;
use leasehold::domain::SlotState;

use super::super::support::race::Side;
use super::{ask, join, moving, pair, slots_of, state};

#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_is_paused_across_the_fence_is_copied() {
    let (source, target) = pair().await;
    let slots = slots_of(&["r"]);
    let names = (0..).map(|n| format!("beside-{n}"));
    let beside = names.filter(|name| slots_of(&[name]) == slots).take(1);
    let beside = &beside.collect::<Vec<_>>()[0];
    let mut paused = Side::holding(&source, "select leasehold.join_member('r', 'alice')").await;
    let mut moving = moving(&source, &target, &slots).await;
    let taking = tokio::spawn(async move {
        let slots = slots_of(&["r"]);
        let moved = moving.take(&slots).await;
        moving.close().await.unwrap();
        moved
    });
    let slot = slots.numbers()[0];
    while state(&source, slot).await != SlotState::Leaving {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // Nobody else comes in meanwhile, here or there, and nobody waits either.
    assert_eq!(join(&source, beside, "bob").await, "misdirected");
    assert_eq!(join(&target, beside, "bob").await, "misdirected");
    assert_eq!(join(&source, "stays", "bob").await, "joined 1 1");
    assert!(!taking.is_finished());
    paused.run("commit").await;
    let moved = taking.await.unwrap().unwrap();
    assert_eq!(moved.rooms_ended, 1);
    assert_eq!(join(&target, "r", "alice").await, "joined 2 2");
    source.verify().await;
    target.verify().await;
}

#[tokio::test]
async fn a_transaction_that_does_not_end_leaves_its_slots_where_they_are() {
    let (source, target) = pair().await;
    let slots = slots_of(&["r"]);
    let mut paused = Side::holding(&source, "select leasehold.join_member('r', 'alice')").await;
    let (from, to) = (source.settings(), target.settings());
    let mut moving = Move::begin(&from, &to, &slots, Duration::from_millis(100))
        .await
        .unwrap();
    let refused = moving.take(&slots).await.unwrap_err().to_string();
    assert!(refused.contains("the source serves on"), "{refused}");
    let slot = slots.numbers()[0];
    assert_eq!(state(&source, slot).await, SlotState::Owned);
    assert_eq!(state(&target, slot).await, SlotState::Absent);
    paused.run("commit").await;
    assert_eq!(join(&source, "r", "bob").await, "joined 1 1");
    // With the transaction gone the same move goes through.
    moving.take(&slots).await.unwrap();
    moving.close().await.unwrap();
    assert_eq!(join(&target, "r", "alice").await, "joined 2 2");
    source.verify().await;
    target.verify().await;
}

#[tokio::test]
async fn a_room_that_somebody_holds_leaves_its_slots_where_they_are() {
    let (source, target) = pair().await;
    let slots = slots_of(&["r"]);
    join(&source, "r", "alice").await;
    // It opens nothing, so it is not waited for at the fence, but at the room.
    let mut holder = Side::holding(
        &source,
        "select from leasehold.rooms where room_id = 'r' for update",
    )
    .await;
    let (from, to) = (source.settings(), target.settings());
    let mut moving = Move::begin(&from, &to, &slots, Duration::from_millis(100))
        .await
        .unwrap();
    moving.take(&slots).await.unwrap_err();
    holder.run("commit").await;
    let renewed = ask(
        &source,
        "select leasehold.heartbeat_member('r', 'alice', 1)",
    )
    .await;
    assert_eq!(renewed, ["renewed"]);
    moving.take(&slots).await.unwrap();
    moving.close().await.unwrap();
    assert_eq!(join(&target, "r", "alice").await, "joined 2 2");
    source.verify().await;
}

/// The drain must come before the position up to which history is taken over.
#[tokio::test]
async fn what_is_committed_between_the_first_copy_and_the_fence_goes_along() {
    let (source, target) = pair().await;
    let slots = slots_of(&["r", "late"]);
    join(&source, "r", "alice").await;
    let mut moving = moving(&source, &target, &slots).await;
    moving.arrive(&slots).await.unwrap();
    moving.take_history(&slots).await.unwrap();
    let mut late = Side::holding(&source, "select leasehold.join_member('late', 'carol')").await;
    ask(&source, "select leasehold.close_room('r')").await;
    join(&source, "r", "alice").await;
    moving.fence(&slots).await.unwrap();
    late.run("select leasehold.leave_member('late', 'carol', 1)")
        .await;
    late.run("commit").await;
    moving.drain().await.unwrap();
    moving.end_rooms(&slots).await.unwrap();
    moving.take_history(&slots).await.unwrap();
    moving.own(&slots).await.unwrap();
    moving.forget(&slots).await.unwrap();
    moving.close().await.unwrap();
    assert_eq!(join(&target, "r", "alice").await, "joined 3 3");
    assert_eq!(join(&target, "late", "carol").await, "joined 2 2");
    let events = "select count(*) from leasehold.membership_events where era = 0";
    assert_eq!(ask(&target, events).await, ["6"]);
    source.verify().await;
    target.verify().await;
}

/// A place that was looked up before the lock would be out of date after it.
#[tokio::test]
async fn a_join_that_waits_for_its_room_when_the_fence_falls_is_refused() {
    let (source, target) = pair().await;
    let slots = slots_of(&["r"]);
    join(&source, "r", "alice").await;
    let mut holder = Side::holding(
        &source,
        "select from leasehold.rooms where room_id = 'r' for update",
    )
    .await;
    let late = "select outcome from leasehold.join_member('r', 'late')";
    let late = Side::new(&source).await.waits(late).await;
    let mut moving = moving(&source, &target, &slots).await;
    moving.arrive(&slots).await.unwrap();
    moving.fence(&slots).await.unwrap();
    holder.run("commit").await;
    assert_eq!(late.answer().await.unwrap(), ["misdirected"]);
    moving.take(&slots).await.unwrap();
    moving.close().await.unwrap();
    assert_eq!(join(&target, "r", "late").await, "joined 1 2");
    source.verify().await;
    target.verify().await;
}
