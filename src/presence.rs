//! What the service can be asked: the store's operations, each gathered into batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::coalesce::{Coalescer, NoAnswer, Operation, Settings};
use crate::domain::RoomId;
use crate::store::{
    Departures, DeparturesQuery, Disconnect, DisconnectOutcome, Heartbeat, HeartbeatOutcome, Join,
    JoinLimits, JoinOutcome, Leave, LeaveOutcome, ListedJoinOutcome, Participants, Removal,
    RemovalOutcome, Store, StoreError,
};
use crate::wake::Wakes;

/// A deadlock or a serialisation failure of a call of its own is tried again so many times.
const RETRIES: u32 = 5;

/// The way to every operation on membership.
#[derive(Clone)]
pub struct Presence {
    store: Store,
    /// Where calls of their own run: a thread that serves HTTP ends before the store does.
    runtime: Handle,
    timeout: Duration,
    joins: Coalescer<Joins>,
    listed_joins: Coalescer<ListedJoins>,
    heartbeats: Coalescer<Heartbeats>,
    patient_heartbeats: Coalescer<PatientHeartbeats>,
    leaves: Coalescer<Leaves>,
    disconnects: Coalescer<Disconnects>,
    lists: Coalescer<Lists>,
    departures: Coalescer<DeparturesOf>,
    wakes: Wakes,
}

impl Presence {
    /// Starts the gathering as tasks of `tasks`. What they commit wakes those who look at the rooms.
    pub fn start(
        store: &Store,
        limits: JoinLimits,
        settings: Settings,
        wakes: &Wakes,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        Self {
            store: store.clone(),
            runtime: Handle::current(),
            timeout: settings.timeout,
            joins: Coalescer::start(
                Joins {
                    store: store.clone(),
                    limits,
                    wakes: wakes.clone(),
                },
                settings,
                tasks,
            ),
            listed_joins: Coalescer::start(
                ListedJoins {
                    store: store.clone(),
                    limits,
                    wakes: wakes.clone(),
                },
                settings,
                tasks,
            ),
            heartbeats: Coalescer::start(Heartbeats(store.clone(), wakes.clone()), settings, tasks),
            patient_heartbeats: Coalescer::start(
                PatientHeartbeats(store.clone(), wakes.clone()),
                settings,
                tasks,
            ),
            leaves: Coalescer::start(Leaves(store.clone(), wakes.clone()), settings, tasks),
            disconnects: Coalescer::start(
                Disconnects(store.clone(), wakes.clone()),
                settings,
                tasks,
            ),
            lists: Coalescer::start(Lists(store.clone()), settings, tasks),
            departures: Coalescer::start(DeparturesOf(store.clone()), settings, tasks),
            wakes: wakes.clone(),
        }
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn join(&self, join: Join) -> Result<JoinOutcome, NoAnswer> {
        self.joins.ask(join).await
    }

    /// A join that is answered with the room as it left it.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn join_and_list(&self, join: Join) -> Result<ListedJoinOutcome, NoAnswer> {
        self.listed_joins.ask(join).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatOutcome, NoAnswer> {
        // A new length of the lease has to wait for the room.
        let held = if heartbeat.lease_ms.is_some() {
            heartbeat
        } else {
            match self.heartbeats.ask(heartbeat).await? {
                Ok(outcome) => return Ok(outcome),
                Err(held) => *held,
            }
        };
        self.patient_heartbeats.ask(held).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn leave(&self, leave: Leave) -> Result<LeaveOutcome, NoAnswer> {
        self.leaves.ask(leave).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn disconnect(&self, disconnect: Disconnect) -> Result<DisconnectOutcome, NoAnswer> {
        self.disconnects.ask(disconnect).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn departures(&self, query: DeparturesQuery) -> Result<Departures, NoAnswer> {
        self.departures.ask(query).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn participants(&self, room_id: RoomId) -> Result<Arc<Participants>, NoAnswer> {
        self.lists.ask(room_id).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn remove(&self, removal: Removal) -> Result<RemovalOutcome, NoAnswer> {
        let wakes = self.wakes.clone();
        self.alone(move |store| {
            let (removal, wakes) = (removal.clone(), wakes.clone());
            async move {
                let outcome = store.remove(&removal).await?;
                wakes.grown(std::iter::once(&removal.room_id));
                Ok(outcome)
            }
        })
        .await
    }

    /// Says how many sessions it ended.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn close_room(&self, room_id: RoomId) -> Result<i32, NoAnswer> {
        let wakes = self.wakes.clone();
        self.alone(move |store| {
            let (room_id, wakes) = (room_id.clone(), wakes.clone());
            async move {
                let ended = store.close_room(&room_id).await?;
                wakes.grown(std::iter::once(&room_id));
                Ok(ended)
            }
        })
        .await
    }

    /// One call of the store that is asked too rarely to be gathered. It runs in a task of its
    /// own, so that a caller that goes away cancels no transaction, and for a bounded time.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn alone<T, F>(
        &self,
        call: impl Fn(Store) -> F + Send + 'static,
    ) -> Result<T, NoAnswer>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let store = self.store.clone();
        let working = self.runtime.spawn(async move {
            let mut retries = 0;
            loop {
                match call(store.clone()).await {
                    Err(error) if error.may_be_tried_again() && retries < RETRIES => retries += 1,
                    outcome => return outcome,
                }
            }
        });
        match tokio::time::timeout(self.timeout, working).await {
            Ok(Ok(outcome)) => outcome.map_err(|error| NoAnswer::Failed(Arc::new(error))),
            Ok(Err(_)) => Err(NoAnswer::Stopping),
            Err(_) => Err(NoAnswer::TimedOut(self.timeout)),
        }
    }
}

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

struct Joins {
    store: Store,
    limits: JoinLimits,
    wakes: Wakes,
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
        let rooms = batch.iter().map(|request| &request.room_id);
        self.store.held_rooms(rooms).await
    }
}

struct ListedJoins {
    store: Store,
    limits: JoinLimits,
    wakes: Wakes,
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
        let rooms = batch.iter().map(|request| &request.room_id);
        self.store.held_rooms(rooms).await
    }
}

/// Wakes those who look at the rooms of the heartbeats that took effect.
fn wake<'a>(wakes: &Wakes, renewed: impl Iterator<Item = &'a Heartbeat> + Clone) {
    let is_visible = |h: &Heartbeat| h.cursor.is_some() || h.metadata.is_some();
    let of = |visible| {
        renewed
            .clone()
            .filter(move |heartbeat| is_visible(heartbeat) == visible)
            .map(|heartbeat| &heartbeat.room_id)
    };
    wakes.changed(of(true));
    wakes.renewed(of(false));
}

