//! Refusals in a batch: each limit counts those that the batch itself let in before.

use leasehold::domain::{IfPresent, Join, JoinLimits};
use leasehold::store::StoreError;

use super::super::support::{Database, join, join_on, t};
use super::{joined, members};

fn members_per_room(limit: i32) -> JoinLimits {
    JoinLimits {
        members_per_room: Some(limit),
        ..JoinLimits::default()
    }
}

fn devices_per_member(limit: i32) -> JoinLimits {
    JoinLimits {
        devices_per_member: Some(limit),
        ..JoinLimits::default()
    }
}

fn rooms(limit: i32) -> JoinLimits {
    JoinLimits {
        rooms: Some(limit),
        ..JoinLimits::default()
    }
}

async fn opened(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select room_id as "room_id!" from leasehold.room_lifetimes order by room_id"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_full_room_lets_in_those_who_are_there_already_and_nobody_new() {
    let database = Database::new().await;
    let store = database.at(t(0));
    joined(&store, &[join("r", "alice")], members_per_room(2)).await;
    let batch = [
        join("r", "bob"),
        join("r", "carol"),
        join("r", "alice"),
        join_on("r", "bob", "phone"),
        join("r", "carol"),
        join("s", "carol"),
        Join {
            if_present: IfPresent::Reject,
            ..join("r", "dave")
        },
    ];
    let answers = joined(&store, &batch, members_per_room(2)).await;
    assert_eq!(
        answers,
        [
            "joined 1",
            "room_full",
            "joined 2",
            "joined 2",
            "room_full",
            "joined 1",
            "room_full"
        ]
    );
    database.verify().await;
}

#[tokio::test]
async fn a_seat_that_an_expired_member_held_is_free() {
    let database = Database::new().await;
    joined(
        &database.at(t(0)),
        &[join("r", "alice")],
        members_per_room(1),
    )
    .await;
    let bob = [join("r", "bob")];
    let at_its_end = joined(&database.at(t(15_000)), &bob, members_per_room(1)).await;
    assert_eq!(at_its_end, ["room_full"]);
    let past = joined(&database.at(t(15_001)), &bob, members_per_room(1)).await;
    assert_eq!(past, ["joined 1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_person_may_replace_a_device_but_not_add_one_too_many() {
    let database = Database::new().await;
    let store = database.at(t(0));
    joined(&store, &[join("r", "alice")], devices_per_member(2)).await;
    let batch = [
        join_on("r", "alice", "phone"),
        join_on("r", "alice", "tablet"),
        join("r", "alice"),
        join_on("r", "alice", "phone"),
        join_on("r", "alice", "tablet"),
        join_on("r", "bob", "tablet"),
    ];
    let answers = joined(&store, &batch, devices_per_member(2)).await;
    assert_eq!(
        answers,
        [
            "joined 2",
            "too_many_devices",
            "joined 3",
            "joined 4",
            "too_many_devices",
            "joined 1"
        ]
    );
    database.verify().await;
}

#[tokio::test]
async fn at_the_limit_of_rooms_a_room_that_exists_can_be_joined_and_no_other() {
    let database = Database::new().await;
    let store = database.at(t(0));
    joined(&store, &[join("r", "alice")], rooms(2)).await;
    let batch = [
        join("s", "alice"),
        join("t", "alice"),
        join("s", "bob"),
        join("r", "bob"),
        join("t", "bob"),
    ];
    let answers = joined(&store, &batch, rooms(2)).await;
    assert_eq!(
        answers,
        [
            "joined 1",
            "too_many_rooms",
            "joined 1",
            "joined 1",
            "too_many_rooms"
        ]
    );
    assert_eq!(opened(&database).await, ["r", "s"]);
    database.verify().await;
}

async fn with_block(until_ms: i64) -> Database {
    let database = Database::new().await;
    let until = super::super::support::race::at(until_ms);
    database
        .execute(format!(
            "insert into leasehold.blocks values ('r', 'alice', {until}, {until})"
        ))
        .await;
    database
}

#[tokio::test]
async fn a_block_holds_until_its_end_and_not_at_it() {
    let database = with_block(1_000).await;
    let alice = [join("r", "alice")];
    let before = joined(&database.at(t(999)), &alice, Default::default()).await;
    assert_eq!(before, ["blocked"]);
    assert!(
        opened(&database).await.is_empty(),
        "a refusal opens no room"
    );
    let at = joined(&database.at(t(1_000)), &alice, Default::default()).await;
    assert_eq!(at, ["joined 1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_blocked_person_takes_no_seat_and_opens_no_room() {
    let database = with_block(1_000).await;
    let limits = JoinLimits {
        members_per_room: Some(1),
        rooms: Some(1),
        ..JoinLimits::default()
    };
    let batch = [
        join("r", "alice"),
        join("s", "bob"),
        join("r", "alice"),
        join("s", "alice"),
    ];
    let answers = joined(&database.at(t(0)), &batch, limits).await;
    assert_eq!(answers, ["blocked", "joined 1", "blocked", "room_full"]);
    assert_eq!(members(&database).await, ["s bob '' 1 "]);
    assert_eq!(opened(&database).await, ["s"]);
    database.verify().await;
}

/// 256 characters of four bytes each, in no order that compresses.
fn long_id() -> String {
    (0..256)
        .map(|_| char::from_u32(rand::random_range(0x20000..0x2a000)).unwrap())
        .collect()
}

/// Not a lasting failure of the database: the others of the batch must not be told to try again for ever.
#[tokio::test]
async fn ids_that_are_together_too_long_for_an_index_are_the_fault_of_the_request() {
    let database = Database::new().await;
    let (room, user, device) = (long_id(), long_id(), long_id());
    let unnamed = joined(
        &database.at(t(0)),
        &[join(&room, &user)],
        Default::default(),
    )
    .await;
    assert_eq!(unnamed, ["joined 1"]);
    let named = [join_on(&room, &user, &device)];
    let refused = database.at(t(0)).join(&named, Default::default()).await;
    assert!(
        matches!(refused, Err(StoreError::Rejected(_))),
        "{refused:?}"
    );
    database.verify().await;
}
