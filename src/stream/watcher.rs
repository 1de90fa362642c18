//! One topic with subscribers: when it is read, and what they are told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::difference::Difference;
use super::picture::Picture;
use super::watched::{Channel, Standing, Subscriber, Topic, Watched, lock};
use super::{Batch, lobby, rate};
use crate::coalesce::NoAnswer;
use crate::domain::{DeparturesQuery, Event, Participants, RoomId, UserId};
use crate::wire::{self, Written};

/// After a read that failed.
const RETRY: Duration = Duration::from_millis(200);

struct Watcher {
    watched: Arc<Watched>,
    channel: Arc<Channel>,
    subscribers: Vec<Subscriber>,
    /// Those who wait for the first snapshot, from a read that begins after they came.
    newcomers: Vec<Subscriber>,
    /// What the subscribers know, and its fingerprint.
    picture: Option<(Picture, String)>,
    /// Whether the last read succeeded.
    is_kept_up: bool,
    /// When it was last asked who of the subscribers may not read the room any more.
    readers_checked: Instant,
}

/// What is new between two reads.
#[derive(Default)]
struct News {
    events: Vec<Written>,
    /// Whether it may be that someone was put out.
    someone_left: bool,
}

/// Runs as long as the topic has subscribers.
pub(super) async fn watch(watched: Arc<Watched>, channel: Arc<Channel>) {
    let mut watcher = Watcher {
        watched,
        channel,
        subscribers: Vec::new(),
        newcomers: Vec::new(),
        picture: None,
        is_kept_up: false,
        readers_checked: Instant::now(),
    };
    let mut last_look: Option<Instant> = None;
    let mut last_success = Instant::now();
    let mut has_failed = false;
    let mut next_look = Instant::now();
    while watcher.look_is_due(next_look).await {
        watcher.keep_pace(last_look).await;
        // Whatever rings from here on may not be in this read.
        watcher.channel.bell.take();
        let started = Instant::now();
        last_look = Some(started);
        next_look = match watcher.look().await {
            Ok(turn) => {
                last_success = started;
                has_failed = false;
                watcher.is_kept_up = true;
                turn.min(started + watcher.watched.settings.poll)
            }
            Err(error) if error.is_misdirected() => {
                watcher.end_misdirected();
                Instant::now() + RETRY
            }
            Err(error) => {
                watcher.is_kept_up = false;
                // One that fails at once is tried again before anybody hears of it.
                let is_late = last_success.elapsed() > 2 * watcher.watched.settings.poll;
                if std::mem::replace(&mut has_failed, true) || is_late {
                    watcher.tell_stale();
                }
                let topic = &watcher.channel.topic;
                tracing::debug!(?topic, %error, "what is watched could not be read");
                Instant::now() + RETRY
            }
        };
    }
}

impl Watcher {
    /// Waits until the topic is to be read; false when nobody subscribes any more.
    async fn look_is_due(&mut self, next_look: Instant) -> bool {
        loop {
            self.count_heads();
            let nobody = self.subscribers.is_empty() && self.newcomers.is_empty();
            if nobody && self.watched.retire(&self.channel) {
                return false;
            }
            let someone_waits = !self.newcomers.is_empty();
            if someone_waits || self.channel.bell.take() || Instant::now() >= next_look {
                return true;
            }
            tokio::select! {
                () = self.channel.bell.woken() => {}
                () = sleep_until(next_look) => {}
            }
        }
    }

    fn count_heads(&mut self) {
        self.newcomers.append(&mut lock(&self.channel.arriving));
        self.newcomers.retain(|s| !s.batches.is_closed());
        self.subscribers.retain(|s| !s.batches.is_closed());
    }

    /// Waits until the topic may be read again; who waits for a snapshot need not wait for a large room's turn.
    async fn keep_pace(&mut self, last_look: Option<Instant>) {
        let Some(last_look) = last_look else { return };
        loop {
            self.welcome();
            let pause = match &self.picture {
                Some((picture, _)) if self.newcomers.is_empty() => {
                    picture.pause(self.subscribers.len())
                }
                _ => rate::pause(0, 0),
            };
            let turn = last_look + pause;
            if Instant::now() >= turn {
                return;
            }
            tokio::select! {
                () = self.channel.bell.woken() => self.count_heads(),
                () = sleep_until(turn) => return,
            }
        }
    }

    /// What is told rarely and was read a moment ago is good enough for those who come now, or each of them
    /// would have it read, and everybody told.
    fn welcome(&mut self) {
        let Some((picture, id)) = &self.picture else {
            return;
        };
        if !picture.is_rationed() || self.newcomers.is_empty() || !self.is_kept_up {
            return;
        }
        let snapshot = Batch::new(picture.written(&[Event::Snapshot]), id);
        for mut newcomer in self.newcomers.drain(..) {
            newcomer.send(Arc::clone(&snapshot), Standing::Current);
            self.subscribers.push(newcomer);
        }
    }

    /// Reads the topic and tells everybody what is new; answers when the picture changes by itself.
    async fn look(&mut self) -> Result<Instant, NoAnswer> {
        self.count_heads();
        let picture = Picture::read(&self.watched.presence, &self.channel.topic).await?;
        let poll = self.watched.settings.poll;
        let turn = Instant::now() + picture.lasts().unwrap_or(poll);
        let bell = &self.channel.bell;
        bell.listen_for_renewals(picture.shows_renewals());

        let News {
            events,
            someone_left,
        } = match &self.picture {
            Some((before, _)) => self.news(before, &picture).await?,
            None => News::default(),
        };
        let id = match &self.picture {
            Some((_, id)) if events.is_empty() => id.clone(),
            _ => picture.id(),
        };
        self.tell(&picture, events, &id);
        self.picture = Some((picture, id));
        if someone_left || self.readers_checked.elapsed() >= poll {
            self.readers_checked = Instant::now();
            self.end_blocked().await?;
        }
        Ok(turn)
    }

