//! What a lease means between its instants: renewed, asked to be shorter or longer, run out and not swept.

use leasehold::domain::{Heartbeat, StaleReason};

use super::support::{Database, Renew, beat, join, lease, room, session, t};

async fn rows(database: &Database) -> i64 {
    sqlx::query_scalar!(r#"select count(*) as "n!" from leasehold.members"#)
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_expired_member_is_gone_for_everybody_before_any_sweep() {
    let database = Database::new().await;
    let early = database.at(t(0));
    early
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let later = database.at(t(10_000));
    later
        .join(&[join("r", "bob")], Default::default())
        .await
        .unwrap();

    let store = database.at(t(15_001));
    let expired = Err(StaleReason::Expired);
    let beaten = store.renew(&[beat("r", "alice", "", 1)]).await.unwrap();
    assert_eq!(beaten, [expired]);
    assert_eq!(rows(&database).await, 2, "no sweep has run");
    let census = store.census().await.unwrap();
    assert_eq!((census.active_rooms, census.active_members), (1, 1));
    let left = store.leave(&[session("r", "alice", "", 1)]).await.unwrap();
    assert_eq!(left, [expired]);
    let again = store.renew(&[beat("r", "alice", "", 1)]).await.unwrap();
    assert_eq!(again, [expired], "nothing revives it");
    let found = store.participants(&[room("r")]).await.unwrap();
    let users: Vec<_> = found[&room("r")]
        .participants
        .iter()
        .map(|p| p.user_id.as_str())
        .collect();
    assert_eq!(users, ["bob"]);
    database.verify().await;
}

async fn next_end(database: &Database) -> chrono::DateTime<chrono::Utc> {
    sqlx::query_scalar!(r#"select leasehold.instant(next_end) as "at!" from leasehold.rooms"#)
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_heartbeat_that_asks_for_another_lease_gets_it_from_that_instant() {
    for (asked, ends) in [(1_000, 6_000), (60_000, 65_000)] {
        let database = Database::new().await;
        let store = database.at(t(0));
        store
            .join(&[join("r", "alice")], Default::default())
            .await
            .unwrap();
        let asks = Heartbeat {
            lease: Some(lease(asked)),
            ..beat("r", "alice", "", 1)
        };
        let renewed = database.at(t(5_000)).renew(&[asks]).await.unwrap();
        assert_eq!(renewed, [Ok(())]);
        assert!(next_end(&database).await <= t(ends));

        // A later one that does not ask keeps the length.
        let renewed = database
            .at(t(6_000))
            .renew(&[beat("r", "alice", "", 1)])
            .await
            .unwrap();
        assert_eq!(renewed, [Ok(())]);
        let lives = database
            .at(t(6_000 + i64::from(asked)))
            .renew(&[beat("r", "alice", "", 1)])
            .await
            .unwrap();
        assert_eq!(lives, [Ok(())]);
        let past = database
            .at(t(6_001 + 2 * i64::from(asked)))
            .renew(&[beat("r", "alice", "", 1)])
            .await
            .unwrap();
        assert_eq!(past, [Err(StaleReason::Expired)]);
        database.verify().await;
    }
}

#[tokio::test]
async fn a_join_sees_the_end_of_a_lease_that_a_heartbeat_made_shorter() {
    let database = Database::new().await;
    let store = database.at(t(0));
    store
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let shorter = Heartbeat {
        lease: Some(lease(1_000)),
        ..beat("r", "alice", "", 1)
    };
    database.at(t(100)).renew(&[shorter]).await.unwrap();
    assert_eq!(next_end(&database).await, t(1_100));

    let joined = database
        .at(t(1_101))
        .join(&[join("r", "bob")], Default::default())
        .await
        .unwrap();
    assert_eq!(joined[0].as_ref().unwrap().generation, 2);
    database.verify().await;
}

#[tokio::test]
async fn a_refused_heartbeat_changes_no_row() {
    let database = Database::new().await;
    let store = database.at(t(0));
    store
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let everything = || async {
        sqlx::query_scalar!(
            r#"select concat_ws(' | ', r, m) as "row!" from leasehold.rooms r join leasehold.members m using (room_id)"#
        )
        .fetch_all(&database.pool)
        .await
        .unwrap()
    };
    let before = everything().await;
    let asks = Heartbeat {
        lease: Some(lease(1_000)),
        cursor: Some(None),
        metadata: Some(None),
        ..beat("r", "alice", "", 1)
    };
    let old = Heartbeat {
        session: session("r", "alice", "", 7),
        ..asks.clone()
    };
    let refused = database.at(t(100)).renew(&[old]).await.unwrap();
    assert_eq!(refused, [Err(StaleReason::UnknownSession)]);
    let refused = database.at(t(15_001)).renew(&[asks]).await.unwrap();
    assert_eq!(refused, [Err(StaleReason::Expired)]);
    assert_eq!(everything().await, before);
    database.verify().await;
}
