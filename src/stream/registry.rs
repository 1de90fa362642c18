//! Which rooms are watched, for how many subscribers, and how many there may be.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event::Batch;
use super::watcher;
use crate::domain::{LeaseRules, RoomId};
use crate::presence::Presence;
use crate::telemetry::Metrics;
use crate::wake::{Bell, Wakes};

/// Batches that wait for a subscriber before it counts as behind: what it then
/// misses, a fresh snapshot makes up for.
const QUEUE: usize = 16;

/// How subscriptions are served.
#[derive(Debug, Clone, Copy)]
pub struct LiveSettings {
    /// How long a change can stay unseen where nothing wakes the watcher.
    pub poll: Duration,
    /// Subscriptions of this instance.
    pub max_subscribers: usize,
    /// Subscriptions of one room on this instance.
    pub max_subscribers_per_room: usize,
}

/// Why a subscription is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this instance has {0} subscribers and takes no more")]
    InstanceFull(usize),
    #[error("the room has {0} subscribers on this instance, which takes no more")]
    RoomFull(usize),
    #[error("the service is shutting down")]
    Stopping,
}

/// The way to subscribe; cheap to clone.
#[derive(Clone)]
pub struct Live(Arc<Shared>);

/// What the watchers share.
pub(super) struct Shared {
    pub presence: Presence,
    pub leases: LeaseRules,
    pub settings: LiveSettings,
    pub metrics: Metrics,
    wakes: Wakes,
    rooms: Mutex<HashMap<RoomId, Arc<Room>>>,
    seats: AtomicUsize,
    runtime: Handle,
    watchers: TaskTracker,
    stop: CancellationToken,
}

/// A watched room.
pub(super) struct Room {
    pub id: RoomId,
    pub bell: Arc<Bell>,
    /// Subscribers that wait for their first snapshot.
    pub arriving: Mutex<Vec<Subscriber>>,
    seats: AtomicUsize,
}

/// The watcher's end of a subscription.
pub(super) struct Subscriber {
    pub batches: mpsc::Sender<Arc<Batch>>,
    /// It was too slow: nothing more until it has read what it has, then a snapshot.
    pub is_behind: bool,
}

impl Subscriber {
    /// It has read everything that was sent.
    pub fn has_caught_up(&self) -> bool {
        self.batches.capacity() == self.batches.max_capacity()
    }
}

/// The other end: what a room looks like, and then what changes.
pub struct Subscription {
    batches: mpsc::Receiver<Arc<Batch>>,
    _seat: Seat,
}

struct Seat {
    room: Arc<Room>,
    live: Arc<Shared>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.seats.fetch_sub(1, Ordering::Relaxed);
        self.live.seats.fetch_sub(1, Ordering::Relaxed);
        self.live.metrics.subscriber_gone();
        // The watcher of a room without subscribers ends.
        self.room.bell.nudge();
    }
}

impl Subscription {
    /// The next batch, the first of which is a snapshot; `None` when the service stops.
    pub async fn next(&mut self) -> Option<Arc<Batch>> {
        self.batches.recv().await
    }

    /// [`Subscription::next`] for a body that is polled.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Arc<Batch>>> {
        self.batches.poll_recv(context)
    }
}

/// A panic while holding one of these locks leaves a collection that is still one.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// Watchers will run on the current runtime until `stop`.
    pub fn new(
        presence: Presence,
        wakes: Wakes,
        leases: LeaseRules,
        settings: LiveSettings,
        metrics: Metrics,
        stop: CancellationToken,
    ) -> Self {
        Self(Arc::new(Shared {
            presence,
            leases,
            settings,
            metrics,
            wakes,
            rooms: Mutex::default(),
            seats: AtomicUsize::new(0),
            runtime: Handle::current(),
            watchers: TaskTracker::new(),
            stop,
        }))
    }

    /// What ends when the last watcher has.
    pub fn watchers(&self) -> TaskTracker {
        self.0.watchers.clone()
    }

    /// Subscribes to a room, whether or not it exists.
    ///
    /// # Errors
    /// [`Refusal`]
    pub fn subscribe(&self, id: &RoomId) -> Result<Subscription, Refusal> {
        let live = &self.0;
        if live.stop.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        // Seats are only taken under this lock, so that the limits hold.
        let mut rooms = lock(&live.rooms);
        let seats = live.seats.load(Ordering::Relaxed);
        if seats >= live.settings.max_subscribers {
            return Err(Refusal::InstanceFull(seats));
        }
        let room = match rooms.get(id) {
            Some(room) => Arc::clone(room),
            None => {
                let room = Arc::new(Room {
                    id: id.clone(),
                    bell: live.wakes.watch(id),
                    arriving: Mutex::default(),
                    seats: AtomicUsize::new(0),
                });
                rooms.insert(id.clone(), Arc::clone(&room));
                let watching = watcher::watch(Arc::clone(live), Arc::clone(&room));
                let stop = live.stop.clone();
                live.watchers.spawn_on(
                    async move {
                        stop.run_until_cancelled(watching).await;
                    },
                    &live.runtime,
                );
                live.metrics.watched_rooms(rooms.len());
                room
            }
        };
        let seated = room.seats.load(Ordering::Relaxed);
        if seated >= live.settings.max_subscribers_per_room {
            return Err(Refusal::RoomFull(seated));
        }
        room.seats.fetch_add(1, Ordering::Relaxed);
        live.seats.fetch_add(1, Ordering::Relaxed);
        live.metrics.subscriber_came();
        let (sender, batches) = mpsc::channel(QUEUE);
        lock(&room.arriving).push(Subscriber {
            batches: sender,
            is_behind: false,
        });
        drop(rooms);
        room.bell.nudge();
        Ok(Subscription {
            batches,
            _seat: Seat {
                room,
                live: Arc::clone(live),
            },
        })
    }
}

impl Shared {
    /// Stops watching, unless somebody subscribed meanwhile.
    pub fn retire(&self, room: &Room) -> bool {
        let mut rooms = lock(&self.rooms);
        if !lock(&room.arriving).is_empty() {
            return false;
        }
        rooms.remove(&room.id);
        self.wakes.unwatch(&room.id);
        self.metrics.watched_rooms(rooms.len());
        true
    }
}
