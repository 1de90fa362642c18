//! Forgetting: `leasehold.purge` what ended long ago, `leasehold.erase_user` a person.

use super::interval::interval;
use super::{Store, StoreError};
use crate::domain::{Erased, Retention, RoomId, UserId};

/// What one batch of the purge did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeBatch {
    /// False where another purge was under way: then nothing was done.
    pub ran: bool,
    /// Lifetimes that went.
    pub generations_purged: i32,
    /// Their events.
    pub events_purged: i32,
    /// Blocks that had ended.
    pub blocks_purged: i32,
    /// Nothing more is due.
    pub finished: bool,
}

impl Store {
    /// Looks at so many events, the oldest first, and removes the sessions that ended longer ago than they are kept; a
    /// generation goes with the last of its own.
    ///
    /// # Errors
    /// Where nothing was removed.
    pub async fn purge(&self, kept: Retention, max_events: i32) -> Result<PurgeBatch, StoreError> {
        Ok(sqlx::query_as!(
            PurgeBatch,
            r#"select ran as "ran!", generations_purged as "generations_purged!",
                      events_purged as "events_purged!", blocks_purged as "blocks_purged!",
                      finished as "finished!"
               from leasehold.purge($1, $2, $3, $4)"#,
            interval(kept.older_than),
            max_events,
            interval(kept.webhooks_wait),
            self.now,
        )
        .fetch_one(&self.durable)
        .await?)
    }

    /// Ends a user's sessions and puts a pseudonym in their place in the history.
    ///
    /// # Errors
    /// Where it did not happen, or that is not known.
    pub async fn erase_user(&self, user_id: &UserId) -> Result<Erased, StoreError> {
        let row = sqlx::query!(
            r#"select room_ids as "room_ids!", sessions_erased as "sessions_erased!",
                      members_expired as "members_expired!"
               from leasehold.erase_user($1, $2)"#,
            user_id.as_str(),
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(row.members_expired);
        let rooms = row.room_ids.into_iter().map(RoomId::parse);
        Ok(Erased {
            sessions: row.sessions_erased,
            room_ids: rooms.collect::<Result<_, _>>()?,
        })
    }
}
