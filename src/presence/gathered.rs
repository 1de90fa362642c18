//! What each batch does: one call of the store, and a wake for those who look at its rooms.

use std::collections::HashMap;
use std::sync::Arc;

use crate::coalesce::{Answered, Operation};
use crate::domain::{
    Departures, DeparturesQuery, Heartbeat, Join, JoinLimits, JoinOutcome, JoinRefusal, Joined,
    Participants, RoomId, SessionKey, SessionOutcome,
};
use crate::store::{Row, Store, StoreError};
use crate::wake::Wakes;

/// A join, with the room as the join left it.
pub type ListedJoin = (Joined, Arc<Participants>);

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

fn now<A>(answers: Vec<A>) -> Vec<Answered<A>> {
    answers.into_iter().map(Answered::Now).collect()
}

pub(super) struct Joins(pub(super) Store, pub(super) Wakes, pub(super) JoinLimits);

impl Operation for Joins {
    type Request = Join;
    type Answer = JoinOutcome;

    async fn run(&self, batch: &[Join]) -> Result<Vec<Answered<JoinOutcome>>, StoreError> {
        let outcomes = self.0.join(batch, self.2).await?;
        self.1.grown(rooms(batch, &outcomes, |j| &j.room_id));
        Ok(now(outcomes))
    }

    fn row(&self, join: &Join) -> Option<Row> {
        Some(Row::Room(join.room_id.clone()))
    }

    async fn held(&self, batch: &[Join]) -> Result<Vec<bool>, StoreError> {
        self.0.held_rooms(batch.iter().map(|j| &j.room_id)).await
    }
}

pub(super) struct ListedJoins(pub(super) Store, pub(super) Wakes, pub(super) JoinLimits);

impl Operation for ListedJoins {
    type Request = Join;
    type Answer = Result<ListedJoin, JoinRefusal>;

    async fn run(&self, batch: &[Join]) -> Result<Vec<Answered<Self::Answer>>, StoreError> {
        let outcomes = self.0.join_and_list(batch, self.2).await?;
        self.1.grown(rooms(batch, &outcomes, |j| &j.room_id));
        Ok(now(outcomes))
    }

    fn row(&self, join: &Join) -> Option<Row> {
        Some(Row::Room(join.room_id.clone()))
    }

    async fn held(&self, batch: &[Join]) -> Result<Vec<bool>, StoreError> {
        self.0.held_rooms(batch.iter().map(|j| &j.room_id)).await
    }
}

/// Renews, and wakes those who look at the rooms of the heartbeats that took effect.
async fn renew(
    store: &Store,
    wakes: &Wakes,
    batch: &[Heartbeat],
) -> Result<Vec<Answered<SessionOutcome>>, StoreError> {
    let outcomes = store.heartbeat(batch).await?;
    let heard = batch.iter().zip(&outcomes);
    let renewed = |visible| {
        let heard = heard.clone().filter(move |(heartbeat, outcome)| {
            **outcome == Some(Ok(())) && heartbeat.is_visible() == visible
        });
        heard.map(|(heartbeat, _)| &heartbeat.session.room_id)
    };
    wakes.changed(renewed(true));
    wakes.renewed(renewed(false));
    let answers = outcomes.into_iter();
    Ok(answers
        .map(|outcome| outcome.map_or(Answered::Later, Answered::Now))
        .collect())
}

/// Heartbeats that keep the length of their lease: they need no row but their own.
pub(super) struct Heartbeats(pub(super) Store, pub(super) Wakes);

impl Operation for Heartbeats {
    type Request = Heartbeat;
    type Answer = SessionOutcome;

    async fn run(&self, batch: &[Heartbeat]) -> Result<Vec<Answered<SessionOutcome>>, StoreError> {
        renew(&self.0, &self.1, batch).await
    }

    fn row(&self, heartbeat: &Heartbeat) -> Option<Row> {
        let session = heartbeat.session.clone();
        Some(Row::Session(
            session.room_id,
            session.user_id,
            session.device_id,
        ))
    }
}

/// Heartbeats that change the length of their lease, and with it perhaps when their room is next looked at.
pub(super) struct Resizes(pub(super) Store, pub(super) Wakes);

impl Operation for Resizes {
    type Request = Heartbeat;
    type Answer = SessionOutcome;

    async fn run(&self, batch: &[Heartbeat]) -> Result<Vec<Answered<SessionOutcome>>, StoreError> {
        renew(&self.0, &self.1, batch).await
    }

    fn row(&self, heartbeat: &Heartbeat) -> Option<Row> {
        Some(Row::Room(heartbeat.session.room_id.clone()))
    }

    async fn held(&self, batch: &[Heartbeat]) -> Result<Vec<bool>, StoreError> {
        let rooms = batch.iter().map(|heartbeat| &heartbeat.session.room_id);
        self.0.held_rooms(rooms).await
    }
}

pub(super) struct Leaves(pub(super) Store, pub(super) Wakes);

impl Operation for Leaves {
    type Request = SessionKey;
    type Answer = SessionOutcome;

    async fn run(&self, batch: &[SessionKey]) -> Result<Vec<Answered<SessionOutcome>>, StoreError> {
        let outcomes = self.0.leave(batch).await?;
        self.1.grown(rooms(batch, &outcomes, |s| &s.room_id));
        Ok(now(outcomes))
    }

    fn row(&self, session: &SessionKey) -> Option<Row> {
        Some(Row::Room(session.room_id.clone()))
    }

    async fn held(&self, batch: &[SessionKey]) -> Result<Vec<bool>, StoreError> {
        self.0.held_rooms(batch.iter().map(|s| &s.room_id)).await
    }
}

pub(super) struct Disconnects(pub(super) Store, pub(super) Wakes);

impl Operation for Disconnects {
    type Request = SessionKey;
    type Answer = SessionOutcome;

    async fn run(&self, batch: &[SessionKey]) -> Result<Vec<Answered<SessionOutcome>>, StoreError> {
        let outcomes = self.0.disconnect(batch).await?;
        self.1.changed(rooms(batch, &outcomes, |s| &s.room_id));
        Ok(now(outcomes))
    }

    fn row(&self, session: &SessionKey) -> Option<Row> {
        let session = session.clone();
        Some(Row::Session(
            session.room_id,
            session.user_id,
            session.device_id,
        ))
    }
}

pub(super) struct DeparturesOf(pub(super) Store);

impl Operation for DeparturesOf {
    type Request = DeparturesQuery;
    type Answer = Departures;

    async fn run(
        &self,
        batch: &[DeparturesQuery],
    ) -> Result<Vec<Answered<Departures>>, StoreError> {
        Ok(now(self.0.departures(batch).await?))
    }

    fn row(&self, _: &DeparturesQuery) -> Option<Row> {
        None
    }
}

pub(super) struct Lists(pub(super) Store);

impl Operation for Lists {
    // Decoding many rows takes as long as finding them.
    const AT_ONCE: usize = 2;

    type Request = RoomId;
    type Answer = Arc<Participants>;

    async fn run(&self, batch: &[RoomId]) -> Result<Vec<Answered<Arc<Participants>>>, StoreError> {
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
            .map(|id| found.get(id).cloned().map(Answered::Now))
            .collect::<Option<_>>()
            .ok_or_else(|| StoreError::Unexpected("a room was not answered".to_owned()))
    }

    fn row(&self, _: &RoomId) -> Option<Row> {
        None
    }
}
