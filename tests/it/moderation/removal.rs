//! Removing people, blocking them, closing rooms: by row, whatever they do meanwhile.

use leasehold::domain::{
    Blocked, Decision, EndReason, JoinOutcome, JoinRefusal, Removal, RoomClosing, StaleReason,
    UserId,
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, raw_sql};

use super::super::support::{App, Database, Renew, beat, join, join_on, room, session, t};

fn removal(epoch: Option<i64>, block_ms: Option<i64>) -> Removal {
    Removal {
        room_id: room("r"),
        user_id: UserId::parse("alice").unwrap(),
        epoch,
        block_ms,
        decision: Decision::default(),
    }
}

fn closing() -> RoomClosing {
    RoomClosing {
        room_id: room("r"),
        block_ms: None,
        decision: Decision::default(),
    }
}

fn is_blocked(outcome: &JoinOutcome) -> bool {
    matches!(outcome, Err(JoinRefusal::Blocked(_)))
}

async fn count(database: &Database, table: &str) -> i64 {
    let sql = format!("select count(*) from leasehold.{table}");
    let row = raw_sql(AssertSqlSafe(sql)).fetch_one(&database.pool).await;
    sqlx::Row::get(&row.unwrap(), 0)
}

#[tokio::test]
async fn a_removal_ends_every_device_and_a_heartbeat_says_removed() {
    let database = Database::new().await;
    let joins = [
        join_on("r", "alice", "a"),
        join_on("r", "alice", "b"),
        join("r", "bob"),
    ];
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();

    let ended = database
        .at(t(1))
        .remove(&removal(None, None))
        .await
        .unwrap();

    assert_eq!(ended, Ok(2));
    let beats = [beat("r", "alice", "a", 1), beat("r", "bob", "", 1)];
    let outcomes = database.at(t(2)).renew(&beats).await.unwrap();
    assert_eq!(outcomes, [Err(StaleReason::Removed), Ok(())]);
    database.verify().await;
}

#[tokio::test]
async fn the_removal_of_an_old_epoch_changes_nothing_and_blocks_nobody() {
    let database = Database::new().await;
    for ms in [0, 1] {
        database
            .at(t(ms))
            .join(&[join("r", "alice")], Default::default())
            .await
            .unwrap();
    }

    let outcome = database
        .at(t(2))
        .remove(&removal(Some(1), Some(60_000)))
        .await
        .unwrap();

    assert_eq!(outcome, Err(StaleReason::Superseded));
    assert_eq!(count(&database, "blocks").await, 0);
    assert_eq!(
        database
            .at(t(3))
            .renew(&[beat("r", "alice", "", 2)])
            .await
            .unwrap(),
        [Ok(())]
    );
    let current = database
        .at(t(4))
        .remove(&removal(Some(2), None))
        .await
        .unwrap();
    assert_eq!(current, Ok(1));
    database.verify().await;
}

#[tokio::test]
async fn a_block_holds_until_its_end_and_not_a_moment_longer() {
    let database = Database::new().await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let ended = database
        .at(t(10))
        .remove(&removal(None, Some(1_000)))
        .await
        .unwrap();
    assert_eq!(ended, Ok(1));

    let before = database
        .at(t(1_009))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let blocked = Blocked {
        until: t(1_010),
        as_of: t(1_009),
    };
    assert_eq!(before[0], Err(JoinRefusal::Blocked(blocked)));
    assert_eq!(
        count(&database, "rooms").await,
        0,
        "a refused join opens no room"
    );
    let at_its_end = database
        .at(t(1_010))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();

    assert_eq!(at_its_end[0].as_ref().unwrap().epoch, 2);
    database.verify().await;
}

#[tokio::test]
async fn a_block_of_nothing_lifts_the_one_before_and_a_removal_without_one_leaves_it() {
    let database = Database::new().await;
    let store = database.at(t(0));
    assert_eq!(
        store.remove(&removal(None, Some(60_000))).await.unwrap(),
        Ok(0)
    );
    assert_eq!(store.remove(&removal(None, None)).await.unwrap(), Ok(0));
    let refused = store
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    assert!(is_blocked(&refused[0]));

    assert_eq!(store.remove(&removal(None, Some(0))).await.unwrap(), Ok(0));

    let joined = store
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    assert_eq!(joined[0].as_ref().unwrap().epoch, 1);
    database.verify().await;
}

#[tokio::test]
async fn a_removal_from_a_room_that_is_not_there_leaves_none_behind() {
    let database = Database::new().await;
    assert_eq!(
        database
            .store
            .remove(&removal(None, Some(1_000)))
            .await
            .unwrap(),
        Ok(0)
    );
    assert_eq!(count(&database, "rooms").await, 0);
    assert_eq!(count(&database, "room_lifetimes").await, 0);
    database.verify().await;
}

