//! Questions about the past, and those of who runs the service.

use super::Presence;
use crate::coalesce::NoAnswer;
use crate::domain::{
    ChangesFilter, ChangesOutcome, JoinPlace, Lifetime, Outage, PastSession, Period, Position,
    Readiness, RoomId, UserId,
};
use crate::store::Migrations;

impl Presence {
    /// Lists the lifetimes of a room, newest first, those before the generation `before`.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn lifetimes(
        &self,
        room_id: RoomId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Lifetime>, NoAnswer> {
        self.alone(None, move |store| {
            let room_id = room_id.clone();
            async move { store.lifetimes(&room_id, before, limit).await }
        })
        .await
    }

    /// Lists the sessions of one lifetime in order of their joins, those after the version `after`.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn generation_sessions(
        &self,
        room_id: RoomId,
        generation: i64,
        after: i64,
        limit: usize,
    ) -> Result<Vec<PastSession>, NoAnswer> {
        self.alone(None, move |store| {
            let room_id = room_id.clone();
            async move {
                store
                    .generation_sessions(&room_id, generation, after, limit)
                    .await
            }
        })
        .await
    }

    /// Lists a user's sessions in every room, the newest join first, those before `before`.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn user_sessions(
        &self,
        user_id: UserId,
        period: Period,
        before: Option<JoinPlace>,
        limit: usize,
    ) -> Result<Vec<PastSession>, NoAnswer> {
        self.alone(None, move |store| {
            let user_id = user_id.clone();
            async move { store.user_sessions(&user_id, period, before, limit).await }
        })
        .await
    }

    /// Lists the times in which nobody served, newest first, those before the one of this number.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn outages(
        &self,
        period: Period,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Outage>, NoAnswer> {
        self.alone(None, move |store| async move {
            store.outages(period, before, limit).await
        })
        .await
    }

    /// Reads a page of the feed.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn changes(
        &self,
        after: Option<Position>,
        filter: &ChangesFilter,
        limit: i32,
    ) -> Result<ChangesOutcome, NoAnswer> {
        let filter = filter.clone();
        self.alone(None, move |store| {
            let (after, filter) = (after.clone(), filter.clone());
            async move { store.changes(after.as_ref(), &filter, limit).await }
        })
        .await
    }

    /// Says where the feed ends now.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn latest_change(&self) -> Result<Position, NoAnswer> {
        self.alone(None, |store| async move { store.latest_change().await })
            .await
    }

    /// Says when the sweep last finished, and how the schema compares with this program's.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn readiness(&self) -> Result<(Migrations, Option<Readiness>), NoAnswer> {
        self.alone(None, |store| async move {
            let migrations = store.migrations().await?;
            // Of another schema nothing more can be asked.
            let readiness = match migrations.require_fit() {
                Ok(()) => Some(store.readiness().await?),
                Err(_) => None,
            };
            Ok((migrations, readiness))
        })
        .await
    }
}
