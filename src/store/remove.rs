//! Ending other people's sessions: `leasehold.remove_member` and `leasehold.close_room`.

use super::{Store, StoreError};
use crate::domain::{Removal, RemovalOutcome, RoomId};

impl Store {
    /// Ends the sessions now, whatever their devices do meanwhile.
    ///
    /// # Errors
    /// Where it did not happen, or that is not known.
    pub async fn remove(&self, removal: &Removal) -> Result<RemovalOutcome, StoreError> {
        let row = sqlx::query!(
            r#"select outcome as "outcome!", sessions_ended as "sessions_ended!",
                      members_expired as "members_expired!"
               from leasehold.remove_member($1, $2, $3, $4, $5)"#,
            removal.room_id.as_str(),
            removal.user_id.as_str(),
            removal.epoch,
            removal.block_ms,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(row.members_expired);
        match row.outcome.as_str() {
            "removed" | "absent" => Ok(Ok(row.sessions_ended)),
            reason => Ok(Err(reason.parse()?)),
        }
    }

    /// Ends every session of the room; says how many there were.
    ///
    /// # Errors
    /// Where it did not happen, or that is not known.
    pub async fn close_room(&self, room_id: &RoomId) -> Result<i32, StoreError> {
        let row = sqlx::query!(
            r#"select sessions_ended as "sessions_ended!", members_expired as "members_expired!"
               from leasehold.close_room($1, $2)"#,
            room_id.as_str(),
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(row.members_expired);
        Ok(row.sessions_ended)
    }
}
