//! Every kind of violation, made by hand past the constraints: a checker that never complains proves nothing.

use std::time::Duration;

use leasehold::domain::RoomId;

use super::support::{Database, join, join_on, session, t};

/// Room `r` with alice at epoch 2 on one device and 3 on her phone, and bob; room `s` closed once and open again.
async fn sound() -> Database {
    let database = Database::new().await;
    let joins = [
        join("r", "alice"),
        join("r", "alice"),
        join_on("r", "alice", "phone"),
        join("r", "bob"),
        join("s", "carol"),
    ];
    let store = database.at(t(0));
    store.join(&joins, Default::default()).await.unwrap();
    store.leave(&[session("s", "carol", "", 1)]).await.unwrap();
    store
        .join(&[join("s", "carol")], Default::default())
        .await
        .unwrap();
    database.verify().await;
    // What would stand in the way of the tampering.
    database
        .execute(
            "alter table leasehold.members drop constraint members_room_fkey;
             alter table leasehold.membership_events drop constraint membership_events_once;
             alter table leasehold.membership_events drop constraint membership_events_pkey;
             alter table leasehold.rooms drop constraint rooms_member_count_within_peak",
        )
        .await;
    database
}

/// Whether verify says this of a sound database in which these statements were run.
async fn is_reported(tampering: &str, invariant: i32, detail: &str) {
    let database = sound().await;
    database.execute(tampering).await;
    let violations = database.store.verify().await.unwrap();
    assert!(
        violations
            .iter()
            .any(|v| v.invariant == invariant && v.detail.ends_with(detail)),
        "{violations:#?}"
    );
}

#[tokio::test]
async fn it_reports_a_device_that_holds_an_older_epoch_than_it_joined() {
    is_reported(
        "update leasehold.members set epoch = 1 where user_id = 'alice' and device_id = ''",
        1,
        "device '' holds epoch 1, but epoch 2 was joined later on it",
    )
    .await;
}

