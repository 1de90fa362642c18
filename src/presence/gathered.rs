//! What each batch does: one call of the store, and a wake for those who look at its rooms.

use std::collections::HashMap;
use std::sync::Arc;

use crate::coalesce::{Answered, Operation};
use crate::domain::{
    Beat, Beaten, Blocked, Departures, DeparturesQuery, DeviceId, Heartbeat, Join, JoinLimits,
    JoinOutcome, JoinRefusal, Joined, Lease, Participants, RoomCount, RoomId, SessionKey,
    SessionOutcome, UserId,
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

/// What each of these joins or leaves waits for.
async fn held_by<R>(
    store: &Store,
    batch: &[R],
    key: impl Fn(&R) -> (&RoomId, &UserId, &DeviceId) + Clone,
    are_joins: bool,
) -> Result<Vec<Option<Row>>, StoreError> {
    store.held_rows(batch.iter().map(key), are_joins).await
}

/// Answers of a call that passes over what another transaction holds.
fn skipping<A>(answers: Vec<Option<A>>) -> Vec<Answered<A>> {
    let answers = answers.into_iter();
    answers
        .map(|answer| answer.map_or(Answered::Later, Answered::Now))
        .collect()
}

fn now<A>(answers: Vec<A>) -> Vec<Answered<A>> {
    answers.into_iter().map(Answered::Now).collect()
}

pub(super) struct Joins(pub(super) Store, pub(super) Wakes, pub(super) JoinLimits);

impl Operation for Joins {
    const NAME: &'static str = "join";

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

    async fn held(&self, batch: &[Join]) -> Result<Vec<Option<Row>>, StoreError> {
        held_by(
            &self.0,
            batch,
            |j| (&j.room_id, &j.user_id, &j.device_id),
            true,
        )
        .await
    }
}

pub(super) struct ListedJoins(pub(super) Store, pub(super) Wakes, pub(super) JoinLimits);

impl Operation for ListedJoins {
    const NAME: &'static str = "join_and_list";

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

    async fn held(&self, batch: &[Join]) -> Result<Vec<Option<Row>>, StoreError> {
        held_by(
            &self.0,
            batch,
            |j| (&j.room_id, &j.user_id, &j.device_id),
            true,
        )
        .await
    }
}

/// Wakes those who look at the rooms of the heartbeats that took effect.
fn wake<'a>(
    wakes: &Wakes,
    heard: impl Iterator<Item = (&'a Heartbeat, &'a Option<SessionOutcome>)> + Clone,
) {
    let renewed = |visible| {
        let heard = heard.clone().filter(move |(heartbeat, outcome)| {
            **outcome == Some(Ok(())) && heartbeat.is_visible() == visible
        });
        heard.map(|(heartbeat, _)| &heartbeat.session.room_id)
    };
    wakes.changed(renewed(true));
    wakes.renewed(renewed(false));
}

/// What comes through the queue of heartbeats.
pub(super) enum Sign {
    /// A client's, which keeps the length of its lease: it needs no row but its own.
    Heartbeat(Heartbeat),
    /// This instance's own.
    Beat(Beat),
}

pub(super) struct Heartbeats(pub(super) Store, pub(super) Wakes);

impl Operation for Heartbeats {
    const NAME: &'static str = "heartbeat";

    type Request = Sign;
    type Answer = SessionOutcome;

    async fn run(&self, batch: &[Sign]) -> Result<Vec<Answered<SessionOutcome>>, StoreError> {
        // Before the others, so that they find the lease clock as it is.
        for sign in batch {
            if let Sign::Beat(beat) = sign {
                report(self.0.beat(*beat).await?);
            }
        }
        let mut heartbeats = Vec::with_capacity(batch.len());
        for sign in batch {
            if let Sign::Heartbeat(heartbeat) = sign {
                heartbeats.push(heartbeat);
            }
        }
        if heartbeats.is_empty() {
            return Ok(batch.iter().map(|_| Answered::Now(Ok(()))).collect());
        }
        let outcomes = self.0.heartbeat(&heartbeats).await?;
        wake(&self.1, heartbeats.iter().copied().zip(&outcomes));
        let mut outcomes = skipping(outcomes).into_iter();
        let answers = batch.iter().map(|sign| match sign {
            Sign::Heartbeat(_) => outcomes.next(),
            Sign::Beat(_) => Some(Answered::Now(Ok(()))),
        });
        answers
            .collect::<Option<_>>()
            .ok_or_else(|| StoreError::Unexpected("a heartbeat was not answered".to_owned()))
    }

