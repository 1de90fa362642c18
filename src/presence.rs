//! What the service can be asked: the store's operations, each gathered into batches.

mod operations;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::coalesce::{Coalescer, NoAnswer, Settings};
use crate::domain::RoomId;
use crate::store::{
    Departures, DeparturesQuery, Disconnect, DisconnectOutcome, Heartbeat, HeartbeatOutcome, Join,
    JoinLimits, JoinOutcome, Leave, LeaveOutcome, ListedJoinOutcome, Participants, Removal,
    RemovalOutcome, Store, StoreError, retry,
};
use crate::wake::Wakes;
use operations::{
    DeparturesOf, Disconnects, Heartbeats, Joins, Leaves, ListedJoins, Lists, PatientHeartbeats,
};

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
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let store = self.store.clone();
        let deadline = Instant::now() + self.timeout;
        let working = self
            .runtime
            .spawn(retry(deadline, move || call(store.clone())));
        match tokio::time::timeout(self.timeout, working).await {
            Ok(Ok(outcome)) => outcome.map_err(|error| NoAnswer::Failed(Arc::new(error))),
            Ok(Err(_)) => Err(NoAnswer::Stopping),
            Err(_) => Err(NoAnswer::TimedOut(self.timeout)),
        }
    }
}
