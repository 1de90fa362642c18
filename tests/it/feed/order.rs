//! In the feed each room's changes stand in the order of its life, whichever transaction began first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::{AssertSqlSafe, PgConnection, raw_sql};
use tokio::task::JoinSet;

use crate::support::Database;

async fn run(connection: &mut PgConnection, sql: impl Into<String>) {
    raw_sql(AssertSqlSafe(sql.into()))
        .execute(connection)
        .await
        .unwrap();
}

/// The joins and ends of a page after a position, as room, generation and version; and where to go on.
async fn page(
    connection: &mut PgConnection,
    after: Option<&str>,
) -> (Vec<(String, i64, i64)>, String) {
    let rows = sqlx::query!(
        r#"select next as "next!", room_id, generation, version, kind from leasehold.changes($1, 7)"#,
        after
    )
    .fetch_all(connection)
    .await
    .unwrap();
    let next = rows[0].next.clone();
    let events = rows
        .into_iter()
        .filter(|row| matches!(row.kind.as_deref(), Some("joined" | "ended")))
        .map(|row| {
            (
                row.room_id.unwrap(),
                row.generation.unwrap(),
                row.version.unwrap(),
            )
        });
    (events.collect(), next)
}

async fn everything(database: &Database) -> Vec<(String, i64, i64)> {
    let mut connection = database.connect().await;
    let mut after = None;
    let mut read = Vec::new();
    loop {
        let (events, next) = page(&mut connection, after.as_deref()).await;
        if after.as_deref() == Some(next.as_str()) {
            return read;
        }
        read.extend(events);
        after = Some(next);
    }
}

/// A transaction that has an id, and has changed nothing of interest yet.
async fn began(database: &Database) -> PgConnection {
    let mut early = database.connect().await;
    run(
        &mut early,
        "begin; select leasehold.join_member('elsewhere', 'x')",
    )
    .await;
    early
}

#[tokio::test]
async fn a_transaction_that_began_first_and_changes_a_room_last_comes_after() {
    let database = Database::new().await;
    let mut early = began(&database).await;
    database
        .execute("select leasehold.join_member('r', 'alice')")
        .await;
    run(
        &mut early,
        "select leasehold.leave_member('r', 'alice', 1); commit",
    )
    .await;

    let read = everything(&database).await;
    let of_room: Vec<i64> = read.iter().filter(|e| e.0 == "r").map(|e| e.2).collect();
    assert_eq!(of_room, [1, 2]);
    database.verify().await;
}

/// The room is gone meanwhile: its last place is found in what it left.
#[tokio::test]
async fn over_lifetimes_as_well_also_where_they_are_swept_and_opened_in_one_transaction() {
    let database = Database::new().await;
    let mut early = began(&database).await;
    database
        .execute(
            "select leasehold.join_member('r', 'alice');
             select leasehold.leave_member('r', 'alice', 1)",
        )
        .await;
    run(
        &mut early,
        "select leasehold.join_member('r', 'bob');
         select leasehold.close_room('r');
         select leasehold.join_member('r', 'carol');
         commit",
    )
    .await;

    let read = everything(&database).await;
    let of_room: Vec<_> = read
        .iter()
        .filter(|e| e.0 == "r")
        .map(|e| (e.1, e.2))
        .collect();
    assert_eq!(of_room, [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]);
    database.verify().await;
}

