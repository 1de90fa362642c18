//! What the service can be asked: the store's operations, each through its lanes.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::coalesce::{Coalescer, NoAnswer, Operation, Settings};
use crate::domain::RoomId;
use crate::store::{
    Heartbeat, HeartbeatOutcome, Join, JoinLimits, JoinOutcome, Leave, LeaveOutcome, Participants,
    Store, StoreError,
};

/// The way to every operation on membership.
#[derive(Clone)]
pub struct Presence {
    joins: Coalescer<Joins>,
    heartbeats: Coalescer<Heartbeats>,
    leaves: Coalescer<Leaves>,
    lists: Coalescer<Lists>,
}

impl Presence {
    /// Starts the lanes as tasks of `tasks`.
    pub fn start(
        store: &Store,
        limits: JoinLimits,
        settings: Settings,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        Self {
            joins: Coalescer::start(
                Joins {
                    store: store.clone(),
                    limits,
                },
                settings,
                tasks,
            ),
            heartbeats: Coalescer::start(Heartbeats(store.clone()), settings, tasks),
            leaves: Coalescer::start(Leaves(store.clone()), settings, tasks),
            lists: Coalescer::start(Lists(store.clone()), settings, tasks),
        }
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn join(&self, join: Join) -> Result<JoinOutcome, NoAnswer> {
        self.joins.ask(join).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatOutcome, NoAnswer> {
        self.heartbeats.ask(heartbeat).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn leave(&self, leave: Leave) -> Result<LeaveOutcome, NoAnswer> {
        self.leaves.ask(leave).await
    }

    /// # Errors
    /// [`NoAnswer`]
    pub async fn participants(&self, room_id: RoomId) -> Result<Arc<Participants>, NoAnswer> {
        self.lists.ask(room_id).await
    }
}

struct Joins {
    store: Store,
    limits: JoinLimits,
}

impl Operation for Joins {
    type Request = Join;
    type Answer = JoinOutcome;

    async fn run(&self, batch: &[Join]) -> Result<Vec<JoinOutcome>, StoreError> {
        self.store.join(batch, self.limits).await
    }

    fn key(join: &Join) -> &str {
        join.room_id.as_str()
    }
}

struct Heartbeats(Store);

impl Operation for Heartbeats {
    type Request = Heartbeat;
    type Answer = HeartbeatOutcome;

    async fn run(&self, batch: &[Heartbeat]) -> Result<Vec<HeartbeatOutcome>, StoreError> {
        self.0.heartbeat(batch).await
    }

    fn key(heartbeat: &Heartbeat) -> &str {
        heartbeat.room_id.as_str()
    }
}

struct Leaves(Store);

impl Operation for Leaves {
    type Request = Leave;
    type Answer = LeaveOutcome;

    async fn run(&self, batch: &[Leave]) -> Result<Vec<LeaveOutcome>, StoreError> {
        self.0.leave(batch).await
    }

    fn key(leave: &Leave) -> &str {
        leave.room_id.as_str()
    }
}

struct Lists(Store);

impl Operation for Lists {
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

    fn key(room_id: &RoomId) -> &str {
        room_id.as_str()
    }
}
