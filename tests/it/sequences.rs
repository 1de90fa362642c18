//! The four sequences that this project exists for, in fake time.

use leasehold::domain::{Heartbeat, Participants, StaleReason};
use serde_json::json;

use super::support::{Database, Renew, beat, join, room, session, t};

async fn participants(database: &Database, ms: i64) -> Participants {
    let store = database.at(t(ms));
    store
        .participants(&[room("r")])
        .await
        .unwrap()
        .remove(&room("r"))
        .unwrap()
}

fn users(found: &Participants) -> Vec<&str> {
    found
        .participants
        .iter()
        .map(|p| p.user_id.as_str())
        .collect()
}

#[tokio::test]
async fn a_leave_with_an_older_epoch_changes_nothing() {
    let database = Database::new().await;
    let first = database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let second = database
        .at(t(100))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    assert_eq!(first[0].as_ref().unwrap().epoch, 1);
    assert_eq!(second[0].as_ref().unwrap().epoch, 2);

    let late = database
        .at(t(200))
        .leave(&[session("r", "alice", "", 1)])
        .await
        .unwrap();

    assert_eq!(late, [Err(StaleReason::Superseded)]);
    let found = participants(&database, 300).await;
    assert_eq!(users(&found), ["alice"]);
    assert_eq!(found.participants[0].sessions[0].epoch, 2);
    database.verify().await;
}

#[tokio::test]
async fn when_heartbeats_stop_the_list_is_empty_and_the_room_is_gone() {
    let database = Database::new().await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap()[0]
        .as_ref()
        .unwrap();

    let found = participants(&database, 15_001).await;

    assert!(found.participants.is_empty());
    assert_eq!(found.room, None);
    let rooms: i64 = sqlx::query_scalar!(r#"select count(*) as "n!" from leasehold.rooms"#)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(rooms, 0);
    let closed = sqlx::query!(
        "select generation, closed_at, close_reason from leasehold.closed_generations"
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(closed.generation, 1);
    assert_eq!(closed.close_reason, "expired");
    assert_eq!(
        closed.closed_at,
        t(15_000),
        "at the end of the lease, not of the delay"
    );
    database.verify().await;
}

#[tokio::test]
async fn when_one_of_two_expires_the_other_is_unchanged() {
    let database = Database::new().await;
    let store = database.at(t(0));
    store
        .join(&[join("r", "alice"), join("r", "bob")], Default::default())
        .await
        .unwrap();
    let cursor = Some(Some(json!({ "line": 10, "column": 4 })));
    let renewed = database
        .at(t(10_000))
        .renew(&[Heartbeat {
            cursor,
            ..beat("r", "bob", "", 1)
        }])
        .await
        .unwrap();
    assert_eq!(renewed, [Ok(())]);

    let found = participants(&database, 20_000).await;

    assert_eq!(users(&found), ["bob"]);
    let bob = &found.participants[0].sessions[0];
    assert_eq!(bob.epoch, 1);
    assert_eq!(
        bob.cursor.as_ref().unwrap().get(),
        r#"{"line": 10, "column": 4}"#
    );
    database.verify().await;
}

#[tokio::test]
async fn after_its_room_is_gone_a_member_is_stale_and_joins_the_next_generation() {
    let database = Database::new().await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap()[0]
        .as_ref()
        .unwrap();
    assert_eq!(participants(&database, 15_001).await.room, None);

    let late = database
        .at(t(15_002))
        .renew(&[beat("r", "alice", "", 1)])
        .await
        .unwrap();
    assert_eq!(late, [Err(StaleReason::Expired)]);

    let again = database
        .at(t(15_003))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let again = again[0].as_ref().unwrap();
    assert_eq!((again.epoch, again.generation), (2, 2));
    database.verify().await;
}
