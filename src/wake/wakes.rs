//! Wakes within this instance.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::domain::RoomId;

/// Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Wakes(Arc<Inner>);

#[derive(Default)]
struct Inner {
    watched: Mutex<HashMap<RoomId, Vec<Arc<Bell>>>>,
    prefixes: Mutex<HashMap<String, Vec<Arc<Bell>>>>,
    unhinted: Mutex<HashSet<RoomId>>,
    hints_wanted: AtomicBool,
    hint_due: Notify,
    feed: watch::Sender<()>,
}

/// Rung for one watched room, or for all that start alike.
#[derive(Default)]
pub struct Bell {
    rung: AtomicBool,
    woken: Notify,
    /// Whether a bare sign of life can change what the room looks like: somebody in it seems lost.
    someone_lost: AtomicBool,
}

impl Bell {
    /// Wakes the watcher so that it reads the room.
    pub fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.woken.notify_one();
    }

    /// Wakes the watcher for something other than a change of the room.
    pub fn nudge(&self) {
        self.woken.notify_one();
    }

    /// Waits for either; a wake that came before is not lost.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Whether it was rung since this was last asked.
    pub fn take(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }

    /// Says whether renewals alone are to ring.
    pub fn listen_for_renewals(&self, someone_lost: bool) {
        self.someone_lost.store(someone_lost, Ordering::Release);
    }
}

/// A panic while holding one of these locks leaves a map that is still a map.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove<K>(bells: Entry<'_, K, Vec<Arc<Bell>>>, bell: &Arc<Bell>) {
    if let Entry::Occupied(mut bells) = bells {
        bells.get_mut().retain(|other| !Arc::ptr_eq(other, bell));
        if bells.get().is_empty() {
            bells.remove();
        }
    }
}

