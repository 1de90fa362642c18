//! Rows that other transactions may hold: which are held now, and waiting until one is free.

use super::{Store, StoreError};
use crate::domain::{DeviceId, RoomId, UserId};

/// A row that a request cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Row {
    /// A room's, with the sessions in it that have to give way.
    Room(RoomId),
    /// A session's.
    Session(RoomId, UserId, DeviceId),
}

impl Store {
    /// For each of these rooms whether another transaction holds it now.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn held_rooms(
        &self,
        rooms: impl Iterator<Item = &RoomId>,
    ) -> Result<Vec<bool>, StoreError> {
        let rooms: Vec<&str> = rooms.map(RoomId::as_str).collect();
        Ok(sqlx::query_scalar!(
            r#"select leasehold.held_rooms($1) as "held!""#,
            &rooms as &[&str],
        )
        .fetch_one(&self.durable)
        .await?)
    }

    /// Returns when no other transaction holds the row.
    ///
    /// # Errors
    /// [`StoreError::Locked`] where it is held for long, so that others have their turn.
    pub async fn await_row(&self, row: &Row) -> Result<(), StoreError> {
        match row {
            Row::Room(room_id) => {
                sqlx::query!(
                    r#"select locked as "locked!" from leasehold.lock_rooms($1)"#,
                    &[room_id.as_str()] as &[&str],
                )
                .fetch_one(&self.waiting)
                .await?;
            }
            Row::Session(room_id, user_id, device_id) => {
                sqlx::query!(
                    r#"select leasehold.lock_members($1, $2, $3, clock_timestamp()) as "locked: ()""#,
                    &[room_id.as_str()] as &[&str],
                    &[user_id.as_str()] as &[&str],
                    &[device_id.as_sql()] as &[&str],
                )
                .fetch_one(&self.waiting)
                .await?;
            }
        }
        Ok(())
    }
}
