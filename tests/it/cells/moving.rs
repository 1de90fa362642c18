//! What goes along with a room, and what stays.

use std::time::Duration;

use leasehold::domain::SlotState;

use super::super::support::{Database, purge_settled};
use super::{ask, cell, join, moving, pair, slots_of, state, take};

const PEOPLE: &str =
    "select string_agg(concat_ws(' ', generation, user_id, epoch, end_reason), ', '
                                        order by generation, joined_event_id)
                        from leasehold.sessions where room_id = 'r' and user_id not like 'erased%'";

/// The items of the whole feed.
async fn told(database: &Database) -> Vec<String> {
    let sql = "select concat_ws(' ', kind, generation, user_id, epoch, reason)
                 from leasehold.changes(p_limit => 1000) where room_id = 'r'";
    ask(database, sql).await
}

#[tokio::test]
async fn a_room_that_moves_goes_on_where_it_was() {
    let (source, target) = pair().await;
    let slots = slots_of(&["r"]);
    // Two lifetimes that are over, the first with somebody who was erased; a third that goes on.
    join(&source, "r", "alice").await;
    join(&source, "r", "bob").await;
    ask(
        &source,
        "select leasehold.close_room('r', p_by => 'host', p_note => 'late')",
    )
    .await;
    join(&source, "r", "alice").await;
    join(&source, "r", "carol").await;
    source
        .store
        .erase_user(&leasehold::domain::UserId::parse("bob").unwrap())
        .await
        .unwrap();
    ask(&source, "select leasehold.close_room('r')").await;
    join(&source, "r", "alice").await;
    ask(
        &source,
        "select leasehold.remove_member('r', 'mallory', p_block_ms => 3600000)",
    )
    .await;
    join(&source, "stays", "alice").await;
    let told_before = told(&source).await;

    take(&source, &target, &slots).await;

    let (source_state, target_state) = (
        state(&source, slots.numbers()[0]),
        state(&target, slots.numbers()[0]),
    );
    assert_eq!(
        (source_state.await, target_state.await),
        (SlotState::Absent, SlotState::Owned)
    );
    assert_eq!(join(&source, "r", "alice").await, "misdirected");
    let heartbeat = "select leasehold.heartbeat_member('r', 'alice', 3)";
    assert_eq!(ask(&source, heartbeat).await, ["misdirected"]);
    assert_eq!(ask(&target, heartbeat).await, ["moved"]);
    let lived =
        "1 alice 1 room_closed, 2 alice 2 room_closed, 2 carol 1 room_closed, 3 alice 3 moved";
    assert_eq!(ask(&target, PEOPLE).await, [lived]);
    // Epochs and generations go on, also of who was erased; who was blocked is.
    assert_eq!(join(&target, "r", "alice").await, "joined 4 4");
    assert_eq!(join(&target, "r", "bob").await, "joined 2 4");
    assert_eq!(join(&target, "r", "mallory").await, "blocked");
    // What does not move is not disturbed.
    assert_eq!(
        ask(
            &source,
            "select leasehold.heartbeat_member('stays', 'alice', 1)"
        )
        .await,
        ["renewed"]
    );
    source.verify().await;
    target.verify().await;

    // Over both feeds everything is told once, where it happened.
    let ends = ["ended 3 alice 3 moved", "room_closed 3 moved"].map(str::to_owned);
    assert_eq!(told(&source).await, [told_before, ends.to_vec()].concat());
    let began = ["room_opened 4", "joined 4 alice 4", "joined 4 bob 2"];
    assert_eq!(told(&target).await, began);
}

#[tokio::test]
async fn a_room_that_comes_back_finds_what_it_left_and_brings_the_rest() {
    let (one, two) = pair().await;
    let slots = slots_of(&["r"]);
    join(&one, "r", "alice").await;
    take(&one, &two, &slots).await;
    assert_eq!(join(&two, "r", "alice").await, "joined 2 2");
    ask(
        &two,
        "select leasehold.remove_member('r', 'mallory', p_block_ms => 3600000)",
    )
    .await;
    take(&two, &one, &slots).await;
    assert_eq!(join(&one, "r", "alice").await, "joined 3 3");
    assert_eq!(join(&one, "r", "mallory").await, "blocked");
    ask(
        &one,
        "select leasehold.remove_member('r', 'mallory', p_block_ms => 0)",
    )
    .await;
    take(&one, &two, &slots).await;
    // A block that was lifted is not there again.
    assert_eq!(join(&two, "r", "mallory").await, "joined 1 4");
    assert_eq!(join(&two, "r", "alice").await, "joined 4 4");
    one.verify().await;
    two.verify().await;
    let lived = ["1 alice 1 moved, 2 alice 2 moved, 3 alice 3 moved, 4 mallory 1, 4 alice 4"];
    assert_eq!(ask(&two, PEOPLE).await, lived);
}

