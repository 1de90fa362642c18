//! Questions about the present: being in a room, and seeing who is there.

use std::sync::Arc;

use super::gathered::Sign;
use super::{ListedJoin, Presence};
use crate::coalesce::NoAnswer;
use crate::domain::{
    Departures, DeparturesQuery, Heartbeat, Join, JoinOutcome, JoinRefusal, Located, Participants,
    RoomCount, RoomId, RoomSummary, SessionKey, SessionOutcome, UserId, Whereabouts,
};
use crate::store::StoreError;

/// Rooms of one user that a question about many tells.
const MAX_ROOMS: i32 = 100;

impl Presence {
    /// Joins a room.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn join(&self, join: Join) -> Result<JoinOutcome, NoAnswer> {
        self.joins.ask(join).await
    }

    /// Joins a room, and reads it as the join left it.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn join_and_list(
        &self,
        join: Join,
    ) -> Result<Result<ListedJoin, JoinRefusal>, NoAnswer> {
        self.listed_joins.ask(join).await
    }

    /// Renews a lease, and changes what the heartbeat says beside it.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<SessionOutcome, NoAnswer> {
        // A new length of the lease changes the room's row as well, which others may hold longer.
        match heartbeat.lease {
            Some(lease) => self.resizes.ask((heartbeat, lease)).await,
            None => self.heartbeats.ask(Sign::Heartbeat(heartbeat)).await,
        }
    }

    /// How often a session is to be heard of, in milliseconds; `None` where it is not the current one.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn heartbeat_interval(&self, session: SessionKey) -> Result<Option<u32>, NoAnswer> {
        self.alone(None, move |store| {
            let session = session.clone();
            async move { store.heartbeat_interval(&session).await }
        })
        .await
    }

    /// Ends a session.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn leave(&self, session: SessionKey) -> Result<SessionOutcome, NoAnswer> {
        self.leaves.ask(session).await
    }

    /// Marks a session whose transport was lost.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn disconnect(&self, session: SessionKey) -> Result<SessionOutcome, NoAnswer> {
        self.disconnects.ask(session).await
    }

    /// Reads who is in a room; those who ask for the same one share a read that began after they asked.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn participants(&self, room_id: RoomId) -> Result<Arc<Participants>, NoAnswer> {
        let found = self.lists.ask(room_id).await?;
        found.ok_or_else(|| StoreError::Misdirected.into())
    }

    /// Counts who is in a room.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn count(&self, room_id: RoomId) -> Result<RoomCount, NoAnswer> {
        let found = self.counts.ask(room_id).await?;
        found.ok_or_else(|| StoreError::Misdirected.into())
    }

    /// Looks up how those who are gone left.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn departures(&self, query: DeparturesQuery) -> Result<Departures, NoAnswer> {
        self.departures.ask(query).await
    }

    /// Lists the rooms with a live member that start with `prefix` and come after `after`.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn rooms(
        &self,
        prefix: String,
        after: Option<RoomId>,
        limit: usize,
    ) -> Result<Vec<RoomSummary>, NoAnswer> {
        self.alone(None, move |store| {
            let (prefix, after) = (prefix.clone(), after.clone());
            async move { store.list_rooms(&prefix, after.as_ref(), limit).await }
        })
        .await
    }

    /// Lists the rooms that a user is in, those after `after`.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn user_rooms(
        &self,
        user_id: UserId,
        after: Option<RoomId>,
        limit: usize,
    ) -> Result<Vec<Whereabouts>, NoAnswer> {
        self.alone(None, move |store| {
            let (user_id, after) = (user_id.clone(), after.clone());
            async move { store.user_rooms(&user_id, after.as_ref(), limit).await }
        })
        .await
    }

    /// Says where each of these users is, and when they were last seen.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn whereabouts(&self, users: Vec<UserId>) -> Result<Vec<Located>, NoAnswer> {
        self.alone(None, move |store| {
            let users = users.clone();
            async move { store.whereabouts(&users, MAX_ROOMS).await }
        })
        .await
    }
}
