//! Races as named permutations: one side's step is done and not committed, the
//! other's is seen to wait for it, then the first commits or gives up.

mod batches;
mod clocks;
mod heartbeats;
mod held;
mod isolation;
mod rooms;
mod sessions;

use super::support::Database;

/// Room `r`'s members as `user epoch`, in order of arrival.
async fn members(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select user_id || ' ' || epoch as "member!" from leasehold.members
            where room_id = 'r' order by arrival, epoch"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// Room `r`'s lifetimes as `generation reason`, without reason while open.
async fn generations(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select concat_ws(' ', generation, close_reason) as "generation!"
             from (select room_id, generation, null as close_reason from leasehold.rooms
                   union all
                   select room_id, generation, close_reason from leasehold.closed_generations) l
            where room_id = 'r' order by generation"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// Room `r`'s history as `version user epoch reason`, `joined` for a join.
async fn history(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select concat_ws(' ', version, user_id, epoch, coalesce(reason, kind)) as "event!"
             from leasehold.membership_events where room_id = 'r' order by generation, version"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// A database in which alice is in room `r` at epoch 1 since instant 0, with a lease of 15 s.
async fn with_alice() -> Database {
    let database = Database::new().await;
    let joined = database
        .at(super::support::t(0))
        .join(&[super::support::join("r", "alice")], Default::default())
        .await
        .unwrap();
    assert_eq!(joined[0].as_ref().unwrap().epoch, 1);
    database
}
