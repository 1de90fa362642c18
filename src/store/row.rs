//! Rows that other transactions may hold: which are held now, and waiting until one is free.

use super::{Store, StoreError};
use crate::domain::{DeviceId, RoomId, SessionKey, UserId};

/// A row that a request cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Row {
    /// A room's, with the sessions in it that have expired.
    Room(RoomId),
    /// A session's.
    Session(RoomId, UserId, DeviceId),
    /// Both.
    RoomAndSession(SessionKey),
    /// None, but a lock of the user's while somebody puts them out of all rooms.
    User(UserId),
}

impl Row {
    /// That of a session.
    pub fn of(session: &SessionKey) -> Self {
        let session = session.clone();
        Self::Session(session.room_id, session.user_id, session.device_id)
    }
}

impl Store {
    /// For each join or leave the row that another transaction holds at this moment and that it
    /// needs; `None` where there is no such row.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn held_rows(
        &self,
        requests: impl Iterator<Item = (&RoomId, &UserId, &DeviceId)> + Clone,
        are_joins: bool,
    ) -> Result<Vec<Option<Row>>, StoreError> {
        let rooms: Vec<&str> = requests.clone().map(|(room, ..)| room.as_str()).collect();
        let users: Vec<&str> = requests.clone().map(|(_, user, _)| user.as_str()).collect();
        let devices = requests.clone().map(|(.., device)| device.as_sql());
        let words: Vec<Option<String>> = sqlx::query_scalar!(
            r#"select leasehold.held_rows($1, $2, $3, $4, $5) as "held!: Vec<Option<String>>""#,
            &rooms as &[&str],
            &users as &[&str],
            &devices.collect::<Vec<&str>>() as &[&str],
            are_joins,
            self.now,
        )
        .fetch_one(&self.durable)
        .await?;
        let held = words.iter().zip(requests);
        Ok(held
            .map(|(word, (room, user, device))| match word.as_deref() {
                Some("user") => Some(Row::User(user.clone())),
                Some("session") => Some(Row::Session(room.clone(), user.clone(), device.clone())),
                Some(_) => Some(Row::Room(room.clone())),
                None => None,
            })
            .collect())
    }

    /// Returns when no other transaction holds the row.
    ///
    /// # Errors
    /// [`StoreError::Locked`] where it is held for long, so that others have their turn.
    pub async fn await_row(&self, row: &Row) -> Result<(), StoreError> {
        match row {
            Row::RoomAndSession(session) => {
                sqlx::query!(
                    r#"select leasehold.await_room($1, $4) as "room: ()",
                              leasehold.await_session($1, $2, $3) as "session: ()""#,
                    session.room_id.as_str(),
                    session.user_id.as_str(),
                    session.device_id.as_sql(),
                    self.now,
                )
                .fetch_one(&self.waiting)
                .await?;
            }
            Row::Room(room_id) => {
                sqlx::query!(
                    r#"select leasehold.await_room($1, $2) as "free: ()""#,
                    room_id.as_str(),
                    self.now,
                )
                .fetch_one(&self.waiting)
                .await?;
            }
            Row::User(user_id) => {
                let users = [user_id.as_str()];
                sqlx::query!(
                    r#"select leasehold.share_users($1) as "free: ()""#,
                    &users as &[&str],
                )
                .fetch_one(&self.waiting)
                .await?;
            }
            Row::Session(room_id, user_id, device_id) => {
                sqlx::query!(
                    r#"select leasehold.await_session($1, $2, $3) as "free: ()""#,
                    room_id.as_str(),
                    user_id.as_str(),
                    device_id.as_sql(),
                )
                .fetch_one(&self.waiting)
                .await?;
            }
        }
        Ok(())
    }
}
