//! Which sessions a socket keeps alive: those that were joined or renewed on it last.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::SessionKey;

/// The most sessions of one socket.
pub(super) const MAX_SESSIONS: usize = 1_000;

/// Which socket of this instance each session is of: the one that renewed it last. Cheap to clone.
#[derive(Clone, Default)]
pub struct Holders(Arc<Sockets>);

#[derive(Default)]
struct Sockets {
    opened: AtomicU64,
    holder: Mutex<HashMap<SessionKey, u64>>,
}

impl Holders {
    /// A panic while holding the lock leaves a map that is still a map.
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, u64>> {
        let holder = self.0.holder.lock();
        holder.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions of one socket; clones are one.
#[derive(Clone)]
pub(super) struct Sessions(Rc<Held>);

struct Held {
    holders: Holders,
    socket: u64,
    /// With how often each is to be heard of.
    beats: RefCell<HashMap<SessionKey, Duration>>,
}

impl Sessions {
    pub(super) fn new(holders: Holders) -> Self {
        Self(Rc::new(Held {
            socket: holders.0.opened.fetch_add(1, Ordering::Relaxed),
            holders,
            beats: RefCell::default(),
        }))
    }

    /// The session is this socket's from now on, in place of an earlier one on the same device.
    pub(super) fn hold(&self, session: SessionKey, beat: Duration) {
        let replaced = |held: &SessionKey| {
            held.epoch < session.epoch
                && (&held.room_id, &held.user_id, &held.device_id)
                    == (&session.room_id, &session.user_id, &session.device_id)
        };
        let mut beats = self.0.beats.borrow_mut();
        let earlier = beats.extract_if(|held, _| replaced(held));
        for (earlier, _) in earlier.collect::<Vec<_>>() {
            self.0.release(&earlier);
        }
        self.0.holders.lock().insert(session.clone(), self.0.socket);
        beats.insert(session, beat);
    }

    /// False where it was not this socket's.
    pub(super) fn release(&self, session: &SessionKey) -> bool {
        let held = self.0.beats.borrow_mut().remove(session);
        self.0.release(session);
        held.is_some()
    }

    /// Whether it is this socket's still.
    pub(super) fn holds(&self, session: &SessionKey) -> bool {
        self.0.beats.borrow().contains_key(session)
            && self.0.holders.lock().get(session) == Some(&self.0.socket)
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.beats.borrow().len() >= MAX_SESSIONS
    }

    /// How often the most demanding of them is to be heard of.
    pub(super) fn beat(&self) -> Option<Duration> {
        self.0.beats.borrow().values().min().copied()
    }

    /// Those that no other socket has renewed since; the others are forgotten.
    pub(super) fn current(&self) -> Vec<SessionKey> {
        let mut beats = self.0.beats.borrow_mut();
        let holder = self.0.holders.lock();
        beats.retain(|session, _| holder.get(session) == Some(&self.0.socket));
        beats.keys().cloned().collect()
    }
}

impl Held {
    fn release(&self, session: &SessionKey) {
        let mut holder = self.holders.lock();
        if holder.get(session) == Some(&self.socket) {
            holder.remove(session);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let beats = self.beats.take();
        beats.keys().for_each(|session| self.release(session));
    }
}