    fn row(&self, sign: &Sign) -> Option<Row> {
        match sign {
            Sign::Heartbeat(heartbeat) => Some(Row::of(&heartbeat.session)),
            Sign::Beat(_) => None,
        }
    }
}

/// Says in the log that the lease clock stood still, and for how long.
fn report(beaten: Beaten) {
    if beaten.was_outage {
        tracing::warn!(
            paused_ms = beaten.paused_ms,
            "no instance served for a while, or the database's clock jumped: leases stood still"
        );
    }
}

/// Heartbeats that change the length of their lease, and with it perhaps when their room is next looked at.
pub(super) struct Resizes(pub(super) Store, pub(super) Wakes);

impl Operation for Resizes {
    const NAME: &'static str = "resize";

    type Request = (Heartbeat, Lease);
    type Answer = SessionOutcome;

    async fn run(
        &self,
        batch: &[(Heartbeat, Lease)],
    ) -> Result<Vec<Answered<SessionOutcome>>, StoreError> {
        let outcomes = self.0.resize(batch).await?;
        wake(&self.1, batch.iter().map(|(h, _)| h).zip(&outcomes));
        Ok(skipping(outcomes))
    }

    fn row(&self, (heartbeat, _): &(Heartbeat, Lease)) -> Option<Row> {
        Some(Row::RoomAndSession(heartbeat.session.clone()))
    }
}

pub(super) struct Leaves(pub(super) Store, pub(super) Wakes);

impl Operation for Leaves {
    const NAME: &'static str = "leave";

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

    async fn held(&self, batch: &[SessionKey]) -> Result<Vec<Option<Row>>, StoreError> {
        held_by(
            &self.0,
            batch,
            |s| (&s.room_id, &s.user_id, &s.device_id),
            false,
        )
        .await
    }
}

pub(super) struct Disconnects(pub(super) Store, pub(super) Wakes);

impl Operation for Disconnects {
    const NAME: &'static str = "disconnect";

    type Request = SessionKey;
    type Answer = SessionOutcome;

    async fn run(&self, batch: &[SessionKey]) -> Result<Vec<Answered<SessionOutcome>>, StoreError> {
        let outcomes = self.0.disconnect(batch).await?;
        let marked = batch.iter().zip(&outcomes);
        let marked = marked.filter(|(_, outcome)| **outcome == Some(Ok(())));
        self.1.changed(marked.map(|(session, _)| &session.room_id));
        Ok(skipping(outcomes))
    }

    fn row(&self, session: &SessionKey) -> Option<Row> {
        Some(Row::of(session))
    }
}

pub(super) struct ReaderChecks(pub(super) Store);

impl Operation for ReaderChecks {
    const NAME: &'static str = "reader";

    type Request = (RoomId, Vec<UserId>);
    type Answer = Vec<Option<Blocked>>;

    async fn run(
        &self,
        batch: &[(RoomId, Vec<UserId>)],
    ) -> Result<Vec<Answered<Self::Answer>>, StoreError> {
        Ok(now(self.0.readers_blocked(batch).await?))
    }

    fn row(&self, _: &(RoomId, Vec<UserId>)) -> Option<Row> {
        None
    }
}

pub(super) struct DeparturesOf(pub(super) Store);

impl Operation for DeparturesOf {
    const NAME: &'static str = "departures";

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

pub(super) struct Counts(pub(super) Store);

impl Operation for Counts {
    const NAME: &'static str = "count";

    type Request = RoomId;
    /// `None` where another database has the room.
    type Answer = Option<RoomCount>;

    async fn run(&self, batch: &[RoomId]) -> Result<Vec<Answered<Self::Answer>>, StoreError> {
        let found = self.0.room_counts(batch).await?;
        let counts = batch.iter().map(|id| found.get(id).copied());
        Ok(now(counts.collect()))
    }

    fn row(&self, _: &RoomId) -> Option<Row> {
        None
    }
}

pub(super) struct Lists(pub(super) Store);

impl Operation for Lists {
    const NAME: &'static str = "list";

    // Decoding many rows takes as long as finding them.
    const AT_ONCE: usize = 2;

    type Request = RoomId;
    /// `None` where another database has the room.
    type Answer = Option<Arc<Participants>>;

    async fn run(&self, batch: &[RoomId]) -> Result<Vec<Answered<Self::Answer>>, StoreError> {
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
        let lists = batch.iter().map(|id| found.get(id).cloned());
        Ok(now(lists.collect()))
    }

    fn row(&self, _: &RoomId) -> Option<Row> {
        None
    }
}
