//! Plans are kept, and those made while nobody was there must still do when everybody comes.

use sqlx::{Connection, PgConnection};

use super::super::support::Database;

/// Joins as many people of one kind, each into a room of their own.
async fn storm(connection: &mut PgConnection, who: &str, people: i32) {
    sqlx::query(
        "select leasehold.join_members(
                    array_agg($1 || n), array_agg('u' || n), array_agg(''::text), array_agg(60000))
           from generate_series(1, $2) n",
    )
    .bind(who)
    .bind(people)
    .execute(connection)
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

#[tokio::test]
async fn after_an_empty_night_a_join_looks_at_its_own_rows_only() {
    let database = Database::new().await;
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
    let mut connection = as_the_service(&database).await;
    // Its plans are made; somebody returns as well, which takes other statements.
    for _ in 0..2 {
        storm(&mut connection, "early-", 1).await;
    }
    let mut others = as_the_service(&database).await;
    for n in 0..60 {
        storm(&mut others, &format!("all-{n}-"), 50).await;
    }

    let mut late = connection.begin().await.unwrap();
    storm(&mut late, "late-", 50).await;
    storm(&mut late, "late-", 50).await;
    let looked_at: i64 = sqlx::query_scalar(
        "select sum(seq_tup_read + idx_tup_fetch)::bigint
           from pg_stat_xact_user_tables where relname in ('members', 'rooms')",
    )
    .fetch_one(&mut *late)
    .await
    .unwrap();
    late.rollback().await.unwrap();
    assert!(looked_at < 3_000, "{looked_at} rows for 100 joins");
}
