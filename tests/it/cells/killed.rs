//! A mover that is killed after any of its steps: the move is run again, or called off.

use leasehold::cells::Move;
use leasehold::domain::{SlotState, Slots};

use super::super::support::Database;
use super::{ask, join, moving, pair, slots_of, state, take};

const STEPS: usize = 8;

/// Takes the first so many steps of a move.
async fn begun(source: &Database, target: &Database, slots: &Slots, steps: usize) -> Move {
    let mut moving = moving(source, target, slots).await;
    for step in 0..steps {
        match step {
            0 => moving.arrive(slots).await.unwrap(),
            1 => moving.take_history(slots).await.map(drop).unwrap(),
            2 => moving.fence(slots).await.unwrap(),
            3 => moving.drain().await.unwrap(),
            4 => moving.end_rooms(slots).await.map(drop).unwrap(),
            5 => moving.take_history(slots).await.map(drop).unwrap(),
            6 => moving.own(slots).await.unwrap(),
            _ => moving.forget(slots).await.unwrap(),
        }
    }
    moving
}

/// A room with a life behind it and somebody in it.
async fn lived_in(source: &Database) {
    join(source, "r", "alice").await;
    ask(source, "select leasehold.close_room('r')").await;
    join(source, "r", "alice").await;
}

async fn owners(source: &Database, target: &Database, slot: i32) -> (SlotState, SlotState) {
    (state(source, slot).await, state(target, slot).await)
}

#[tokio::test]
async fn a_move_that_was_killed_after_any_step_is_run_again() {
    let slots = slots_of(&["r"]);
    for steps in 0..=STEPS {
        let (source, target) = pair().await;
        lived_in(&source).await;
        drop(begun(&source, &target, &slots, steps).await);
        take(&source, &target, &slots).await;
        let owners = owners(&source, &target, slots.numbers()[0]).await;
        assert_eq!(
            owners,
            (SlotState::Absent, SlotState::Owned),
            "after {steps} steps"
        );
        assert_eq!(join(&source, "r", "alice").await, "misdirected");
        assert_eq!(
            join(&target, "r", "alice").await,
            "joined 3 3",
            "after {steps} steps"
        );
        source.verify().await;
        target.verify().await;
    }
}

#[tokio::test]
async fn a_move_that_was_killed_after_any_step_is_called_off() {
    let slots = slots_of(&["r"]);
    for steps in 0..=STEPS {
        let (source, target) = pair().await;
        lived_in(&source).await;
        drop(begun(&source, &target, &slots, steps).await);
        let mut moving = moving(&source, &target, &slots).await;
        // Twice, as whoever is not sure would.
        moving.cancel(&slots).await.unwrap();
        moving.cancel(&slots).await.unwrap();
        moving.close().await.unwrap();
        let (source_state, target_state) = owners(&source, &target, slots.numbers()[0]).await;
        let (one, other) = match steps {
            0..=6 => {
                assert_eq!(
                    (source_state, target_state),
                    (SlotState::Owned, SlotState::Absent)
                );
                (&source, &target)
            }
            _ => {
                // It was over: the target owns it.
                assert_eq!(target_state, SlotState::Owned);
                (&target, &source)
            }
        };
        let again = if steps < 5 {
            "joined 3 2"
        } else {
            "joined 3 3"
        };
        assert_eq!(join(one, "r", "alice").await, again, "after {steps} steps");
        assert_eq!(
            join(other, "r", "alice").await,
            "misdirected",
            "after {steps} steps"
        );
        source.verify().await;
        target.verify().await;
        if steps < 7 {
            // And the move can be made later.
            take(&source, &target, &slots).await;
            assert_eq!(
                join(&target, "r", "alice").await.split(' ').nth(1),
                Some("4")
            );
            source.verify().await;
            target.verify().await;
        }
    }
}

#[tokio::test]
async fn a_room_that_is_opened_at_any_step_exists_once() {
    let (source, target) = pair().await;
    // Rooms of one slot would be long to find: a slot each, moved together.
    let names: Vec<String> = (0..=STEPS).map(|n| format!("new-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let slots = slots_of(&names);
    for (steps, name) in names.iter().enumerate() {
        let (source, target) = pair().await;
        drop(begun(&source, &target, &slots, steps).await);
        let answers = [
            join(&source, name, "alice").await,
            join(&target, name, "alice").await,
        ];
        let opened = answers.iter().filter(|a| a.starts_with("joined")).count();
        let expected = usize::from(!(3..=6).contains(&steps));
        assert_eq!(opened, expected, "after {steps} steps: {answers:?}");
        take(&source, &target, &slots).await;
        let next = if !(3..=6).contains(&steps) {
            "joined 2"
        } else {
            "joined 1"
        };
        let joined = join(&target, name, "alice").await;
        assert!(joined.starts_with(next), "after {steps} steps: {joined}");
        source.verify().await;
        target.verify().await;
    }
    source.verify().await;
    target.verify().await;
}

/// One that stood still while its move was called off comes back and goes on.
#[tokio::test]
async fn a_mover_that_was_given_up_owns_nothing_when_it_wakes() {
    let (source, target) = pair().await;
    let slots = slots_of(&["r"]);
    lived_in(&source).await;
    let mut old = begun(&source, &target, &slots, 6).await;
    // Its connections are cut, as whoever calls the move off must do first.
    for database in [&source, &target] {
        database
            .execute(
                "select pg_terminate_backend(pid) from pg_stat_activity
                  where application_name = 'leasehold cell move' and datname = current_database()",
            )
            .await;
    }
    let mut new = moving(&source, &target, &slots).await;
    new.cancel(&slots).await.unwrap();
    old.own(&slots).await.unwrap_err();
    old.forget(&slots).await.unwrap_err();
    new.close().await.unwrap();
    let owners = owners(&source, &target, slots.numbers()[0]).await;
    assert_eq!(owners, (SlotState::Owned, SlotState::Absent));
    assert_eq!(join(&source, "r", "alice").await, "joined 3 3");
}
