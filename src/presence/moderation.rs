//! Decisions about other people's sessions, and what follows from them.

use super::Presence;
use crate::coalesce::NoAnswer;
use crate::domain::{
    Block, Blocked, Expulsion, MetadataChange, MetadataOutcome, Removal, RemovalOutcome,
    RoomClosing, RoomId, UserId,
};
use crate::store::Row;

impl Presence {
    /// Ends a member's sessions, whatever their devices do meanwhile.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn remove(&self, removal: Removal) -> Result<RemovalOutcome, NoAnswer> {
        let (row, wakes) = (Row::Room(removal.room_id.clone()), self.wakes.clone());
        self.alone(Some(row), move |store| {
            let (removal, wakes) = (removal.clone(), wakes.clone());
            async move {
                let outcome = store.remove(&removal).await?;
                wakes.grown(std::iter::once(&removal.room_id));
                Ok(outcome)
            }
        })
        .await
    }

    /// Ends every session of a room; says how many there were.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn close_room(&self, closing: RoomClosing) -> Result<i32, NoAnswer> {
        let (row, wakes) = (Row::Room(closing.room_id.clone()), self.wakes.clone());
        self.alone(Some(row), move |store| {
            let (closing, wakes) = (closing.clone(), wakes.clone());
            async move {
                let ended = store.close_room(&closing).await?;
                wakes.grown(std::iter::once(&closing.room_id));
                Ok(ended)
            }
        })
        .await
    }

    /// Ends every session of a user, also those of joins in flight.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn expel(&self, expulsion: Expulsion) -> Result<(), NoAnswer> {
        let wakes = self.wakes.clone();
        self.alone(None, move |store| {
            let (expulsion, wakes) = (expulsion.clone(), wakes.clone());
            async move {
                let rooms = store.expel(&expulsion).await?;
                wakes.grown(rooms.iter());
                Ok(())
            }
        })
        .await
    }

    /// Makes a user's history nobody's, and ends every session of theirs; how many sessions there were.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn erase(&self, user_id: UserId) -> Result<i32, NoAnswer> {
        let wakes = self.wakes.clone();
        self.alone(None, move |store| {
            let (user_id, wakes) = (user_id.clone(), wakes.clone());
            async move {
                let erased = store.erase_user(&user_id).await?;
                wakes.grown(erased.room_ids.iter());
                Ok(erased.sessions)
            }
        })
        .await
    }

    /// Lets nobody in who is not inside, or everybody again; false where there is no such room.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn lock_door(&self, room_id: RoomId, locked: bool) -> Result<bool, NoAnswer> {
        self.alone(Some(Row::Room(room_id.clone())), move |store| {
            let room_id = room_id.clone();
            async move { store.lock_door(&room_id, locked).await }
        })
        .await
    }

    /// Changes what others are shown beside a member, and renews nothing.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn set_metadata(&self, change: MetadataChange) -> Result<MetadataOutcome, NoAnswer> {
        let wakes = self.wakes.clone();
        self.alone(None, move |store| {
            let (change, wakes) = (change.clone(), wakes.clone());
            async move {
                let outcome = store.set_metadata(&change).await?;
                if outcome == Ok(true) {
                    wakes.changed(std::iter::once(&change.room_id));
                }
                Ok(outcome)
            }
        })
        .await
    }

    /// Lists the blocks of a room that hold: those after the user `after`.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn blocks(
        &self,
        room_id: RoomId,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Block>, NoAnswer> {
        self.alone(None, move |store| {
            let (room_id, after) = (room_id.clone(), after.clone());
            async move { store.blocks(&room_id, after.as_deref(), limit).await }
        })
        .await
    }

    /// Whether these users were put out of a room, or of all, so that they may not even read it.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn readers_blocked(
        &self,
        room_id: RoomId,
        user_ids: Vec<UserId>,
    ) -> Result<Vec<Option<Blocked>>, NoAnswer> {
        self.readers.ask((room_id, user_ids)).await
    }
}
