//! The way to subscribe: who may, and what starts with the first subscriber.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::watched::{Channel, LiveSettings, Seat, Standing, Subscriber, Topic, Watched, lock};
use super::watcher;
use super::{Batch, Client};
use crate::domain::{Lobby, RoomId, UserId, View};
use crate::presence::Presence;
use crate::telemetry::Metrics;
use crate::wake::Wakes;

/// Batches that wait for a subscriber before it counts as behind: what it then
/// misses, a fresh snapshot makes up for.
const QUEUE: usize = 16;

/// Why a subscription is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSeat {
    /// So many are subscribed on this instance.
    #[error("this instance has {0} subscribers and takes no more")]
    InstanceFull(usize),
    /// So many are subscribed to the room on this instance.
    #[error("the room has {0} subscribers on this instance, which takes no more")]
    RoomFull(usize),
    /// So many are subscribed to the lobby on this instance.
    #[error("the lobby has {0} subscribers on this instance, which takes no more")]
    LobbyFull(usize),
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

/// The subscriber's end: what a room or lobby looks like, and then what changes.
pub struct Subscription {
    batches: mpsc::Receiver<Arc<Batch>>,
    _seat: Seat,
}

impl Subscription {
    /// The next batch, the first of which is a snapshot; `None` when the service stops.
    pub async fn next(&mut self) -> Option<Arc<Batch>> {
        self.batches.recv().await
    }
}

/// [`Subscription::next`] for what is polled.
impl Stream for Subscription {
    type Item = Arc<Batch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Arc<Batch>>> {
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
                channels: Mutex::default(),
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
        let topic = Topic::Room(id.clone(), view);
        self.seat(topic, client, reader)
    }

    /// Subscribes a client to a lobby, whether or not there is any room in it.
    ///
    /// # Errors
    /// [`NoSeat`]
    pub fn subscribe_to_lobby(&self, lobby: Lobby, client: Client) -> Result<Subscription, NoSeat> {
        self.seat(Topic::Lobby(lobby), client, None)
    }

    fn seat(
        &self,
        topic: Topic,
        client: Client,
        reader: Option<UserId>,
    ) -> Result<Subscription, NoSeat> {
        let watched = &self.watched;
        if self.stop.is_cancelled() {
            return Err(NoSeat::Stopping);
        }
        let mut channels = lock(&watched.channels);
        let seats = watched.seats.load(Ordering::Relaxed);
        if seats >= watched.settings.max_subscribers {
            return Err(NoSeat::InstanceFull(seats));
        }
        let own = lock(&watched.clients).get(&client).copied().unwrap_or(0);
        if own >= watched.settings.max_subscribers_per_client {
            return Err(NoSeat::ClientFull(own));
        }
        let channel = match channels.get(&topic) {
            Some(channel) => Arc::clone(channel),
            None => self.watch(topic, &mut channels),
        };
        let seated = channel.seats.load(Ordering::Relaxed);
        if seated >= watched.settings.max_subscribers_per_room {
            return Err(match channel.topic {
                Topic::Room(..) => NoSeat::RoomFull(seated),
                Topic::Lobby(_) => NoSeat::LobbyFull(seated),
            });
        }
        let seat = Seat::take(client, Arc::clone(&channel), Arc::clone(watched));
        let (sender, batches) = mpsc::channel(QUEUE);
        lock(&channel.arriving).push(Subscriber {
            batches: sender,
            reader,
            standing: Standing::Current,
        });
        drop(channels);
        channel.bell.nudge();
        Ok(Subscription {
            batches,
            _seat: seat,
        })
    }

    /// Starts to watch what nobody subscribed to yet.
    fn watch(&self, topic: Topic, channels: &mut HashMap<Topic, Arc<Channel>>) -> Arc<Channel> {
        let channel = Arc::new(Channel {
            bell: topic.watch(&self.watched.wakes),
            topic: topic.clone(),
            arriving: Mutex::default(),
            seats: AtomicUsize::new(0),
        });
        channels.insert(topic, Arc::clone(&channel));
        let watching = watcher::watch(Arc::clone(&self.watched), Arc::clone(&channel));
        let stop = self.stop.clone();
        self.watchers.spawn_on(
            async move {
                stop.run_until_cancelled(watching).await;
            },
            &self.runtime,
        );
        self.watched.metrics.streams.watched_rooms(channels.len());
        channel
    }
}
