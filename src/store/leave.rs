//! Leaving: `leasehold.leave_members`.

use super::error::session_outcomes;
use super::keys::KeyArrays;
use super::{Store, StoreError};
use crate::domain::{SessionKey, SessionOutcome};

impl Store {
    /// Ends all of these sessions in one transaction.
    ///
    /// # Errors
    /// Where none of them took effect, or that is not known.
    pub async fn leave(&self, sessions: &[SessionKey]) -> Result<Vec<SessionOutcome>, StoreError> {
        let keys = KeyArrays::new(sessions.iter());
        let row = sqlx::query!(
            r#"select outcomes as "outcomes!", members_expired as "members_expired!"
               from leasehold.leave_members($1, $2, $3, $4, $5)"#,
            &keys.rooms as &[&str],
            &keys.users as &[&str],
            &keys.epochs,
            &keys.devices as &[&str],
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(row.members_expired);
        session_outcomes(&row.outcomes, "left")
    }
}