#[tokio::test]
async fn what_was_purged_before_or_after_a_move_does_not_come_back() {
    let (one, two) = pair().await;
    let slots = slots_of(&["r"]);
    for _ in 0..3 {
        join(&one, "r", "alice").await;
        ask(&one, "select leasehold.close_room('r')").await;
    }
    purge_settled(&one.store, Duration::ZERO).await;
    join(&one, "r", "alice").await;
    take(&one, &two, &slots).await;
    assert_eq!(
        ask(&two, "select count(*) from leasehold.membership_events").await,
        ["2"]
    );
    // Imported history is forgotten as any, and takes no place in the feed with it.
    let feed = "select next from leasehold.changes('latest')";
    let before = ask(&two, feed).await;
    let purged = purge_settled(&two.store, Duration::ZERO).await;
    assert_eq!((purged.events_purged, purged.generations_purged), (2, 1));
    assert_eq!(ask(&two, feed).await, before);
    assert_eq!(join(&two, "r", "alice").await, "joined 5 5");
    take(&two, &one, &slots).await;
    take(&one, &two, &slots).await;
    assert_eq!(join(&two, "r", "alice").await, "joined 6 6");
    let kept = ask(
        &two,
        "select min(generation) from leasehold.closed_generations",
    )
    .await;
    assert_eq!(kept, ["5"], "what was purged here came back");
    one.verify().await;
    two.verify().await;
}

#[tokio::test]
async fn imported_history_is_purged_when_it_is_old_enough() {
    let (one, two) = pair().await;
    join(&one, "r", "alice").await;
    take(&one, &two, &slots_of(&["r"])).await;
    let purged = purge_settled(&two.store, Duration::from_secs(3_600)).await;
    assert_eq!(purged.events_purged, 0);
    two.execute("update leasehold.membership_events set xact_id = (xact_id::text::bigint - 7200000000)::text::xid8 where era = 0")
        .await;
    let purged = purge_settled(&two.store, Duration::from_secs(3_600)).await;
    assert_eq!(purged.events_purged, 2);
    assert_eq!(join(&two, "r", "alice").await, "joined 2 2");
    two.verify().await;
}

#[tokio::test]
async fn a_move_is_between_two_that_can_be_told_apart_and_agree() {
    let (source, target) = pair().await;
    let slots = slots_of(&["r"]);
    let refusal = async |source: &Database, target: &Database| {
        let (source, target) = (source.settings(), target.settings());
        let begun = leasehold::cells::Move::begin(&source, &target, &slots, super::PATIENCE);
        match begun.await {
            Ok(mut moving) => moving.take(&slots).await.unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    // Wrong numbering: a third database that owns the slot too.
    let third = cell("all").await;
    let said = refusal(&source, &third).await;
    assert!(
        said.contains("is owned in the source and owned in the target"),
        "{said}"
    );
    // A copy.
    let name = ask(&source, "select name from leasehold.feed")
        .await
        .remove(0);
    third
        .execute(format!("update leasehold.feed set name = '{name}'"))
        .await;
    let said = refusal(&source, &third).await;
    assert!(said.contains("is a copy of the other"), "{said}");
    // Another move.
    let held = moving(&source, &target, &slots).await;
    let said = refusal(&source, &target).await;
    assert!(said.contains("another move"), "{said}");
    held.close().await.unwrap();
    // A move to a third that has begun elsewhere is neither gone on with nor called off there.
    let fourth = cell("none").await;
    let mut begun = moving(&source, &target, &slots).await;
    begun.arrive(&slots).await.unwrap();
    begun.fence(&slots).await.unwrap();
    begun.close().await.unwrap();
    let said = refusal(&source, &fourth).await;
    assert!(said.contains("in a move with the database"), "{said}");
    let mut other = moving(&source, &fourth, &slots).await;
    assert!(other.cancel(&slots).await.is_err());
    other.close().await.unwrap();
    assert_eq!(state(&source, slots.numbers()[0]).await, SlotState::Leaving);
    take(&source, &target, &slots).await;
    assert_eq!(join(&target, "r", "alice").await, "joined 1 1");
}
