//! One room with subscribers: when it is read, and what they are told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Batch;
use super::difference::Difference;
use super::picture::Picture;
use super::rate;
use super::watched::{Room, Standing, Subscriber, Watched, lock};
use crate::coalesce::NoAnswer;
use crate::domain::{DeparturesQuery, Event, Participants, UserId};

/// After a read that failed.
const RETRY: Duration = Duration::from_millis(200);

/// A lease lives at its end, and instants of the database are exact to the microsecond.
const JUST_AFTER: Duration = Duration::from_millis(1);

struct Watcher {
    watched: Arc<Watched>,
    room: Arc<Room>,
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

/// Runs as long as the room has subscribers.
pub(super) async fn watch(watched: Arc<Watched>, room: Arc<Room>) {
    let mut watcher = Watcher {
        watched,
        room,
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
        watcher.room.bell.take();
        let started = Instant::now();
        last_look = Some(started);
        next_look = match watcher.look().await {
            Ok(turn) => {
                last_success = started;
                has_failed = false;
                watcher.is_kept_up = true;
                turn.min(started + watcher.watched.settings.poll)
            }
            Err(error) => {
                watcher.is_kept_up = false;
                // One that fails at once is tried again before anybody hears of it.
                let is_late = last_success.elapsed() > 2 * watcher.watched.settings.poll;
                if std::mem::replace(&mut has_failed, true) || is_late {
                    watcher.tell_stale();
                }
                tracing::debug!(room = %watcher.room.id, %error, "a watched room could not be read");
                Instant::now() + RETRY
            }
        };
    }
}

impl Watcher {
    /// Waits until the room is to be read; false when nobody subscribes any more.
    async fn look_is_due(&mut self, next_look: Instant) -> bool {
        loop {
            self.count_heads();
            let nobody = self.subscribers.is_empty() && self.newcomers.is_empty();
            if nobody && self.watched.retire(&self.room) {
                return false;
            }
            let someone_waits = !self.newcomers.is_empty();
            if someone_waits || self.room.bell.take() || Instant::now() >= next_look {
                return true;
            }
            tokio::select! {
                () = self.room.bell.woken() => {}
                () = sleep_until(next_look) => {}
            }
        }
    }

    fn count_heads(&mut self) {
        self.newcomers.append(&mut lock(&self.room.arriving));
        self.newcomers.retain(|s| !s.batches.is_closed());
        self.subscribers.retain(|s| !s.batches.is_closed());
    }

    /// Waits until the room may be read again; who waits for a snapshot need not wait for a large room's turn.
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
                () = self.room.bell.woken() => self.count_heads(),
                () = sleep_until(turn) => return,
            }
        }
    }

    /// A count that was read a moment ago is good enough for those who come now, or each of them
    /// would have it read, and everybody told.
    fn welcome(&mut self) {
        let Some((picture @ Picture::Count(_), id)) = &self.picture else {
            return;
        };
        if self.newcomers.is_empty() || !self.is_kept_up {
            return;
        }
        let count = Batch::new(picture.written(&self.room.id, &[Event::Snapshot]), id);
        for mut newcomer in self.newcomers.drain(..) {
            newcomer.send(Arc::clone(&count), Standing::Current);
            self.subscribers.push(newcomer);
        }
    }

    /// Reads the room and tells everybody what is new; answers when the picture changes by itself.
    async fn look(&mut self) -> Result<Instant, NoAnswer> {
        self.count_heads();
        let room = &self.room;
        let picture = Picture::read(&self.watched.presence, &room.id, room.view).await?;
        // The instants are the database's: only the time between two of them is counted here.
        let received = Instant::now();
        let turn = match picture.changes_by_itself_at() {
            Some(turn) => {
                let left = (turn - picture.as_of()).to_std().unwrap_or(Duration::ZERO);
                received + left + JUST_AFTER
            }
            None => received + self.watched.settings.poll,
        };
        room.bell.listen_for_renewals(picture.shows_renewals());

        let events = match &self.picture {
            Some((before, _)) => self.news(before, &picture).await?,
            None => Vec::new(),
        };
        let id = match &self.picture {
            Some((_, id)) if events.is_empty() => id.clone(),
            _ => picture.id(&room.id),
        };
        let someone_left = events
            .iter()
            .any(|e| matches!(e, Event::Left { .. } | Event::Snapshot));
        self.tell(&picture, events, &id);
        self.picture = Some((picture, id));
        if someone_left || self.readers_checked.elapsed() >= self.watched.settings.poll {
            self.readers_checked = Instant::now();
            self.end_blocked().await?;
        }
        Ok(turn)
    }

    /// Ends the subscriptions of those who were put out of the room for a time.
    async fn end_blocked(&mut self) -> Result<(), NoAnswer> {
        let readers = self.subscribers.iter().filter_map(|s| s.reader.clone());
        let readers: BTreeSet<UserId> = readers.collect();
        if readers.is_empty() {
            return Ok(());
        }
        let readers: Vec<UserId> = readers.into_iter().collect();
        let presence = &self.watched.presence;
        let found = presence.readers_blocked(self.room.id.clone(), readers.clone());
        let blocked = readers.into_iter().zip(found.await?);
        let Some((picture, id)) = &self.picture else {
            return Ok(());
        };
        for (user_id, _) in blocked.filter(|(_, block)| block.is_some()) {
            let last = Event::Removed {
                user_id: user_id.clone(),
            };
            let last = Batch::new(picture.written(&self.room.id, &[last]), id);
            let of_them = |s: &mut Subscriber| s.reader.as_ref() == Some(&user_id);
            for mut subscriber in self.subscribers.extract_if(.., of_them) {
                // One that is behind is only cut off.
                subscriber.send(Arc::clone(&last), Standing::Current);
            }
        }
        Ok(())
    }

    async fn news(&self, before: &Picture, after: &Picture) -> Result<Vec<Event>, NoAnswer> {
        match (before, after) {
            (Picture::People(before), Picture::People(after)) => self.events(before, after).await,
            _ if before.id(&self.room.id) == after.id(&self.room.id) => Ok(Vec::new()),
            _ => Ok(vec![Event::Snapshot]),
        }
    }

    /// The difference, with what only the history knows: how those who are gone left.
    async fn events(
        &self,
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
                    room_id: self.room.id.clone(),
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
            let fresh = || Batch::new(picture.written(&self.room.id, &[Event::Stale]), id);
            let batch = Arc::clone(stale.get_or_insert_with(fresh));
            if !subscriber.send(batch, Standing::Stale) {
                self.watched.metrics.streams.subscriber_fell_behind();
            }
        }
    }

    fn tell(&mut self, picture: &Picture, events: Vec<Event>, id: &str) {
        let room_id = &self.room.id;
        let news = (!events.is_empty()).then(|| Batch::new(picture.written(room_id, &events), id));
        let mut snapshot: Option<Arc<Batch>> = None;
        let mut snapshot = || {
            let fresh = || Batch::new(picture.written(room_id, &[Event::Snapshot]), id);
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
