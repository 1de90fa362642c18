//! The invariants, checked in the database: `leasehold.verify`.

use std::fmt;
use std::time::Duration;

use super::interval::interval;
use super::{Store, StoreError};
use crate::domain::RoomId;

/// A fact that should not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The number of the invariant.
    pub invariant: i32,
    /// In which room; of none where it is about the lease clock.
    pub room_id: Option<String>,
    /// Whose, where it is about somebody.
    pub user_id: Option<String>,
    /// A sentence that says what is the case.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}", self.invariant)?;
        if let Some(room) = &self.room_id {
            write!(f, ": room {room:?}")?;
        }
        if let Some(user) = &self.user_id {
            write!(f, ", user {user:?}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

impl Store {
    /// Every violation; none where all is well. Reads the whole history.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn verify(&self) -> Result<Vec<Violation>, StoreError> {
        self.verify_part(None, None).await
    }

    /// The same of one room, or of those in which something happened within so long.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn verify_part(
        &self,
        room_id: Option<&RoomId>,
        within: Option<Duration>,
    ) -> Result<Vec<Violation>, StoreError> {
        Ok(sqlx::query_as!(
            Violation,
            r#"select invariant as "invariant!", room_id, user_id, detail as "detail!"
               from leasehold.verify($1, clock_timestamp() - $2::interval)"#,
            room_id.map(RoomId::as_str),
            within.map(interval) as _,
        )
        .fetch_all(&self.durable)
        .await?)
    }
}
