//! In a caller's own transaction of a stricter level: Postgres refuses what its old snapshot would get wrong.

use super::super::support::Database;
use super::super::support::race::{Side, beat_sql, join_sql, leave_sql, prune_sql};
use super::{members, with_alice};

/// What a step answers whose transaction looked at the room before this other change was made.
async fn on_an_old_snapshot(
    database: &Database,
    level: &str,
    change: String,
    step: String,
) -> String {
    let mut late = Side::new(database).await;
    late.run(format!(
        "begin isolation level {level}; select from leasehold.rooms"
    ))
    .await;
    Side::new(database).await.run(change).await;
    let step = late.answer_of(step).await;
    match step {
        Ok(words) => {
            late.run("commit").await;
            words.join(", ")
        }
        Err(error) => {
            late.run("rollback").await;
            error
                .as_database_error()
                .unwrap()
                .code()
                .unwrap()
                .into_owned()
        }
    }
}

const LEVELS: [&str; 2] = ["repeatable read", "serializable"];

#[tokio::test]
async fn a_join_on_an_old_snapshot_of_its_room_is_refused() {
    for level in LEVELS {
        for change in [
            join_sql("carol", 100),
            join_sql("bob", 100),
            leave_sql("alice", 1, 100),
            prune_sql(15_001),
        ] {
            let database = with_alice().await;
            let join = join_sql("bob", 15_001);
            let answer = on_an_old_snapshot(&database, level, change.clone(), join).await;
            assert!(
                ["40001", "23505"].contains(&&*answer),
                "{level}, {change}: {answer}"
            );
            database.verify().await;
        }
    }
}

#[tokio::test]
async fn a_leave_on_an_old_snapshot_of_its_room_is_refused_or_finds_nothing() {
    for level in LEVELS {
        for change in [
            join_sql("alice", 100),
            join_sql("bob", 100),
            beat_sql("alice", 1, 100),
        ] {
            let database = with_alice().await;
            let leave = leave_sql("alice", 1, 200);
            let answer = on_an_old_snapshot(&database, level, change.clone(), leave).await;
            assert_eq!(answer, "40001", "{level}, {change}");
            assert!(!members(&database).await.is_empty());
            database.verify().await;
        }
    }
}

#[tokio::test]
async fn a_heartbeat_on_an_old_snapshot_of_its_session_is_refused() {
    for level in LEVELS {
        for change in [
            join_sql("alice", 100),
            leave_sql("alice", 1, 100),
            beat_sql("alice", 1, 100),
        ] {
            let database = with_alice().await;
            let beat = beat_sql("alice", 1, 200);
            let answer = on_an_old_snapshot(&database, level, change.clone(), beat).await;
            assert_eq!(answer, "40001", "{level}, {change}");
            database.verify().await;
        }
    }
}

#[tokio::test]
async fn a_pruning_on_an_old_snapshot_of_a_lease_is_refused() {
    for level in LEVELS {
        for change in [beat_sql("alice", 1, 100), join_sql("bob", 14_000)] {
            let database = with_alice().await;
            let prune = prune_sql(15_001);
            let answer = on_an_old_snapshot(&database, level, change.clone(), prune).await;
            assert_eq!(answer, "40001", "{level}, {change}");
            assert!(!members(&database).await.is_empty());
            database.verify().await;
        }
    }
}
