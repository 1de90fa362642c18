//! Ending other people's sessions: `leasehold.remove_member`, `close_room` and `remove_user`.

use super::{Store, StoreError};
use crate::domain::{Expulsion, Removal, RemovalOutcome, RoomClosing, RoomId};

impl Store {
    /// Ends the sessions now, whatever their devices do meanwhile.
    ///
    /// # Errors
    /// Where it did not happen, or that is not known.
    pub async fn remove(&self, removal: &Removal) -> Result<RemovalOutcome, StoreError> {
        let row = sqlx::query!(
            r#"select outcome as "outcome!", sessions_ended as "sessions_ended!",
                      members_expired as "members_expired!"
               from leasehold.remove_member($1, $2, $3, $4, $5, $6, $7)"#,
            removal.room_id.as_str(),
            removal.user_id.as_str(),
            removal.epoch,
            removal.block_ms,
            removal.decision.by(),
            removal.decision.reason.as_deref(),
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
    pub async fn close_room(&self, closing: &RoomClosing) -> Result<i32, StoreError> {
        let row = sqlx::query!(
            r#"select outcome as "outcome!", sessions_ended as "sessions_ended!",
                      members_expired as "members_expired!"
               from leasehold.close_room($1, $2, $3, $4, $5)"#,
            closing.room_id.as_str(),
            closing.block_ms,
            closing.decision.by(),
            closing.decision.reason.as_deref(),
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(row.members_expired);
        match row.outcome.as_str() {
            "misdirected" => Err(StoreError::Misdirected),
            _ => Ok(row.sessions_ended),
        }
    }

    /// Ends every session of the user; says in which rooms they were.
    ///
    /// # Errors
    /// Where it did not happen, or that is not known.
    pub async fn expel(&self, expulsion: &Expulsion) -> Result<Vec<RoomId>, StoreError> {
        let row = sqlx::query!(
            r#"select room_ids as "room_ids!", members_expired as "members_expired!"
               from leasehold.remove_user($1, $2, $3, $4, $5)"#,
            expulsion.user_id.as_str(),
            expulsion.block_ms,
            expulsion.decision.by(),
            expulsion.decision.reason.as_deref(),
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(row.members_expired);
        let rooms = row.room_ids.into_iter().map(RoomId::parse);
        Ok(rooms.collect::<Result<_, _>>()?)
    }
}
