//! Plans are kept, and those made while nobody was there must still do when everybody comes.

use sqlx::{Connection, PgConnection};

use super::super::support::Database;

/// Joins as many people of one kind, each into a room of their own.
async fn storm(connection: &mut PgConnection, who: &str, people: i32) {
    sqlx::query!(
        r#"select outcomes as "outcomes!"
             from leasehold.join_members(
                      array(select $1 || n from generate_series(1, $2) n),
                      array(select 'u' || n from generate_series(1, $2) n),
                      array_fill(''::text, array[$2]), array_fill(60000, array[$2]))"#,
        who,
        people
    )
    .fetch_one(connection)
    .await
    .unwrap();
}

/// A connection whose plans are made as those of the service.
async fn as_the_service(database: &Database) -> PgConnection {
    let mut connection = database.connect().await;
    sqlx::raw_sql(
        "set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set jit = off",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    connection
}

/// Ends the sessions that a storm joined.
async fn exodus(connection: &mut PgConnection, who: &str, people: i32) {
    let left = sqlx::query_scalar!(
        r#"select outcomes as "outcomes!"
             from leasehold.leave_members(
                      array(select $1 || n from generate_series(1, $2) n),
                      array(select 'u' || n from generate_series(1, $2) n),
                      array_fill(1::bigint, array[$2]), array_fill(''::text, array[$2]))"#,
        who,
        people
    )
    .fetch_one(connection)
    .await
    .unwrap();
    assert!(left.iter().all(|outcome| outcome == "left"), "{left:?}");
}

/// How many rows of rooms and members this transaction has looked at.
async fn looked_at(transaction: &mut PgConnection) -> i64 {
    sqlx::query_scalar!(
        r#"select sum(seq_tup_read + idx_tup_fetch)::bigint as "rows!"
             from pg_stat_xact_user_tables where relname in ('members', 'rooms')"#
    )
    .fetch_one(transaction)
    .await
    .unwrap()
}

/// A connection that made its plans while nobody was there, of which the statistics know only that,
/// and 3,000 people who came then.
async fn after_an_empty_night(database: &Database) -> PgConnection {
    // Nobody else analyzes while this looks.
    database
        .execute(
            "alter table leasehold.members set (autovacuum_enabled = off);
             alter table leasehold.rooms set (autovacuum_enabled = off)",
        )
        .await;
    database
        .execute("vacuum analyze leasehold.members, leasehold.rooms")
        .await;
    let mut connection = as_the_service(database).await;
    // Somebody returns as well, which takes other statements.
    for _ in 0..2 {
        storm(&mut connection, "early-", 1).await;
    }
    storm(&mut connection, "gone-", 1).await;
    exodus(&mut connection, "gone-", 1).await;
    let mut others = as_the_service(database).await;
    for n in 0..60 {
        storm(&mut others, &format!("all-{n}-"), 50).await;
    }
    connection
}

#[tokio::test]
async fn after_an_empty_night_a_join_looks_at_its_own_rows_only() {
    let database = Database::new().await;
    let mut connection = after_an_empty_night(&database).await;
    let mut late = connection.begin().await.unwrap();
    storm(&mut late, "late-", 50).await;
    storm(&mut late, "late-", 50).await;
    let rows = looked_at(&mut late).await;
    late.rollback().await.unwrap();
    assert!(rows < 3_000, "{rows} rows for 100 joins");
}

#[tokio::test]
async fn after_an_empty_night_a_leave_looks_at_its_own_rows_only() {
    let database = Database::new().await;
    let mut connection = after_an_empty_night(&database).await;
    let mut early = connection.begin().await.unwrap();
    exodus(&mut early, "all-7-", 50).await;
    let rows = looked_at(&mut early).await;
    early.rollback().await.unwrap();
    assert!(rows < 2_000, "{rows} rows for 50 leaves");
}