#[tokio::test]
async fn a_join_in_flight_does_not_slip_by_a_removal() {
    let database = Database::new().await;
    let mut joining = database.connect().await;
    let mut transaction = joining.begin().await.unwrap();
    sqlx::query!("select outcome from leasehold.join_member('r', 'alice')")
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    let store = database.store.clone();
    let removing = tokio::spawn(async move { store.remove(&removal(None, Some(60_000))).await });
    database.until_waiting_for_locks(1).await;

    transaction.commit().await.unwrap();

    assert_eq!(
        removing.await.unwrap().unwrap(),
        Ok(1),
        "it waited for the join, and ended it"
    );
    assert_eq!(count(&database, "members").await, 0);
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_waits_for_a_removal_finds_the_block() {
    let database = Database::new().await;
    let mut removing = database.connect().await;
    let mut transaction = removing.begin().await.unwrap();
    sqlx::query!("select outcome from leasehold.remove_member('r', 'alice', null, 60000)")
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    let store = database.store.clone();
    let joining =
        tokio::spawn(async move { store.join(&[join("r", "alice")], Default::default()).await });
    database.until_waiting_for_locks(1).await;

    transaction.commit().await.unwrap();

    assert!(is_blocked(&joining.await.unwrap().unwrap()[0]));
    assert_eq!(count(&database, "rooms").await, 0);
    database.verify().await;
}

#[tokio::test]
async fn a_closed_room_ends_everybody_and_a_later_join_opens_the_next_generation() {
    let database = Database::new().await;
    let joins = [join("r", "alice"), join("r", "bob")];
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();

    assert_eq!(database.at(t(1)).close_room(&closing()).await.unwrap(), 2);

    let outcomes = database
        .at(t(2))
        .renew(&[beat("r", "bob", "", 1)])
        .await
        .unwrap();
    assert_eq!(outcomes, [Err(StaleReason::RoomClosed)]);
    let life = &database
        .store
        .lifetimes(&room("r"), None, 10)
        .await
        .unwrap()[0];
    assert_eq!(life.close_reason, Some(EndReason::RoomClosed));
    assert_eq!((life.closed_at, life.peak_members), (Some(t(1)), Some(2)));
    let again = database
        .at(t(3))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let again = again[0].as_ref().unwrap();
    assert_eq!((again.epoch, again.generation), (2, 2));
    let late = database
        .at(t(4))
        .leave(&[session("r", "alice", "", 1)])
        .await
        .unwrap();
    assert_eq!(
        late,
        [Err(StaleReason::RoomClosed)],
        "nothing of the old one touches the new"
    );
    database.verify().await;
}

#[tokio::test]
async fn who_had_expired_before_a_room_was_closed_ends_as_expired() {
    let database = Database::new().await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    database
        .at(t(10_000))
        .join(&[join("r", "bob")], Default::default())
        .await
        .unwrap();

    assert_eq!(
        database.at(t(15_001)).close_room(&closing()).await.unwrap(),
        1
    );

    let sessions = database
        .store
        .generation_sessions(&room("r"), 1, 0, 10)
        .await
        .unwrap();
    let ends: Vec<_> = sessions
        .iter()
        .map(|s| s.end_reason.unwrap().as_str())
        .collect();
    assert_eq!(ends, ["expired", "room_closed"]);
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_waits_for_the_closing_of_its_room_opens_the_next_generation() {
    let database = Database::new().await;
    database
        .store
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let mut closing = database.connect().await;
    let mut transaction = closing.begin().await.unwrap();
    sqlx::query!("select outcome from leasehold.close_room('r')")
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    let store = database.store.clone();
    let joining =
        tokio::spawn(async move { store.join(&[join("r", "bob")], Default::default()).await });
    database.until_waiting_for_locks(1).await;

    transaction.commit().await.unwrap();

    let joined = joining.await.unwrap().unwrap();
    assert_eq!(joined[0].as_ref().unwrap().generation, 2);
    database.verify().await;
}

#[tokio::test]
async fn over_http_a_removed_person_is_gone_and_may_not_join_yet() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;

    assert_eq!(
        app.delete("/rooms/r/participants/alice?blockForMs=60000")
            .await
            .status(),
        204
    );

    assert_eq!(app.participants("r").await["participants"], json!([]));
    let refused = app
        .post("/rooms/r/join", json!({ "userId": "alice" }))
        .await;
    assert_eq!(refused.status(), 403);
    assert_eq!(
        refused.json::<serde_json::Value>().await.unwrap()["code"],
        "blocked"
    );
    assert_eq!(
        app.delete("/rooms/r/participants/alice").await.status(),
        204,
        "again"
    );
    assert_eq!(
        app.delete("/rooms/r/participants/alice?epoch=7")
            .await
            .status(),
        409
    );
    for query in [
        "epoch=-1",
        "epoch=x",
        "blockForMs=-1",
        "blockForMs=31536000001",
    ] {
        let path = format!("/rooms/r/participants/alice?{query}");
        assert_eq!(app.delete(&path).await.status(), 400, "{query}");
    }
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn over_http_a_closed_room_does_not_exist() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;

    assert_eq!(app.delete("/rooms/r").await.status(), 204);

    assert_eq!(app.get("/rooms/r").await.status(), 404);
    let late = app.heartbeat("r", "alice", 1).await;
    assert_eq!(late.status(), 409);
    assert_eq!(
        late.json::<serde_json::Value>().await.unwrap()["code"],
        "room_closed"
    );
    assert_eq!(app.delete("/rooms/r").await.status(), 204, "again");
    app.stop().await;
    database.verify().await;
}
