//! Which slots of rooms a database owns: `leasehold.own_slots`, `slot_states` and `is_misdirected`.

use super::{Store, StoreError};
use crate::domain::{RoomId, SLOTS, SlotState, Slots};

/// What refuses a step: the states of slots, or another move.
const REFUSED: &str = "LH421";

/// A slot, what the database is to it, and of one on its way the name of the other database.
pub type SlotPlace = (i32, SlotState, Option<String>);

impl Store {
    /// That no other database has the room.
    ///
    /// # Errors
    /// [`StoreError::Misdirected`] where one has, or where the database does not answer.
    pub(super) async fn require_here(&self, room_id: &RoomId) -> Result<(), StoreError> {
        let is_misdirected = sqlx::query_scalar!(
            r#"select leasehold.is_misdirected($1) as "is_misdirected!""#,
            room_id.as_str(),
        )
        .fetch_one(&self.durable)
        .await?;
        match is_misdirected {
            true => Err(StoreError::Misdirected),
            false => Ok(()),
        }
    }

    /// Says once which slots this database owns, so that it can be one of several.
    ///
    /// # Errors
    /// Where it was said before, or there is or was a room of another slot.
    pub async fn own_slots(&self, slots: &Slots) -> Result<(), StoreError> {
        sqlx::query!("select leasehold.own_slots($1)", &slots.numbers())
            .execute(&self.durable)
            .await
            .map_err(refused)?;
        Ok(())
    }

    /// What this database is to every slot.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn slots(&self) -> Result<Vec<SlotPlace>, StoreError> {
        let rows = sqlx::query!(
            r#"select slot as "slot!", state as "state!", peer from leasehold.slot_states($1)"#,
            &(0..SLOTS).collect::<Vec<i32>>(),
        )
        .fetch_all(&self.durable)
        .await?;
        rows.into_iter()
            .map(|row| Ok((row.slot, row.state.parse()?, row.peer)))
            .collect()
    }
}

/// What the functions of a move refuse says itself what to do.
pub(super) fn refused(error: sqlx::Error) -> StoreError {
    let Some(refusal) = error
        .as_database_error()
        .filter(|e| e.code().as_deref() == Some(REFUSED))
    else {
        return error.into();
    };
    let hint = refusal
        .try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
        .and_then(|error| error.hint());
    StoreError::CellRefused(format!(
        "{}; {}",
        refusal.message(),
        hint.unwrap_or_default()
    ))
}
