//! Reporting a lost transport: `leasehold.disconnect_members`.

use super::error::skipping_outcomes;
use super::keys::KeyArrays;
use super::{Store, StoreError};
use crate::domain::{SessionKey, SessionOutcome};

impl Store {
    /// Marks those of these sessions that no other transaction holds; no lease changes. `None` for
    /// one that is held, and unchanged.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn disconnect(
        &self,
        sessions: &[SessionKey],
    ) -> Result<Vec<Option<SessionOutcome>>, StoreError> {
        let keys = KeyArrays::new(sessions.iter());
        let outcomes = sqlx::query_scalar!(
            r#"select leasehold.disconnect_members($1, $2, $3, $4, $5) as "outcomes!""#,
            &keys.rooms as &[&str],
            &keys.users as &[&str],
            &keys.epochs,
            &keys.devices as &[&str],
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        skipping_outcomes(&outcomes, "disconnected")
    }
}
