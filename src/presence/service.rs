//! The service: the queues of what is gathered, and what they share.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::figures::Figures;
use super::gathered::{
    Counts, DeparturesOf, Disconnects, Heartbeats, Joins, Leaves, ListedJoins, Lists, ReaderChecks,
    Resizes,
};
use super::pulse::{Pulse, PulseSettings};
use crate::coalesce::{self, Coalescer, Holds, Operation};
use crate::domain::JoinLimits;
use crate::store::Store;
use crate::telemetry::Metrics;
use crate::wake::Wakes;

/// How requests are gathered, and what joins are measured by.
#[derive(Debug, Clone, Copy)]
pub struct PresenceSettings {
    /// How many members, devices and rooms there may be.
    pub limits: JoinLimits,
    /// How requests are gathered.
    pub coalescing: coalesce::Settings,
    /// The most rows held by other transactions that are waited for at a time.
    pub held_rows: usize,
    /// How far an outage stops the lease clock.
    pub pulse: PulseSettings,
}

pub(super) type Queue<O> = Coalescer<O, Store>;

/// The way to everything that can be asked; cheap to clone.
///
/// Every question is answered within the time-out of its settings, and a
/// caller that goes away cancels nothing that it asked for.
#[derive(Clone)]
pub struct Presence {
    pub(super) store: Store,
    pub(super) wakes: Wakes,
    pub(super) holds: Holds<Store>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) figures: Arc<Figures>,
    /// Where calls of their own run: a thread that serves HTTP ends before the store does.
    pub(super) runtime: Handle,
    pub(super) timeout: Duration,
    pub(super) joins: Queue<Joins>,
    pub(super) listed_joins: Queue<ListedJoins>,
    pub(super) heartbeats: Queue<Heartbeats>,
    pub(super) resizes: Queue<Resizes>,
    pub(super) leaves: Queue<Leaves>,
    pub(super) disconnects: Queue<Disconnects>,
    pub(super) lists: Queue<Lists>,
    pub(super) counts: Queue<Counts>,
    pub(super) departures: Queue<DeparturesOf>,
    pub(super) readers: Queue<ReaderChecks>,
}

impl Presence {
    /// Starts the gathering as tasks of `tasks`. What they commit wakes those who look at the rooms.
    pub fn start(
        store: &Store,
        settings: PresenceSettings,
        wakes: &Wakes,
        metrics: &Metrics,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let coalescing = settings.coalescing;
        let holds = Holds::new(store.clone(), settings.held_rows, coalescing.queue);
        let limits = settings.limits;
        let (store, wakes) = (store.clone(), wakes.clone());
        Self {
            joins: queue(
                Joins(store.clone(), wakes.clone(), limits),
                coalescing,
                &holds,
                metrics,
                tasks,
            ),
            listed_joins: queue(
                ListedJoins(store.clone(), wakes.clone(), limits),
                coalescing,
                &holds,
                metrics,
                tasks,
            ),
            heartbeats: queue(
                Heartbeats(store.clone(), wakes.clone()),
                coalescing,
                &holds,
                metrics,
                tasks,
            ),
            resizes: queue(
                Resizes(store.clone(), wakes.clone()),
                coalescing,
                &holds,
                metrics,
                tasks,
            ),
            leaves: queue(
                Leaves(store.clone(), wakes.clone()),
                coalescing,
                &holds,
                metrics,
                tasks,
            ),
            disconnects: queue(
                Disconnects(store.clone(), wakes.clone()),
                coalescing,
                &holds,
                metrics,
                tasks,
            ),
            counts: queue(Counts(store.clone()), coalescing, &holds, metrics, tasks),
            lists: queue(Lists(store.clone()), coalescing, &holds, metrics, tasks),
            departures: queue(
                DeparturesOf(store.clone()),
                coalescing,
                &holds,
                metrics,
                tasks,
            ),
            readers: queue(
                ReaderChecks(store.clone()),
                coalescing,
                &holds,
                metrics,
                tasks,
            ),
            timeout: coalescing.timeout,
            runtime: Handle::current(),
            pulse: Arc::new(Pulse::new(settings.pulse)),
            figures: Arc::default(),
            holds,
            store,
            wakes,
        }
    }
}

fn queue<O: Operation>(
    operation: O,
    settings: coalesce::Settings,
    holds: &Holds<Store>,
    metrics: &Metrics,
    tasks: &mut JoinSet<()>,
) -> Queue<O> {
    Coalescer::start(operation, settings, holds, metrics.queue(O::NAME), tasks)
}
