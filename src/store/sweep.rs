//! The expiry job's step: `leasehold.sweep`.

use super::{Store, StoreError};

/// What one batch of the sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepBatch {
    /// False where another sweep was under way: then nothing was done.
    pub ran: bool,
    /// Sessions that ended.
    pub members_expired: i32,
    /// Rooms that this left empty.
    pub rooms_closed: i32,
    /// No more expired members were found than this batch took on.
    pub finished: bool,
}

impl Store {
    /// Finds up to so many expired members and prunes their rooms.
    ///
    /// # Errors
    /// Where nothing was removed.
    pub async fn sweep(&self, max_members: i32) -> Result<SweepBatch, StoreError> {
        let batch = sqlx::query_as!(
            SweepBatch,
            r#"select ran as "ran!", members_expired as "members_expired!",
                      rooms_closed as "rooms_closed!", finished as "finished!"
               from leasehold.sweep($1, $2)"#,
            max_members,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(batch.members_expired);
        Ok(batch)
    }
}
