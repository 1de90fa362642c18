//! What the reference says of transactions that look at an older snapshot: they are refused, and change nothing.

use sqlx::{AssertSqlSafe, PgConnection, raw_sql};

use super::support::Database;

async fn step(connection: &mut PgConnection, sql: &str) -> Result<(), String> {
    raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
        .map(drop)
        .map_err(|error| {
            let error = error.into_database_error().unwrap();
            error.code().unwrap().into_owned()
        })
}

/// One transaction takes its snapshot, the other changes something and commits, the first one acts.
async fn act_on_an_older_snapshot(before: &str, meanwhile: &str, act: &str) -> (Database, String) {
    let database = Database::new().await;
    database.execute(before).await;
    let mut connection = database.connect().await;
    step(
        &mut connection,
        "begin isolation level repeatable read; select count(*) from leasehold.rooms",
    )
    .await
    .unwrap();
    database.execute(meanwhile).await;
    let refused = step(&mut connection, act).await.unwrap_err();
    step(&mut connection, "rollback").await.unwrap();
    (database, refused)
}

const ALICE_JOINS: &str = "select leasehold.join_member('r', 'alice')";
const BOB_JOINS: &str = "select leasehold.join_member('r', 'bob')";

#[tokio::test]
async fn a_join_on_a_snapshot_older_than_another_join_is_refused() {
    let (database, refused) = act_on_an_older_snapshot(ALICE_JOINS, BOB_JOINS, BOB_JOINS).await;
    assert_eq!(refused, "40001");
    database.verify().await;
}

#[tokio::test]
async fn a_join_on_a_snapshot_older_than_the_room_is_refused() {
    let (database, refused) = act_on_an_older_snapshot("select 1", ALICE_JOINS, BOB_JOINS).await;
    assert_eq!(refused, "40001");
    database.verify().await;
}

#[tokio::test]
async fn a_join_on_a_snapshot_older_than_a_whole_lifetime_is_refused() {
    let lifetime = "select leasehold.join_member('r', 'alice'); select leasehold.leave_member('r', 'alice', 1)";
    let (database, refused) = act_on_an_older_snapshot("select 1", lifetime, ALICE_JOINS).await;
    assert_eq!(refused, "23505");
    database.verify().await;
}

#[tokio::test]
async fn a_leave_on_a_snapshot_older_than_a_join_is_refused() {
    let leaves = "select leasehold.leave_member('r', 'alice', 1)";
    let (database, refused) = act_on_an_older_snapshot(ALICE_JOINS, BOB_JOINS, leaves).await;
    assert_eq!(refused, "40001");
    database.verify().await;
}

#[tokio::test]
async fn a_heartbeat_on_a_snapshot_older_than_a_heartbeat_is_refused() {
    let beats = "select leasehold.heartbeat_member('r', 'alice', 1)";
    let (database, refused) = act_on_an_older_snapshot(ALICE_JOINS, beats, beats).await;
    assert_eq!(refused, "40001");
    database.verify().await;
}
