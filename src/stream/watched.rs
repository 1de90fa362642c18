//! The rooms and lobbies that have subscribers, and who sits where: what the watchers share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{Batch, Client};
use crate::domain::{Lobby, RoomId, UserId, View};
use crate::presence::Presence;
use crate::telemetry::Metrics;
use crate::wake::{Bell, Wakes};

/// How subscriptions are served.
#[derive(Debug, Clone, Copy)]
pub struct LiveSettings {
    /// How long a change can stay unseen where nothing wakes the watcher.
    pub poll: Duration,
    /// Subscriptions of this instance.
    pub max_subscribers: usize,
    /// Subscriptions to one view of one room, or to one lobby, on this instance.
    pub max_subscribers_per_room: usize,
    /// Subscriptions of one client on this instance.
    pub max_subscribers_per_client: usize,
}

/// What the watchers share.
pub(super) struct Watched {
    pub(super) presence: Presence,
    pub(super) settings: LiveSettings,
    pub(super) metrics: Metrics,
    pub(super) wakes: Wakes,
    /// Seats are only taken under this lock, so that the limits hold.
    pub(super) channels: Mutex<HashMap<Topic, Arc<Channel>>>,
    pub(super) seats: AtomicUsize,
    /// The seats of each client that has any.
    pub(super) clients: Mutex<HashMap<Client, usize>>,
}

/// What can be subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    Room(RoomId, View),
    Lobby(Lobby),
}

impl Topic {
    /// From now on its changes ring this bell.
    pub(super) fn watch(&self, wakes: &Wakes) -> Arc<Bell> {
        match self {
            Self::Room(id, _) => wakes.watch(id),
            Self::Lobby(lobby) => wakes.watch_prefix(&lobby.prefix),
        }
    }

    /// The opposite.
    fn unwatch(&self, wakes: &Wakes, bell: &Arc<Bell>) {
        match self {
            Self::Room(id, _) => wakes.unwatch(id, bell),
            Self::Lobby(lobby) => wakes.unwatch_prefix(&lobby.prefix, bell),
        }
    }
}

/// A topic with subscribers.
pub(super) struct Channel {
    pub(super) topic: Topic,
    pub(super) bell: Arc<Bell>,
    /// Subscribers that wait for their first snapshot.
    pub(super) arriving: Mutex<Vec<Subscriber>>,
    pub(super) seats: AtomicUsize,
}

/// The watcher's end of a subscription.
pub(super) struct Subscriber {
    pub(super) batches: mpsc::Sender<Arc<Batch>>,
    /// Who reads, where that is somebody who can be kept from it.
    pub(super) reader: Option<UserId>,
    pub(super) standing: Standing,
}

/// What a subscriber can be told next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It knows the picture: what changes.
    Current,
    /// It has been told that its picture is not kept up: a snapshot.
    Stale,
    /// It was too slow: nothing more until it has read what it has, then a snapshot.
    Behind,
}

impl Subscriber {
    /// It has read everything that was sent.
    pub(super) fn has_caught_up(&self) -> bool {
        self.batches.capacity() == self.batches.max_capacity()
    }

    /// Sends what gives it this standing; false where it falls behind instead.
    pub(super) fn send(&mut self, batch: Arc<Batch>, standing: Standing) -> bool {
        // One that is gone is taken out before the next read.
        let sent = self.batches.try_send(batch);
        let is_full = matches!(sent, Err(TrySendError::Full(_)));
        self.standing = if is_full { Standing::Behind } else { standing };
        !is_full
    }
}

/// A client's place among the subscribers of a topic, given back when dropped.
pub(super) struct Seat {
    client: Client,
    channel: Arc<Channel>,
    watched: Arc<Watched>,
}

impl Seat {
    /// Taken under the lock of [`Watched::channels`].
    pub(super) fn take(client: Client, channel: Arc<Channel>, watched: Arc<Watched>) -> Self {
        *lock(&watched.clients).entry(client.clone()).or_default() += 1;
        channel.seats.fetch_add(1, Ordering::Relaxed);
        watched.seats.fetch_add(1, Ordering::Relaxed);
        watched.metrics.streams.subscriber_came();
        Self {
            client,
            channel,
            watched,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Entry::Occupied(mut seats) = lock(&self.watched.clients).entry(self.client.clone()) {
            *seats.get_mut() -= 1;
            if *seats.get() == 0 {
                seats.remove();
            }
        }
        self.channel.seats.fetch_sub(1, Ordering::Relaxed);
        self.watched.seats.fetch_sub(1, Ordering::Relaxed);
        self.watched.metrics.streams.subscriber_gone();
        // The watcher of a topic without subscribers ends.
        self.channel.bell.nudge();
    }
}

impl Watched {
    /// Stops watching, unless somebody subscribed meanwhile.
    pub(super) fn retire(&self, channel: &Channel) -> bool {
        let mut channels = lock(&self.channels);
        if !lock(&channel.arriving).is_empty() {
            return false;
        }
        channels.remove(&channel.topic);
        channel.topic.unwatch(&self.wakes, &channel.bell);
        self.metrics.streams.watched_rooms(channels.len());
        true
    }
}

/// A panic while holding one of these locks leaves a collection that is still one.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