#[tokio::test]
async fn it_reports_an_epoch_held_by_two_devices() {
    is_reported(
        "update leasehold.members set epoch = 3 where user_id = 'alice'",
        1,
        "epoch 3 is held by 2 devices",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_person_with_two_places_in_the_list() {
    is_reported(
        "update leasehold.members set arrival = 9 where device_id = 'phone'",
        1,
        "the devices of one person have 2 places in the list",
    )
    .await;
}

#[tokio::test]
async fn it_reports_an_epoch_that_went_back() {
    is_reported(
        "update leasehold.membership_events set epoch = 5 - epoch
          where user_id = 'alice' and kind = 'joined' and epoch > 1",
        2,
        "epoch 2 was joined after epoch 3",
    )
    .await;
}

#[tokio::test]
async fn it_reports_an_epoch_that_was_handed_out_twice() {
    is_reported(
        "update leasehold.membership_events set epoch = 2
          where user_id = 'alice' and kind = 'joined' and epoch = 3",
        2,
        "epoch 2 was joined after epoch 2",
    )
    .await;
}

#[tokio::test]
async fn it_reports_changes_of_a_room_that_are_swapped_in_the_feed() {
    is_reported(
        "update leasehold.membership_events set xact_id = '3' where room_id = 'r' and version = 2",
        7,
        "version 2 of generation 1 stands in the feed before the change before it",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_history_that_was_restored_into_another_cluster() {
    is_reported(
        "update leasehold.feed set system_identifier = 7",
        7,
        "run leasehold.renumber_changes()",
    )
    .await;
}

#[tokio::test]
async fn of_one_room_or_of_what_changed_lately_it_reports_what_is_wrong_there() {
    let database = Database::new().await;
    database
        .execute(
            "select leasehold.join_member(r, 'alice') from unnest(array['a', 'b']) as r;
             update leasehold.membership_events set recorded_at = recorded_at - interval '2 days' where room_id = 'a';
             update leasehold.members set last_seen_at = last_seen_at - interval '2 days' where room_id = 'a';
             update leasehold.rooms set member_count = 2, peak_members = 2",
        )
        .await;
    let rooms = async |room: Option<&str>, hours: Option<u64>| {
        let room = room.map(|room| RoomId::parse(room).unwrap());
        let found = database
            .store
            .verify_part(room.as_ref(), hours.map(Duration::from_hours))
            .await
            .unwrap();
        let rooms = found
            .into_iter()
            .map(|violation| violation.room_id.unwrap());
        rooms.collect::<Vec<_>>()
    };
    assert_eq!(rooms(Some("a"), None).await, ["a"]);
    assert_eq!(rooms(Some("b"), None).await, ["b"]);
    assert_eq!(rooms(None, Some(1)).await, ["b"]);
    assert_eq!(rooms(None, Some(72)).await.len(), 2);
    assert_eq!(rooms(Some("c"), None).await.len(), 0);
}

#[tokio::test]
async fn it_reports_a_count_that_has_drifted() {
    is_reported(
        "update leasehold.rooms set member_count = 3 where room_id = 'r'",
        5,
        "member_count is 3, but 2 persons have a row",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_room_without_members() {
    is_reported(
        "delete from leasehold.members where room_id = 's';
         update leasehold.rooms set member_count = 0 where room_id = 's'",
        5,
        "member_count is 0, but 0 persons have a row",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_lease_that_ends_before_the_rooms_bound() {
    let past = format!(
        "update leasehold.rooms set next_end = leasehold.micros({}) where room_id = 'r'",
        super::support::race::at(15_001)
    );
    let database = sound().await;
    database.execute(past).await;
    let violations = database.store.verify().await.unwrap();
    assert_eq!(violations.len(), 1, "{violations:#?}");
    assert_eq!(violations[0].invariant, 5);
    assert!(violations[0].detail.starts_with("next_end is"));
}

#[tokio::test]
async fn it_reports_a_room_that_is_not_its_newest_lifetime() {
    let detail = "generation 2 of the room is not above all that ended";
    for tampering in [
        "update leasehold.closed_generations set generation = 3 where room_id = 's'",
        "update leasehold.closed_generations set generation = 2 where room_id = 's'",
        "insert into leasehold.generation_floors values ('s', 2)",
    ] {
        is_reported(tampering, 6, detail).await;
    }
}

#[tokio::test]
async fn it_reports_a_lifetime_whose_events_are_anothers() {
    let detail = "generation 1 should have events 1 to 2, but has 0 up to ";
    is_reported(
        "update leasehold.closed_generations set lifetime_id = -1 where room_id = 's'",
        7,
        detail,
    )
    .await;
    is_reported(
        "update leasehold.membership_events set lifetime_id = -1 where room_id = 's' and generation = 1",
        7,
        detail,
    )
    .await;
}

#[tokio::test]
async fn it_reports_an_end_in_another_lifetime_than_the_join() {
    is_reported(
        "update leasehold.membership_events set generation = 2
          where room_id = 's' and kind = 'ended'",
        6,
        "epoch 1 ended in generation 2, not in the 1 it joined",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_member_of_an_earlier_lifetime() {
    is_reported(
        "update leasehold.membership_events set generation = 1, version = 3
          where room_id = 's' and generation = 2",
        6,
        "epoch 2 joined generation 1, but the room is generation 2",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_lost_event() {
    is_reported(
        "delete from leasehold.membership_events where room_id = 'r' and version = 2",
        7,
        "generation 1 should have events 1 to 5, but has 4 up to 5",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_lifetime_that_lost_its_whole_history() {
    is_reported(
        "delete from leasehold.membership_events where room_id = 's' and generation = 1",
        7,
        "generation 1 should have events 1 to 2, but has 0 up to ",
    )
    .await;
}

#[tokio::test]
async fn it_reports_events_of_a_lifetime_that_was_never_recorded() {
    is_reported(
        "delete from leasehold.closed_generations where room_id = 's' and generation = 1",
        7,
        "generation 1 should have events 1 to , but has 2 up to 2",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_member_that_never_joined() {
    is_reported(
        "update leasehold.members set user_id = 'mallory' where user_id = 'bob'",
        7,
        "epoch 1 is a member without a join in the history",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_member_that_was_lost() {
    is_reported(
        "delete from leasehold.members where user_id = 'bob'",
        7,
        "epoch 1 is joined and not ended in the history, but no member",
    )
    .await;
}

#[tokio::test]
async fn it_reports_a_member_whose_end_is_recorded() {
    is_reported(
        "insert into leasehold.membership_events
                (lifetime_id, room_id, generation, version, user_id, device_id, epoch, kind, reason,
                 occurred_at, recorded_at, last_seen_at, member_count, xact_id, era)
         values ((select lifetime_id from leasehold.rooms where room_id = 'r'), 'r', 1, 6, 'bob', '', 1, 'ended', 'left', now(), now(), now(), 1, pg_current_xact_id(), 1)",
        7,
        "epoch 1 is a member without a join in the history",
    )
    .await;
}

#[tokio::test]
async fn it_reports_an_end_on_a_device_that_did_not_join() {
    is_reported(
        "update leasehold.membership_events set device_id = 'tablet'
          where room_id = 's' and kind = 'ended'",
        7,
        "epoch 1 ended on device 'tablet' without having joined on it",
    )
    .await;
}

#[tokio::test]
async fn it_reports_an_end_before_the_join() {
    is_reported(
        "update leasehold.membership_events set version = 3 - version
          where room_id = 's' and generation = 1",
        7,
        "epoch 1 ended at version 1, before it joined at version 2",
    )
    .await;
}

#[tokio::test]
async fn it_reports_an_event_that_counts_the_members_wrong() {
    is_reported(
        "update leasehold.membership_events set member_count = 9
          where room_id = 's' and kind = 'ended'",
        7,
        "version 2 of generation 1 says that 9 members are left, but it is 0",
    )
    .await;
}
