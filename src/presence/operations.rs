//! What each batch does: one call of the store, and a wake for those who look at its rooms.

use std::collections::HashMap;
use std::sync::Arc;

use crate::coalesce::Operation;
use crate::domain::RoomId;
use crate::store::{
    Departures, DeparturesQuery, Disconnect, DisconnectOutcome, Heartbeat, HeartbeatOutcome, Join,
    JoinLimits, JoinOutcome, Leave, LeaveOutcome, ListedJoinOutcome, Participants, Store,
    StoreError,
};
use crate::wake::Wakes;

/// The rooms of the requests that took effect.
fn rooms<'a, R, O, E>(
    batch: &'a [R],
    outcomes: &'a [Result<O, E>],
    room: impl Fn(&'a R) -> &'a RoomId + Clone,
) -> impl Iterator<Item = &'a RoomId> + Clone {
    batch
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.is_ok())
        .map(move |(request, _)| room(request))
}

pub(super) struct Joins {
    pub(super) store: Store,
    pub(super) limits: JoinLimits,
    pub(super) wakes: Wakes,
}

impl Operation for Joins {
    type Request = Join;
    type Answer = JoinOutcome;

    async fn run(&self, batch: &[Join]) -> Result<Vec<JoinOutcome>, StoreError> {
        let outcomes = self.store.join(batch, self.limits).await?;
        self.wakes.grown(rooms(batch, &outcomes, |j| &j.room_id));
        Ok(outcomes)
    }

    async fn held(&self, batch: &[Join]) -> Result<Vec<bool>, StoreError> {
        self.store
            .held_rooms(batch.iter().map(|request| &request.room_id))
            .await
    }
}

pub(super) struct ListedJoins {
    pub(super) store: Store,
    pub(super) limits: JoinLimits,
    pub(super) wakes: Wakes,
}

impl Operation for ListedJoins {
    type Request = Join;
    type Answer = ListedJoinOutcome;

    async fn run(&self, batch: &[Join]) -> Result<Vec<ListedJoinOutcome>, StoreError> {
        let outcomes = self.store.join_and_list(batch, self.limits).await?;
        self.wakes.grown(rooms(batch, &outcomes, |j| &j.room_id));
        Ok(outcomes)
    }

    async fn held(&self, batch: &[Join]) -> Result<Vec<bool>, StoreError> {
        self.store
            .held_rooms(batch.iter().map(|request| &request.room_id))
            .await
    }
}

/// Wakes those who look at the rooms of the heartbeats that took effect.
fn wake<'a>(wakes: &Wakes, heard: impl Iterator<Item = (&'a Heartbeat, bool)> + Clone) {
    let is_visible = |h: &Heartbeat| h.cursor.is_some() || h.metadata.is_some();
    let renewed = |visible| {
        heard
            .clone()
            .filter(move |(heartbeat, took_effect)| {
                *took_effect && is_visible(heartbeat) == visible
            })
            .map(|(heartbeat, _)| &heartbeat.room_id)
    };
    wakes.changed(renewed(true));
    wakes.renewed(renewed(false));
}

/// Never waits for another transaction, so that one that holds a session delays no other: its
/// heartbeat is given back.
pub(super) struct Heartbeats(pub(super) Store, pub(super) Wakes);

impl Operation for Heartbeats {
    type Request = Heartbeat;
    type Answer = Result<HeartbeatOutcome, Box<Heartbeat>>;

    async fn run(&self, batch: &[Heartbeat]) -> Result<Vec<Self::Answer>, StoreError> {
        let outcomes = self.0.heartbeat_unless_held(batch).await?;
        let took_effect = outcomes.iter().map(|outcome| *outcome == Some(Ok(())));
        wake(&self.1, batch.iter().zip(took_effect));
        let with_outcomes = batch.iter().zip(outcomes);
        Ok(with_outcomes
            .map(|(heartbeat, outcome)| outcome.ok_or_else(|| Box::new(heartbeat.clone())))
            .collect())
    }
}

/// Waits for the transaction that holds a session, as long as a request may take.
pub(super) struct PatientHeartbeats(pub(super) Store, pub(super) Wakes);

impl Operation for PatientHeartbeats {
    type Request = Heartbeat;
    type Answer = HeartbeatOutcome;

    async fn run(&self, batch: &[Heartbeat]) -> Result<Vec<HeartbeatOutcome>, StoreError> {
        let outcomes = self.0.heartbeat(batch).await?;
        wake(
            &self.1,
            batch.iter().zip(outcomes.iter().map(Result::is_ok)),
        );
        Ok(outcomes)
    }
}

pub(super) struct Leaves(pub(super) Store, pub(super) Wakes);

impl Operation for Leaves {
    type Request = Leave;
    type Answer = LeaveOutcome;

    async fn run(&self, batch: &[Leave]) -> Result<Vec<LeaveOutcome>, StoreError> {
        let outcomes = self.0.leave(batch).await?;
        self.1.grown(rooms(batch, &outcomes, |l| &l.room_id));
        Ok(outcomes)
    }

    async fn held(&self, batch: &[Leave]) -> Result<Vec<bool>, StoreError> {
        self.0
            .held_rooms(batch.iter().map(|request| &request.room_id))
            .await
    }
}

pub(super) struct Disconnects(pub(super) Store, pub(super) Wakes);

impl Operation for Disconnects {
    type Request = Disconnect;
    type Answer = DisconnectOutcome;

    async fn run(&self, batch: &[Disconnect]) -> Result<Vec<DisconnectOutcome>, StoreError> {
        let outcomes = self.0.disconnect(batch).await?;
        self.1.changed(rooms(batch, &outcomes, |d| &d.room_id));
        Ok(outcomes)
    }
}

pub(super) struct DeparturesOf(pub(super) Store);

impl Operation for DeparturesOf {
    type Request = DeparturesQuery;
    type Answer = Departures;

    async fn run(&self, batch: &[DeparturesQuery]) -> Result<Vec<Departures>, StoreError> {
        self.0.departures(batch).await
    }
}

pub(super) struct Lists(pub(super) Store);

impl Operation for Lists {
    // Decoding many rows takes as long as finding them.
    const AT_ONCE: usize = 2;

    type Request = RoomId;
    type Answer = Arc<Participants>;

    /// One read per room: those who ask for the same room share an answer that began after they asked.
    async fn run(&self, batch: &[RoomId]) -> Result<Vec<Arc<Participants>>, StoreError> {
        let mut rooms = batch.to_vec();
        rooms.sort_unstable();
        rooms.dedup();
        let found: HashMap<RoomId, Arc<Participants>> = self
            .0
            .participants(&rooms)
            .await?
            .into_iter()
            .map(|(id, room)| (id, Arc::new(room)))
            .collect();
        batch
            .iter()
            .map(|id| found.get(id).cloned())
            .collect::<Option<_>>()
            .ok_or_else(|| StoreError::Unexpected("a room was not answered".to_owned()))
    }
}
