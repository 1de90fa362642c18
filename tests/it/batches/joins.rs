//! Joins of the same person, and of several rooms, in one batch.

use leasehold::domain::{IfPresent, Join};
use serde_json::json;

use super::super::support::{Database, join, join_on, t};
use super::{history, joined, members};

fn with_cursor(join: Join, line: i64) -> Join {
    Join {
        cursor: Some(json!(line)),
        ..join
    }
}

fn or_reject(join: Join) -> Join {
    Join {
        if_present: IfPresent::Reject,
        ..join
    }
}

#[tokio::test]
async fn of_two_joins_of_one_member_the_later_supersedes_the_earlier() {
    let database = Database::new().await;
    let batch = [
        with_cursor(join("r", "alice"), 1),
        with_cursor(join("r", "bob"), 2),
        with_cursor(join("r", "alice"), 3),
    ];
    let answers = joined(&database.at(t(0)), &batch, Default::default()).await;

    assert_eq!(answers, ["joined 1", "joined 1", "joined 2"]);
    assert_eq!(members(&database).await, ["r alice '' 2 3", "r bob '' 1 2"]);
    assert_eq!(
        history(&database).await,
        [
            "r 1 alice 1 joined",
            "r 2 bob 1 joined",
            "r 3 alice 1 superseded",
            "r 4 alice 2 joined",
        ]
    );
    database.verify().await;
}

#[tokio::test]
async fn the_devices_of_one_person_share_epochs_and_a_place_in_the_list() {
    let database = Database::new().await;
    let batch = [
        join_on("r", "alice", "phone"),
        join("r", "bob"),
        join_on("r", "alice", "laptop"),
        join_on("r", "alice", "phone"),
    ];
    let answers = joined(&database.at(t(0)), &batch, Default::default()).await;

    assert_eq!(answers, ["joined 1", "joined 1", "joined 2", "joined 3"]);
    assert_eq!(
        members(&database).await,
        ["r alice 'laptop' 2 ", "r alice 'phone' 3 ", "r bob '' 1 "]
    );
    let persons = sqlx::query!("select member_count, peak_members, version from leasehold.rooms")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(
        (persons.member_count, persons.peak_members, persons.version),
        (2, 2, 5)
    );
    database.verify().await;
}

#[tokio::test]
async fn a_person_let_in_by_the_batch_is_present_for_its_later_requests() {
    let database = Database::new().await;
    let batch = [
        or_reject(join("r", "alice")),
        or_reject(join_on("r", "alice", "phone")),
        or_reject(join_on("r", "alice", "tablet")),
        join_on("r", "alice", "phone"),
        or_reject(join("r", "bob")),
    ];
    let answers = joined(&database.at(t(0)), &batch, Default::default()).await;

    assert_eq!(
        answers,
        [
            "joined 1",
            "already_present",
            "already_present",
            "joined 2",
            "joined 1"
        ]
    );
    database.verify().await;
}

#[tokio::test]
async fn a_batch_over_expired_empty_and_new_rooms_gives_each_its_generation() {
    let database = Database::new().await;
    let first = [join("expired", "alice"), join("left", "alice")];
    joined(&database.at(t(0)), &first, Default::default()).await;
    let left = super::super::support::session("left", "alice", "", 1);
    database.at(t(100)).leave(&[left]).await.unwrap();

    let batch = [
        join("new", "bob"),
        join("expired", "bob"),
        join("left", "bob"),
        join("expired", "alice"),
    ];
    let answers = database
        .at(t(15_001))
        .join(&batch, Default::default())
        .await
        .unwrap();
    let generations: Vec<_> = answers
        .iter()
        .map(|a| a.as_ref().unwrap().generation)
        .collect();
    assert_eq!(generations, [1, 2, 2, 2]);
    assert_eq!(answers[3].as_ref().unwrap().epoch, 2);
    database.verify().await;
}

/// What a purge leaves behind, written here by hand.
#[tokio::test]
async fn epochs_and_generations_go_on_above_what_was_purged() {
    let database = Database::new().await;
    database
        .execute(
            "insert into leasehold.epoch_floors values ('r', 'alice', 41);
             insert into leasehold.generation_floors values ('r', 7)",
        )
        .await;
    let batch = [join("r", "alice"), join("r", "bob"), join("r", "alice")];
    let answers = database
        .at(t(0))
        .join(&batch, Default::default())
        .await
        .unwrap();
    let epochs: Vec<_> = answers.iter().map(|a| a.as_ref().unwrap().epoch).collect();
    assert_eq!(epochs, [42, 1, 43]);
    assert!(answers.iter().all(|a| a.as_ref().unwrap().generation == 8));
    database.verify().await;
}

#[tokio::test]
async fn a_join_after_the_whole_history_was_purged_still_has_a_higher_epoch() {
    let database = Database::new().await;
    joined(
        &database.at(t(0)),
        &[join("r", "alice")],
        Default::default(),
    )
    .await;
    database.at(t(20_000)).sweep(1000).await.unwrap();
    database
        .execute(
            "insert into leasehold.epoch_floors select room_id, user_id, max(epoch)
               from leasehold.membership_events group by room_id, user_id;
             insert into leasehold.generation_floors select room_id, max(generation)
               from leasehold.closed_generations group by room_id;
             delete from leasehold.membership_events;
             delete from leasehold.closed_generations",
        )
        .await;
    let answers = database
        .at(t(30_000))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let again = answers[0].as_ref().unwrap();
    assert_eq!((again.epoch, again.generation), (2, 2));
    database.verify().await;
}
