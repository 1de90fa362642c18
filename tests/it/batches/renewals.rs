//! Heartbeats and leaves of the same sessions in one batch.

use leasehold::domain::{Heartbeat, StaleReason};
use serde_json::json;

use super::super::support::{Database, Renew, beat, join, join_on, lease, session, t};
use super::{history, joined, members};

#[tokio::test]
async fn of_two_heartbeats_of_one_session_the_later_has_the_last_word() {
    let database = Database::new().await;
    joined(
        &database.at(t(0)),
        &[join("r", "alice")],
        Default::default(),
    )
    .await;
    let first = Heartbeat {
        cursor: Some(Some(json!(1))),
        metadata: Some(Some(json!("kept"))),
        lease: Some(lease(2_000)),
        ..beat("r", "alice", "", 1)
    };
    let second = Heartbeat {
        cursor: Some(Some(json!(2))),
        lease: Some(lease(30_000)),
        ..beat("r", "alice", "", 1)
    };
    let third = beat("r", "alice", "", 1);
    let answers = database
        .at(t(100))
        .renew(&[first, second, third])
        .await
        .unwrap();
    assert_eq!(answers, [Ok(()), Ok(()), Ok(())]);
    let alice = sqlx::query!(
        r#"select cursor, metadata, lease_ms, last_seen_at,
                  leasehold.lease_instant(lease_end) as "lease_expires_at!" from leasehold.members"#
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(alice.cursor, Some(json!(2)));
    assert_eq!(alice.metadata, Some(json!("kept")));
    assert_eq!(alice.lease_ms, 30_000);
    assert_eq!(alice.lease_expires_at, t(30_100));
    assert_eq!(alice.last_seen_at, t(100));
    database.verify().await;
}

#[tokio::test]
async fn every_heartbeat_of_a_batch_is_answered_for_itself() {
    let database = Database::new().await;
    let joins = [
        join("r", "alice"),
        join("r", "alice"),
        join_on("r", "bob", "phone"),
        join("s", "carol"),
    ];
    joined(&database.at(t(0)), &joins, Default::default()).await;
    let left = session("s", "carol", "", 1);
    database.at(t(1)).leave(&[left]).await.unwrap();

    let batch = [
        beat("r", "alice", "", 1),
        beat("r", "alice", "", 2),
        beat("r", "alice", "", 3),
        beat("r", "bob", "", 1),
        beat("r", "bob", "phone", 1),
        beat("s", "carol", "", 1),
        beat("t", "nobody", "", 1),
        beat("r", "alice", "", 2),
    ];
    let answers = database.at(t(100)).renew(&batch).await.unwrap();
    assert_eq!(
        answers,
        [
            Err(StaleReason::Superseded),
            Ok(()),
            Err(StaleReason::UnknownSession),
            Err(StaleReason::UnknownSession),
            Ok(()),
            Err(StaleReason::Left),
            Err(StaleReason::UnknownSession),
            Ok(()),
        ]
    );
    database.verify().await;
}

#[tokio::test]
async fn a_heartbeat_clears_what_it_sets_to_null_and_keeps_what_it_leaves_out() {
    let database = Database::new().await;
    let alice = leasehold::domain::Join {
        cursor: Some(json!({ "line": 1 })),
        metadata: Some(json!({ "name": "Alice" })),
        ..join("r", "alice")
    };
    joined(&database.at(t(0)), &[alice], Default::default()).await;
    let clears = Heartbeat {
        cursor: Some(None),
        ..beat("r", "alice", "", 1)
    };
    database.at(t(1)).renew(&[clears]).await.unwrap();
    let alice = sqlx::query!("select cursor, metadata from leasehold.members")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(alice.cursor, None);
    assert_eq!(alice.metadata, Some(json!({ "name": "Alice" })));
    database.verify().await;
}

#[tokio::test]
async fn a_leave_asked_for_twice_is_answered_alike_and_recorded_once() {
    let database = Database::new().await;
    let joins = [join("r", "alice"), join("r", "alice"), join("s", "alice")];
    joined(&database.at(t(0)), &joins, Default::default()).await;
    let batch = [
        session("r", "alice", "", 1),
        session("r", "alice", "", 2),
        session("r", "alice", "", 2),
        session("s", "alice", "", 1),
        session("t", "alice", "", 1),
    ];
    let answers = database.at(t(100)).leave(&batch).await.unwrap();
    assert_eq!(
        answers,
        [
            Err(StaleReason::Superseded),
            Ok(()),
            Ok(()),
            Ok(()),
            Err(StaleReason::UnknownSession),
        ]
    );
    let again = database.at(t(200)).leave(&batch[1..2]).await.unwrap();
    assert_eq!(again, [Ok(())]);
    assert!(members(&database).await.is_empty());
    assert_eq!(
        history(&database).await,
        [
            "r 1 alice 1 joined",
            "r 2 alice 1 superseded",
            "r 3 alice 2 joined",
            "r 4 alice 2 left",
            "s 1 alice 1 joined",
            "s 2 alice 1 left",
        ]
    );
    database.verify().await;
}

#[tokio::test]
async fn a_person_is_in_the_room_until_the_last_device_has_left() {
    let database = Database::new().await;
    let joins = [
        join_on("r", "alice", "phone"),
        join_on("r", "alice", "laptop"),
    ];
    joined(&database.at(t(0)), &joins, Default::default()).await;
    let count = || async {
        sqlx::query_scalar!("select member_count from leasehold.rooms")
            .fetch_optional(&database.pool)
            .await
            .unwrap()
    };
    let leaves = |device, epoch| [session("r", "alice", device, epoch)];
    database.at(t(1)).leave(&leaves("phone", 1)).await.unwrap();
    assert_eq!(count().await, Some(1));
    database.at(t(2)).leave(&leaves("laptop", 2)).await.unwrap();
    assert_eq!(count().await, None);
    assert_eq!(
        history(&database).await,
        [
            "r 1 alice 1 joined",
            "r 2 alice 2 joined",
            "r 3 alice 1 left",
            "r 4 alice 2 left",
        ]
    );
    database.verify().await;
}

#[tokio::test]
async fn both_devices_that_leave_in_one_batch_take_the_person_once() {
    let database = Database::new().await;
    let joins = [
        join("r", "bob"),
        join_on("r", "alice", "phone"),
        join_on("r", "alice", "laptop"),
    ];
    joined(&database.at(t(0)), &joins, Default::default()).await;
    let batch = [
        session("r", "alice", "phone", 1),
        session("r", "alice", "laptop", 2),
    ];
    let answers = database.at(t(1)).leave(&batch).await.unwrap();
    assert_eq!(answers, [Ok(()), Ok(())]);
    assert_eq!(members(&database).await, ["r bob '' 1 "]);
    database.verify().await;
}
