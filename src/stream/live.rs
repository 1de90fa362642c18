//! The way to subscribe: who may, and what starts with the first of a room.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::watched::{LiveSettings, Room, Seat, Standing, Subscriber, Watched, lock};
use super::watcher;
use super::{Batch, Client};
use crate::domain::{RoomId, UserId, View};
use crate::presence::Presence;
use crate::telemetry::Metrics;
use crate::wake::Wakes;

/// Batches that wait for a subscriber before it counts as behind: what it then
/// misses, a fresh snapshot makes up for.
const QUEUE: usize = 16;

/// Why a subscription is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSeat {
    /// So many are subscribed to rooms on this instance.
    #[error("this instance has {0} subscribers and takes no more")]
    InstanceFull(usize),
    /// So many are subscribed to the room on this instance.
    #[error("the room has {0} subscribers on this instance, which takes no more")]
    RoomFull(usize),
    /// So many of them are the client's.
    #[error("this client has {0} subscriptions on this instance, which gives it no more")]
    ClientFull(usize),
    /// Streams end now.
    #[error("the service is shutting down")]
    Stopping,
}

/// The way to subscribe; cheap to clone.
#[derive(Clone)]
pub struct Live {
    watched: Arc<Watched>,
    runtime: Handle,
    watchers: TaskTracker,
    stop: CancellationToken,
}

/// The subscriber's end: what a room looks like, and then what changes.
pub struct Subscription {
    batches: mpsc::Receiver<Arc<Batch>>,
    _seat: Seat,
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

impl Live {
    /// Watchers will run on the current runtime until `stop`.
    pub fn new(
        presence: Presence,
        wakes: Wakes,
        settings: LiveSettings,
        metrics: Metrics,
        stop: CancellationToken,
    ) -> Self {
        Self {
            watched: Arc::new(Watched {
                presence,
                settings,
                metrics,
                wakes,
                rooms: Mutex::new(HashMap::new()),
                seats: AtomicUsize::new(0),
                clients: Mutex::default(),
            }),
            runtime: Handle::current(),
            watchers: TaskTracker::new(),
            stop,
        }
    }

    /// What ends when the last watcher has.
    pub fn watchers(&self) -> TaskTracker {
        self.watchers.clone()
    }

    /// Subscribes a client to a view of a room, whether or not it exists; with `reader` until that user
    /// is put out of it for a time.
    ///
    /// # Errors
    /// [`NoSeat`]
    pub fn subscribe(
        &self,
        id: &RoomId,
        view: View,
        client: Client,
        reader: Option<UserId>,
    ) -> Result<Subscription, NoSeat> {
        let watched = &self.watched;
        if self.stop.is_cancelled() {
            return Err(NoSeat::Stopping);
        }
        let mut rooms = lock(&watched.rooms);
        let seats = watched.seats.load(Ordering::Relaxed);
        if seats >= watched.settings.max_subscribers {
            return Err(NoSeat::InstanceFull(seats));
        }
        let own = lock(&watched.clients).get(&client).copied().unwrap_or(0);
        if own >= watched.settings.max_subscribers_per_client {
            return Err(NoSeat::ClientFull(own));
        }
        let room = match rooms.get(&(id.clone(), view)) {
            Some(room) => Arc::clone(room),
            None => self.watch(id, view, &mut rooms),
        };
        let seated = room.seats.load(Ordering::Relaxed);
        if seated >= watched.settings.max_subscribers_per_room {
            return Err(NoSeat::RoomFull(seated));
        }
        let seat = Seat::take(client, Arc::clone(&room), Arc::clone(watched));
        let (sender, batches) = mpsc::channel(QUEUE);
        lock(&room.arriving).push(Subscriber {
            batches: sender,
            reader,
            standing: Standing::Current,
        });
        drop(rooms);
        room.bell.nudge();
        Ok(Subscription {
            batches,
            _seat: seat,
        })
    }

    /// Starts to watch a room that nobody subscribed to yet.
    fn watch(
        &self,
        id: &RoomId,
        view: View,
        rooms: &mut HashMap<(RoomId, View), Arc<Room>>,
    ) -> Arc<Room> {
        let room = Arc::new(Room {
            id: id.clone(),
            view,
            bell: self.watched.wakes.watch(id),
            arriving: Mutex::default(),
            seats: AtomicUsize::new(0),
        });
        rooms.insert((id.clone(), view), Arc::clone(&room));
        let watching = watcher::watch(Arc::clone(&self.watched), Arc::clone(&room));
        let stop = self.stop.clone();
        self.watchers.spawn_on(
            async move {
                stop.run_until_cancelled(watching).await;
            },
            &self.runtime,
        );
        self.watched.metrics.streams.watched_rooms(rooms.len());
        room
    }
}