/// Every writer changes several rooms in a transaction, some after a while, some for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn with_32_writers_over_8_rooms_a_reader_sees_each_room_in_the_order_of_its_life() {
    const WRITERS: usize = 32;
    const TURNS: usize = 20;
    let database = Arc::new(Database::new().await);
    // How many events there are, once that is known.
    let recorded = Arc::new(AtomicUsize::new(usize::MAX));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let database = Arc::clone(&database);
        writers.spawn(async move {
            let mut connection = database.connect().await;
            for turn in 0..TURNS {
                let first = (writer + turn) % 8;
                // In the order in which rooms are locked, or writers would wait in a circle.
                let second = first + 1 + turn % 3;
                let end = if (writer + turn) % 5 == 0 {
                    "rollback"
                } else {
                    "commit"
                };
                let held = if turn % 7 == 0 { 200 } else { writer % 4 * 5 };
                run(
                    &mut connection,
                    format!(
                        "begin;
                         select pg_current_xact_id(), pg_sleep({held} / 1000.0);
                         select leasehold.join_member('room-{first}', 'u{writer}');
                         select leasehold.join_member('room-{second}', 'u{writer}');
                         {end};
                         select leasehold.leave_member('room-{first}', 'u{writer}', m.epoch)
                           from leasehold.members m
                          where m.room_id = 'room-{first}' and m.user_id = 'u{writer}'"
                    ),
                )
                .await;
            }
        });
    }
    let reader = {
        let (database, recorded) = (Arc::clone(&database), Arc::clone(&recorded));
        tokio::spawn(async move {
            let mut connection = database.connect().await;
            let (mut after, mut read) = (None, Vec::new());
            let mut patience = 1_000;
            loop {
                let known = recorded.load(Ordering::SeqCst);
                let (events, next) = page(&mut connection, after.as_deref()).await;
                // What other databases' transactions hold back for a moment comes with a later page.
                let is_end = known != usize::MAX && after.as_deref() == Some(next.as_str());
                patience -= u32::from(is_end);
                read.extend(events);
                after = Some(next);
                if read.len() >= known || patience == 0 {
                    return read;
                }
            }
        })
    };
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    let count =
        sqlx::query_scalar!(r#"select count(*) as "count!" from leasehold.membership_events"#);
    let count = count.fetch_one(&database.pool).await.unwrap();
    let count = usize::try_from(count).unwrap();
    recorded.store(count, Ordering::SeqCst);
    let read = reader.await.unwrap();
    assert_eq!(read.len(), count, "none is missed or told twice");
    let mut last: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (room, generation, version) in &read {
        let here = (*generation, *version);
        let before = last.insert(room, here);
        assert!(
            before.is_none_or(|before| before < here),
            "{room}: {before:?} then {here:?}"
        );
    }
    database.verify().await;
}

#[tokio::test]
async fn a_prepared_transaction_of_another_database_holds_nothing_back() {
    use private_postgres::{Cluster, ClusterOptions};
    use sqlx::Connection;
    let options = ClusterOptions::throw_away("prepared").setting("max_prepared_transactions", "2");
    let cluster = Cluster::start(options).unwrap();
    let migrated = crate::support::run(&["migrate"], &cluster.url("postgres"));
    assert!(migrated.status.success());
    let mut elsewhere = PgConnection::connect(&cluster.url("template1"))
        .await
        .unwrap();
    run(
        &mut elsewhere,
        "begin; create table public.t (); prepare transaction 'elsewhere'",
    )
    .await;
    let mut here = PgConnection::connect(&cluster.url("postgres"))
        .await
        .unwrap();
    run(&mut here, "select leasehold.join_member('r', 'alice')").await;
    assert_eq!(page(&mut here, None).await.0.len(), 1);

    run(
        &mut here,
        "begin; select leasehold.join_member('r', 'bob'); prepare transaction 'here'",
    )
    .await;
    run(&mut here, "select leasehold.join_member('q', 'carol')").await;
    assert_eq!(
        page(&mut here, None).await.0.len(),
        1,
        "one of this database does"
    );
    let held = sqlx::query_scalar!(
        r#"select oldest_transactions as "n!" from leasehold.open_transactions() where holder = 'prepared'"#
    );
    assert!(held.fetch_one(&mut here).await.unwrap() > 0);
    run(&mut here, "commit prepared 'here'").await;
    run(&mut elsewhere, "rollback prepared 'elsewhere'").await;
    assert_eq!(page(&mut here, None).await.0.len(), 3);
    cluster.stop().unwrap();
}
