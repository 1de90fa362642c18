//! Durations as Postgres writes them.

use std::time::Duration;

use sqlx::postgres::types::PgInterval;

/// Without days, which are not always of the same length.
pub(super) fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}
