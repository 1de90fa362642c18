//! Which rooms are in somebody's hands: `leasehold.held_rooms`.

use super::{Store, StoreError};
use crate::domain::RoomId;

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
}
