//! Who is let in and who may read, and what is shown of a member: `leasehold.lock_door`,
//! `room_blocks`, `readers_blocked_until` and `set_metadata`.

use chrono::{DateTime, Utc};

use super::history::decision;
use super::{Store, StoreError};
use crate::domain::{Block, Blocked, MetadataChange, MetadataOutcome, RoomId, UserId};

impl Store {
    /// Lets nobody in who is not inside, or everybody again; false where there is no such room.
    ///
    /// # Errors
    /// Where it did not happen, or that is not known.
    pub async fn lock_door(&self, room_id: &RoomId, locked: bool) -> Result<bool, StoreError> {
        let row = sqlx::query!(
            r#"select outcome as "outcome!", members_expired as "members_expired!"
               from leasehold.lock_door($1, $2, $3)"#,
            room_id.as_str(),
            locked,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        self.expired(row.members_expired);
        match row.outcome.as_str() {
            "misdirected" => Err(StoreError::Misdirected),
            outcome => Ok(outcome != "absent"),
        }
    }

    /// Replaces the metadata and renews nothing.
    ///
    /// # Errors
    /// Where it did not happen, or that is not known.
    pub async fn set_metadata(
        &self,
        change: &MetadataChange,
    ) -> Result<MetadataOutcome, StoreError> {
        let outcome = sqlx::query_scalar!(
            r#"select outcome as "outcome!" from leasehold.set_metadata($1, $2, $3, $4, $5)"#,
            change.room_id.as_str(),
            change.user_id.as_str(),
            change.metadata,
            change.epoch,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        match outcome.as_str() {
            "changed" => Ok(Ok(true)),
            "absent" => Ok(Ok(false)),
            reason => Ok(Err(reason.parse()?)),
        }
    }

    /// The blocks of a room that hold, the one of the room first and then in order of user: those
    /// after `after`, at most `limit`.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn blocks(
        &self,
        room_id: &RoomId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Block>, StoreError> {
        self.require_here(room_id).await?;
        let rows = sqlx::query!(
            r#"select user_id as "user_id!", blocked_until as "blocked_until!", blocked_by, note
               from leasehold.room_blocks($1, $2, $3, $4)"#,
            room_id.as_str(),
            after,
            i32::try_from(limit).unwrap_or(i32::MAX),
            self.now,
        )
        .fetch_all(&self.durable)
        .await?;
        rows.into_iter()
            .map(|row| {
                let of_the_room = row.user_id.is_empty();
                Ok(Block {
                    user_id: match of_the_room {
                        true => None,
                        false => Some(UserId::parse(row.user_id)?),
                    },
                    until: row.blocked_until,
                    decision: decision(row.blocked_by, row.note)?,
                })
            })
            .collect()
    }

    /// Until when these users of each room may not even read it; `None` for those who may.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn readers_blocked(
        &self,
        readers: &[(RoomId, Vec<UserId>)],
    ) -> Result<Vec<Vec<Option<Blocked>>>, StoreError> {
        let mut rooms: Vec<&str> = Vec::new();
        let mut users: Vec<&str> = Vec::new();
        for (room, of_the_room) in readers {
            for user in of_the_room {
                rooms.push(room.as_str());
                users.push(user.as_str());
            }
        }
        let row = sqlx::query!(
            r#"select blocked_until as "blocked_until!: Vec<Option<DateTime<Utc>>>", as_of as "as_of!"
               from leasehold.readers_blocked_until($1, $2, $3)"#,
            &rooms as &[&str],
            &users as &[&str],
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        let as_of = row.as_of;
        let mut blocks = row
            .blocked_until
            .into_iter()
            .map(|until| until.map(|until| Blocked { until, as_of }));
        let of_rooms = readers.iter();
        Ok(of_rooms
            .map(|(_, users)| blocks.by_ref().take(users.len()).collect())
            .collect())
    }
}
