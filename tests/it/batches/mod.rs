//! Requests that share a batch take effect one after the other, as if each had come alone.

mod empty_night;
mod joins;
mod limits;
mod renewals;

use leasehold::domain::{Join, JoinLimits, JoinOutcome};
use leasehold::store::Store;
use leasehold::wire::Code;

use super::support::Database;

/// Joins as one batch; a word and the epoch for each: `joined 1`, `room_full`.
async fn joined(store: &Store, batch: &[Join], limits: JoinLimits) -> Vec<String> {
    let answers = store.join(batch, limits).await.unwrap();
    answers.iter().map(word).collect()
}

fn word(answer: &JoinOutcome) -> String {
    match answer {
        Ok(joined) => format!("joined {}", joined.epoch),
        Err(refusal) => Code::from(refusal).as_str().to_owned(),
    }
}

/// The members as `room user device epoch cursor`, in order of arrival.
async fn members(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select format('%s %s %L %s %s', room_id, user_id, device_id, epoch, cursor) as "member!"
             from leasehold.members order by room_id, arrival, epoch"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// The history as `room version user epoch reason`, `joined` for a join.
async fn history(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select concat_ws(' ', room_id, version, user_id, epoch, coalesce(reason, kind)) as "event!"
             from leasehold.membership_events order by room_id, generation, version"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}
