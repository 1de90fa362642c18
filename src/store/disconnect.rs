//! Reporting a lost transport: `leasehold.disconnect_members`.

use super::error::session_outcomes;
use super::keys::KeyArrays;
use super::{Store, StoreError};
use crate::domain::{SessionKey, SessionOutcome};

impl Store {
    /// Marks all of these sessions in one transaction; no lease changes.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn disconnect(
        &self,
        sessions: &[SessionKey],
    ) -> Result<Vec<SessionOutcome>, StoreError> {
        let keys = KeyArrays::new(sessions.iter());
        let outcomes = sqlx::query_scalar!(
            r#"select leasehold.disconnect_members($1, $2, $3, $4, $5) as "outcomes!""#,
            &keys.rooms as &[&str],
            &keys.users as &[&str],
            &keys.devices as &[&str],
            &keys.epochs,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        session_outcomes(&outcomes, "disconnected")
    }
}
