//! How many are in a room: `leasehold.room_counts`; what that shows to have expired is pruned, as by a list.

use std::collections::HashMap;

use super::{Store, StoreError};
use crate::domain::{RoomCount, RoomId};

impl Store {
    /// The count of each of these rooms, but for those that another database has.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn room_counts(
        &self,
        rooms: &[RoomId],
    ) -> Result<HashMap<RoomId, RoomCount>, StoreError> {
        let ids: Vec<&str> = rooms.iter().map(RoomId::as_str).collect();
        let mut rows = sqlx::query!(
            r#"select room_id as "room_id!", as_of as "as_of!", has_expired as "has_expired!",
                      is_misdirected as "is_misdirected!", generation, version, member_count as "member_count!"
               from leasehold.room_counts($1, $2)"#,
            &ids as &[&str],
            self.now,
        )
        .fetch_all(&self.durable)
        .await?;
        rows.retain(|row| !row.is_misdirected);
        let due = rows.iter().filter(|row| row.has_expired);
        let due: Vec<String> = due.map(|row| row.room_id.clone()).collect();
        if !due.is_empty() {
            self.prune_where_possible(&due).await?;
        }
        rows.into_iter()
            .map(|row| {
                let count = RoomCount {
                    as_of: row.as_of,
                    generation: row.generation,
                    version: row.version,
                    // A count is not negative.
                    members: u32::try_from(row.member_count).unwrap_or(0),
                };
                Ok((RoomId::parse(row.room_id)?, count))
            })
            .collect()
    }
}