/// Never waits for another transaction, so that one that holds a session delays no other: its
/// heartbeat is given back.
struct Heartbeats(Store, Wakes);

impl Operation for Heartbeats {
    type Request = Heartbeat;
    type Answer = Result<HeartbeatOutcome, Box<Heartbeat>>;

    async fn run(&self, batch: &[Heartbeat]) -> Result<Vec<Self::Answer>, StoreError> {
        let outcomes = self.0.heartbeat_unless_held(batch).await?;
        let with_outcomes = batch.iter().zip(&outcomes);
        wake(
            &self.1,
            with_outcomes
                .clone()
                .filter(|(_, outcome)| matches!(outcome, Some(Ok(()))))
                .map(|(heartbeat, _)| heartbeat),
        );
        Ok(with_outcomes
            .map(|(heartbeat, outcome)| outcome.ok_or_else(|| Box::new(heartbeat.clone())))
            .collect())
    }
}

/// Waits for the transaction that holds a session, as long as a request may take.
struct PatientHeartbeats(Store, Wakes);

impl Operation for PatientHeartbeats {
    type Request = Heartbeat;
    type Answer = HeartbeatOutcome;

    async fn run(&self, batch: &[Heartbeat]) -> Result<Vec<HeartbeatOutcome>, StoreError> {
        let outcomes = self.0.heartbeat(batch).await?;
        let with_outcomes = batch.iter().zip(&outcomes);
        wake(
            &self.1,
            with_outcomes
                .filter(|(_, outcome)| outcome.is_ok())
                .map(|(heartbeat, _)| heartbeat),
        );
        Ok(outcomes)
    }
}

struct Leaves(Store, Wakes);

impl Operation for Leaves {
    type Request = Leave;
    type Answer = LeaveOutcome;

    async fn run(&self, batch: &[Leave]) -> Result<Vec<LeaveOutcome>, StoreError> {
        let outcomes = self.0.leave(batch).await?;
        self.1.grown(rooms(batch, &outcomes, |l| &l.room_id));
        Ok(outcomes)
    }

    async fn held(&self, batch: &[Leave]) -> Result<Vec<bool>, StoreError> {
        let rooms = batch.iter().map(|request| &request.room_id);
        self.0.held_rooms(rooms).await
    }
}

struct Disconnects(Store, Wakes);

impl Operation for Disconnects {
    type Request = Disconnect;
    type Answer = DisconnectOutcome;

    async fn run(&self, batch: &[Disconnect]) -> Result<Vec<DisconnectOutcome>, StoreError> {
        let outcomes = self.0.disconnect(batch).await?;
        self.1.changed(rooms(batch, &outcomes, |d| &d.room_id));
        Ok(outcomes)
    }
}

struct DeparturesOf(Store);

impl Operation for DeparturesOf {
    type Request = DeparturesQuery;
    type Answer = Departures;

    async fn run(&self, batch: &[DeparturesQuery]) -> Result<Vec<Departures>, StoreError> {
        self.0.departures(batch).await
    }
}

struct Lists(Store);

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