    /// Ends the subscriptions of those who were put out of the room for a time.
    async fn end_blocked(&mut self) -> Result<(), NoAnswer> {
        let Topic::Room(room_id, _) = &self.channel.topic else {
            return Ok(());
        };
        let readers = self.subscribers.iter().filter_map(|s| s.reader.clone());
        let readers: BTreeSet<UserId> = readers.collect();
        if readers.is_empty() {
            return Ok(());
        }
        let readers: Vec<UserId> = readers.into_iter().collect();
        let presence = &self.watched.presence;
        let found = presence.readers_blocked(room_id.clone(), readers.clone());
        let blocked = readers.into_iter().zip(found.await?);
        let Some((picture, id)) = &self.picture else {
            return Ok(());
        };
        for (user_id, _) in blocked.filter(|(_, block)| block.is_some()) {
            let last = Event::Removed {
                user_id: user_id.clone(),
            };
            let last = Batch::new(picture.written(&[last]), id);
            let of_them = |s: &mut Subscriber| s.reader.as_ref() == Some(&user_id);
            for mut subscriber in self.subscribers.extract_if(.., of_them) {
                // One that is behind is only cut off.
                subscriber.send(Arc::clone(&last), Standing::Current);
            }
        }
        Ok(())
    }

    /// Ends all subscriptions: another database has the room.
    fn end_misdirected(&mut self) {
        let Topic::Room(room_id, _) = &self.channel.topic else {
            return;
        };
        let last = Batch::misdirected(room_id);
        for mut subscriber in self.newcomers.drain(..).chain(self.subscribers.drain(..)) {
            // One that is behind is only cut off.
            subscriber.send(Arc::clone(&last), Standing::Current);
        }
        // Who comes later knows nothing of what was here.
        self.picture = None;
    }

    /// What those who know the first hear of the second.
    async fn news(&self, before: &Picture, after: &Picture) -> Result<News, NoAnswer> {
        let events = match (before, after) {
            (Picture::People(room_id, before), Picture::People(_, people)) => {
                self.events(room_id, before, people).await?
            }
            (Picture::Lobby(_, before), Picture::Lobby(_, rooms)) => {
                match lobby::changes(before, rooms) {
                    Some(changes) => {
                        return Ok(News {
                            events: wire::lobby_changes(&changes),
                            someone_left: false,
                        });
                    }
                    None => vec![Event::Snapshot],
                }
            }
            _ if before.id() == after.id() => Vec::new(),
            _ => vec![Event::Snapshot],
        };
        Ok(News {
            someone_left: events
                .iter()
                .any(|e| matches!(e, Event::Left { .. } | Event::Snapshot)),
            events: after.written(&events),
        })
    }

    /// The difference, with what only the history knows: how those who are gone left.
    async fn events(
        &self,
        room_id: &RoomId,
        before: &Participants,
        after: &Participants,
    ) -> Result<Vec<Event>, NoAnswer> {
        let difference = Difference::between(before, after);
        if difference.is_empty() {
            return Ok(Vec::new());
        }
        let mut events = match before.room {
            Some(room) if difference.closed.is_some() || !difference.gone.is_empty() => {
                let query = DeparturesQuery {
                    room_id: room_id.clone(),
                    generation: room.generation,
                    gone: difference
                        .gone
                        .iter()
                        .map(|gone| (gone.user_id.clone(), gone.arrival))
                        .collect(),
                };
                let departures = self.watched.presence.departures(query).await?;
                difference.departed(room, &departures)
            }
            _ => Vec::new(),
        };
        events.extend(difference.joined.into_iter().map(Event::Joined));
        events.extend(difference.updated.into_iter().map(Event::Updated));
        Ok(events)
    }

    /// Tells each, once, that what they know is not kept up.
    fn tell_stale(&mut self) {
        let Some((picture, id)) = &self.picture else {
            return;
        };
        let mut stale: Option<Arc<Batch>> = None;
        for subscriber in &mut self.subscribers {
            let is_to_hear = match subscriber.standing {
                Standing::Current => true,
                Standing::Stale => false,
                Standing::Behind => subscriber.has_caught_up(),
            };
            if !is_to_hear {
                continue;
            }
            let fresh = || Batch::new(picture.written(&[Event::Stale]), id);
            let batch = Arc::clone(stale.get_or_insert_with(fresh));
            if !subscriber.send(batch, Standing::Stale) {
                self.watched.metrics.streams.subscriber_fell_behind();
            }
        }
    }

    fn tell(&mut self, picture: &Picture, events: Vec<Written>, id: &str) {
        let news = (!events.is_empty()).then(|| Batch::new(events, id));
        let mut snapshot: Option<Arc<Batch>> = None;
        let mut snapshot = || {
            let fresh = || Batch::new(picture.written(&[Event::Snapshot]), id);
            Arc::clone(snapshot.get_or_insert_with(fresh))
        };
        for subscriber in &mut self.subscribers {
            let batch = match (subscriber.standing, &news) {
                (Standing::Current, Some(news)) => Arc::clone(news),
                (Standing::Stale, _) => snapshot(),
                (Standing::Behind, _) if subscriber.has_caught_up() => snapshot(),
                _ => continue,
            };
            if !subscriber.send(batch, Standing::Current) {
                self.watched.metrics.streams.subscriber_fell_behind();
            }
        }
        for mut newcomer in self.newcomers.drain(..) {
            // Its queue is empty.
            newcomer.send(snapshot(), Standing::Current);
            self.subscribers.push(newcomer);
        }
    }
}