impl Wakes {
    /// After a commit of this instance: sessions began or ended in these rooms, and the history grew.
    pub fn grown<'a>(&self, rooms: impl Iterator<Item = &'a RoomId> + Clone) {
        if rooms.clone().next().is_some() {
            self.changed(rooms.clone());
            self.ring_prefixes(rooms);
            self.0.feed.send_replace(());
        }
    }

    /// After a commit of this instance: how members of these rooms look has changed.
    pub fn changed<'a>(&self, rooms: impl Iterator<Item = &'a RoomId> + Clone) {
        if rooms.clone().next().is_none() {
            return;
        }
        self.ring(rooms.clone());
        if self.0.hints_wanted.load(Ordering::Relaxed) {
            let mut unhinted = lock(&self.0.unhinted);
            for room in rooms {
                if !unhinted.contains(room) {
                    unhinted.insert(room.clone());
                }
            }
            drop(unhinted);
            self.0.hint_due.notify_one();
        }
    }

    /// After a commit of this instance: members were heard of, and nothing else.
    pub fn renewed<'a>(&self, rooms: impl Iterator<Item = &'a RoomId>) {
        let watched = lock(&self.0.watched);
        if watched.is_empty() {
            return;
        }
        for room in rooms {
            let bells = watched.get(room).into_iter().flatten();
            bells
                .filter(|bell| bell.someone_lost.load(Ordering::Acquire))
                .for_each(|bell| bell.ring());
        }
    }

    /// Another instance says that these rooms changed.
    pub fn hinted<'a>(&self, rooms: impl Iterator<Item = &'a RoomId> + Clone) {
        self.ring(rooms.clone());
        self.ring_prefixes(rooms);
        self.0.feed.send_replace(());
    }

    /// Hints may have been missed: everything is to be read again.
    pub fn missed(&self) {
        for bell in lock(&self.0.watched).values().flatten() {
            bell.ring();
        }
        for bell in lock(&self.0.prefixes).values().flatten() {
            bell.ring();
        }
        self.0.feed.send_replace(());
    }

    fn ring<'a>(&self, rooms: impl Iterator<Item = &'a RoomId>) {
        let watched = lock(&self.0.watched);
        if watched.is_empty() {
            return;
        }
        for room in rooms {
            let bells = watched.get(room).into_iter().flatten();
            bells.for_each(|bell| bell.ring());
        }
    }

    fn ring_prefixes<'a>(&self, rooms: impl Iterator<Item = &'a RoomId>) {
        let prefixes = lock(&self.0.prefixes);
        if prefixes.is_empty() {
            return;
        }
        for id in rooms.map(RoomId::as_str) {
            // An id is short, and there may be many prefixes.
            let ends = id.char_indices().map(|(end, _)| end).chain([id.len()]);
            let bells = ends.filter_map(|end| prefixes.get(&id[..end])).flatten();
            bells.for_each(|bell| bell.ring());
        }
    }

    /// From now on this room's changes ring this bell.
    pub fn watch(&self, room: &RoomId) -> Arc<Bell> {
        let bell = Arc::new(Bell::default());
        let mut watched = lock(&self.0.watched);
        let bells = watched.entry(room.clone()).or_default();
        bells.push(Arc::clone(&bell));
        bell
    }

    /// The opposite of [`Wakes::watch`].
    pub fn unwatch(&self, room: &RoomId, bell: &Arc<Bell>) {
        remove(lock(&self.0.watched).entry(room.clone()), bell);
    }

    /// From now on this bell is rung where sessions begin or end in a room that starts like this.
    pub fn watch_prefix(&self, prefix: &str) -> Arc<Bell> {
        let bell = Arc::new(Bell::default());
        let mut prefixes = lock(&self.0.prefixes);
        let bells = prefixes.entry(prefix.to_owned()).or_default();
        bells.push(Arc::clone(&bell));
        bell
    }

    /// The opposite of [`Wakes::watch_prefix`].
    pub fn unwatch_prefix(&self, prefix: &str, bell: &Arc<Bell>) {
        let mut prefixes = lock(&self.0.prefixes);
        remove(prefixes.entry(prefix.to_owned()), bell);
    }

    /// From now on changes are gathered for [`Wakes::hints`].
    pub fn gather_hints(&self) {
        self.0.hints_wanted.store(true, Ordering::Relaxed);
    }

    /// Waits until rooms changed on this instance, and takes all that did.
    pub async fn hints(&self) -> HashSet<RoomId> {
        loop {
            let rooms = std::mem::take(&mut *lock(&self.0.unhinted));
            if !rooms.is_empty() {
                return rooms;
            }
            self.0.hint_due.notified().await;
        }
    }

    /// Changes whenever the history may have grown.
    pub fn feed(&self) -> watch::Receiver<()> {
        self.0.feed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(id: &str) -> RoomId {
        RoomId::parse(id).unwrap()
    }

    #[test]
    fn a_change_rings_the_room_that_changed_and_no_other() {
        let wakes = Wakes::default();
        let (a, b) = (wakes.watch(&room("a")), wakes.watch(&room("b")));
        wakes.changed([room("a")].iter());
        assert!(a.take());
        assert!(!a.take(), "once");
        assert!(!b.take());
    }

    #[test]
    fn a_session_that_begins_rings_whoever_watches_a_beginning_of_the_rooms_id() {
        let wakes = Wakes::default();
        let every = ["", "ä", "äb", "äbc", "b"];
        let bells = every.map(|prefix| wakes.watch_prefix(prefix));
        let rung = || bells.each_ref().map(|bell| bell.take());
        wakes.grown([room("äb")].iter());
        assert_eq!(rung(), [true, true, true, false, false]);
        wakes.changed([room("äb")].iter());
        assert_eq!(rung(), [false; 5]);
        wakes.unwatch_prefix("ä", &bells[1]);
        wakes.hinted([room("äb")].iter());
        assert_eq!(rung(), [true, false, true, false, false]);
    }

    #[test]
    fn a_renewal_rings_only_where_somebody_seems_lost() {
        let wakes = Wakes::default();
        let bell = wakes.watch(&room("a"));
        wakes.renewed([room("a")].iter());
        assert!(!bell.take());
        bell.listen_for_renewals(true);
        wakes.renewed([room("a")].iter());
        assert!(bell.take());
    }

    #[tokio::test]
    async fn hints_are_gathered_once_per_room() {
        let wakes = Wakes::default();
        wakes.gather_hints();
        wakes.changed([room("a"), room("b"), room("a")].iter());
        wakes.changed([room("a")].iter());
        assert_eq!(wakes.hints().await, HashSet::from([room("a"), room("b")]));
    }
}
