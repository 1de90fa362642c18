//! Races by steps: a step that waits for another's lock is seen waiting, not guessed by the clock.

use std::time::{Duration, Instant};

use super::Database;

impl Database {
    /// Returns once so many statements in this database wait for a lock.
    pub async fn until_waiting(&self, statements: i64) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let waiting = sqlx::query_scalar!(
                r#"select count(*) as "n!" from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'"#
            )
            .fetch_one(&self.pool)
            .await
            .unwrap();
            if waiting >= statements {
                return;
            }
            assert!(Instant::now() < deadline, "{waiting} of {statements} wait");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
