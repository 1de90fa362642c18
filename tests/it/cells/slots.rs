//! Which slot a room is of, and which slots a database owns.

use leasehold::domain::{SlotState, slot_of};

use super::super::support::race::Side;
use super::super::support::{Database, room};
use super::{ask, cell, join, slots_of};

/// How much there is of anything that a call may leave behind.
async fn traces(database: &Database) -> Vec<String> {
    let tables = [
        "rooms",
        "members",
        "blocks",
        "membership_events",
        "closed_generations",
        "epoch_floors",
    ];
    let counts = tables.map(|table| format!("(select count(*) from leasehold.{table})"));
    ask(
        database,
        &format!("select concat_ws(' ', {})", counts.join(", ")),
    )
    .await
}

#[tokio::test]
async fn the_slot_of_a_room_is_the_same_in_rust_and_in_sql() {
    let database = cell("all").await;
    let mut ids: Vec<String> = (0..500).map(|n| format!("room-{n}")).collect();
    ids.extend(["a b/c", "é", "\u{10348}", "'\"\\", "%2F"].map(str::to_owned));
    ids.push("x".repeat(256));
    let mut found = Vec::new();
    for id in &ids {
        let quoted = id.replace('\'', "''");
        let slot = ask(&database, &format!("select leasehold.slot_of('{quoted}')")).await;
        assert_eq!(slot[0], slot_of(&room(id)).to_string(), "{id}");
        found.push(slot[0].clone());
    }
    found.sort();
    found.dedup();
    assert!(
        found.len() > 400,
        "{} slots of {} rooms",
        found.len(),
        ids.len()
    );
}

#[tokio::test]
async fn a_database_that_was_told_nothing_owns_every_slot() {
    let database = cell("all").await;
    let slots = database.store.slots().await.unwrap();
    assert_eq!(slots.len(), 4_096);
    assert!(slots.iter().all(|(_, state, _)| *state == SlotState::Owned));
    assert_eq!(
        ask(&database, "select count(*) from leasehold.slots").await,
        ["0"]
    );
    assert_eq!(join(&database, "r", "alice").await, "joined 1 1");
}

#[tokio::test]
async fn a_join_of_another_cells_room_is_refused_and_leaves_no_trace() {
    let here = slots_of(&["here"]);
    let database = cell(&here.to_string()).await;
    let before = traces(&database).await;
    assert_eq!(join(&database, "elsewhere", "alice").await, "misdirected");
    assert_eq!(traces(&database).await, before);

    // In a batch each of the two has its own answer.
    let batch = ask(
        &database,
        "select array_to_string(outcomes, ' ')
           from leasehold.join_members(array['elsewhere', 'here', 'elsewhere'], array['a', 'b', 'c'],
                                       array['', '', ''], array[15000, 15000, 15000], p_max_rooms => 1)",
    );
    assert_eq!(batch.await, ["misdirected joined misdirected"]);
    assert_eq!(database.rows().await, (1, 1));
    database.verify().await;
}

#[tokio::test]
async fn a_removal_or_closing_of_another_cells_room_blocks_nobody() {
    let database = cell("none").await;
    let before = traces(&database).await;
    for call in [
        "remove_member('r', 'alice', p_block_ms => 60000)",
        "remove_member('r', 'alice', 1)",
        "close_room('r', 60000)",
        "lock_door('r')",
        "set_metadata('r', 'alice', '{}')",
        "set_metadata('r', 'alice', '{}', 1)",
    ] {
        let outcome = ask(&database, &format!("select outcome from leasehold.{call}")).await;
        assert_eq!(outcome, ["misdirected"], "{call}");
    }
    assert_eq!(traces(&database).await, before);
}

#[tokio::test]
async fn what_a_database_owns_is_said_once_and_not_against_its_history() {
    let database = cell("all").await;
    join(&database, "r", "alice").await;
    let other = "none".parse().unwrap();
    let refused = database.store.own_slots(&other).await.unwrap_err();
    assert!(
        refused.to_string().contains("has, or had, rooms of slot"),
        "{refused}"
    );
    let own = slots_of(&["r"]);
    database.store.own_slots(&own).await.unwrap();
    let refused = database.store.own_slots(&own).await.unwrap_err();
    assert!(
        refused.to_string().contains("was told already"),
        "{refused}"
    );
    assert_eq!(join(&database, "r", "bob").await, "joined 1 1");
}

#[tokio::test]
async fn a_snapshot_from_before_a_fence_is_refused_rather_than_wrong() {
    let (source, target) = super::pair().await;
    let slots = slots_of(&["r"]);
    for level in ["repeatable read", "serializable"] {
        let mut late = Side::new(&source).await;
        late.run(format!("begin isolation level {level}")).await;
        late.run("select count(*) from leasehold.rooms").await;
        let mut moving = super::moving(&source, &target, &slots).await;
        moving.arrive(&slots).await.unwrap();
        moving.fence(&slots).await.unwrap();
        moving.drain().await.unwrap();
        let refused = late
            .answer_of("select leasehold.join_member('r', 'late')")
            .await;
        let error = refused.unwrap_err().into_database_error().unwrap();
        assert_eq!(error.code().as_deref(), Some("40001"), "{level}");
        drop(late);
        moving.cancel(&slots).await.unwrap();
        moving.close().await.unwrap();
    }
    assert_eq!(join(&source, "r", "alice").await, "joined 1 1");
}
