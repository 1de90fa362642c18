//! The rules of membership, one request after the other, without a database. Instants are milliseconds.

use std::collections::BTreeMap;

use super::super::support::lease;
use super::clock::LeaseClock;
use super::steps::{Beat, Epoch, Leave};

/// `room, user, epoch`: a session for ever.
type SessionKey = (String, String, i64);

#[derive(Default)]
pub struct Rules {
    pub clock: LeaseClock,
    pub rooms: BTreeMap<String, Room>,
    /// By room and generation.
    pub lifetimes: BTreeMap<(String, i64), Lifetime>,
    pub events: Vec<Event>,
    /// The device of every session ever joined, and how it ended.
    sessions: BTreeMap<SessionKey, (String, Option<&'static str>)>,
    /// The last join of that name, by room, user and device.
    pub joins: BTreeMap<(String, String, String, u8), i64>,
}

pub struct Room {
    pub generation: i64,
    pub version: i64,
    pub opened_at: i64,
    pub peak: usize,
    /// In order of arrival.
    pub people: Vec<Person>,
}

pub struct Person {
    pub user: String,
    pub arrival: i64,
    pub arrived_at: i64,
    /// By device.
    pub sessions: BTreeMap<String, Session>,
}

#[derive(Clone)]
pub struct Session {
    pub epoch: i64,
    pub joined_at: i64,
    pub seen_at: i64,
    /// On the lease clock.
    pub lease_end: i64,
    pub lease_ms: u32,
    pub cursor: Option<i64>,
    pub metadata: Option<i64>,
}

pub struct Lifetime {
    pub opened_at: i64,
    /// When, why, at which version and after how many at once.
    pub closed: Option<(i64, &'static str, i64, usize)>,
}

pub struct Event {
    pub room: String,
    pub generation: i64,
    pub version: i64,
    pub user: String,
    pub device: String,
    pub epoch: i64,
    /// Why and when last seen, for an end.
    pub end: Option<(&'static str, i64)>,
    pub occurred_at: i64,
    pub recorded_at: i64,
    /// How many people the room has after it.
    pub people: usize,
}

impl Session {
    fn is_expired(&self, lease_now: i64) -> bool {
        lease_now > self.lease_end
    }

    /// Since when it looks lost, doubled to stay a whole number; `None` while it looks connected.
    pub fn lost_since(&self, now: i64) -> Option<i64> {
        let since = 2 * self.seen_at + 3 * i64::from(lease(self.lease_ms).heartbeat_ms);
        (2 * now > since).then_some(since)
    }
}

impl Rules {
    pub fn last_epoch(&self, room: &str, user: &str) -> i64 {
        self.sessions
            .keys()
            .filter(|(r, u, _)| r == room && u == user)
            .map(|(_, _, epoch)| *epoch)
            .max()
            .unwrap_or(0)
    }

    fn session(&mut self, room: &str, user: &str, device: &str) -> Option<&mut Session> {
        let people = &mut self.rooms.get_mut(room)?.people;
        let person = people.iter_mut().find(|p| p.user == user)?;
        person.sessions.get_mut(device)
    }

    /// What a request means by its epoch as things are now.
    pub fn epoch(&mut self, room: &str, user: &str, device: &str, epoch: Epoch) -> i64 {
        let last = self.last_epoch(room, user);
        match epoch {
            Epoch::Held => self.session(room, user, device).map_or(last, |s| s.epoch),
            Epoch::Back(steps) => last - steps,
        }
    }

    pub fn stale_reason(&self, room: &str, user: &str, device: &str, epoch: i64) -> &'static str {
        match self.sessions.get(&(room.into(), user.into(), epoch)) {
            Some((on, end)) if on == device => end.unwrap_or("expired"),
            _ => "unknown_session",
        }
    }

    pub fn record(&mut self, event: Event) {
        let key = (event.room.clone(), event.user.clone(), event.epoch);
        let end = event.end.map(|(reason, _)| reason);
        self.sessions.insert(key, (event.device.clone(), end));
        self.events.push(event);
    }

    /// Ends sessions of a room in this order, and the room with the last of its people.
    fn end(&mut self, room: &str, ends: Vec<(String, String)>, reason: &'static str, now: i64) {
        for (user, device) in ends {
            let found = self.rooms.get_mut(room).unwrap();
            let at = found.people.iter().position(|p| p.user == user).unwrap();
            let session = found.people[at].sessions.remove(&device).unwrap();
            if found.people[at].sessions.is_empty() {
                found.people.remove(at);
            }
            found.version += 1;
            let event = Event {
                room: room.into(),
                generation: found.generation,
                version: found.version,
                user,
                device,
                epoch: session.epoch,
                end: Some((reason, session.seen_at)),
                occurred_at: if reason == "expired" {
                    self.clock.instant(session.lease_end)
                } else {
                    now
                },
                recorded_at: now,
                people: found.people.len(),
            };
            if found.people.is_empty() {
                let closed = (event.occurred_at, reason, found.version, found.peak);
                let key = (room.to_owned(), found.generation);
                self.lifetimes.get_mut(&key).unwrap().closed = Some(closed);
                self.rooms.remove(room);
            }
            self.record(event);
        }
    }

    /// Ends what has expired in a room; answers how many sessions that were.
    pub fn prune(&mut self, room: &str, now: i64) -> usize {
        let Some(found) = self.rooms.get(room) else {
            return 0;
        };
        let lease_now = self.clock.now(now);
        let mut expired: Vec<_> = found
            .people
            .iter()
            .flat_map(|p| p.sessions.iter().map(|(device, s)| (s, &p.user, device)))
            .filter(|(session, ..)| session.is_expired(lease_now))
            .map(|(session, user, device)| (session.lease_end, user.clone(), device.clone()))
            .collect();
        expired.sort();
        let ends: Vec<_> = expired
            .into_iter()
            .map(|(_, user, device)| (user, device))
            .collect();
        let count = ends.len();
        self.end(room, ends, "expired", now);
        count
    }

    /// Prunes every room; answers how many sessions expired and how many rooms closed.
    pub fn sweep(&mut self, now: i64) -> (usize, usize) {
        let rooms: Vec<String> = self.rooms.keys().cloned().collect();
        let expired = rooms.iter().map(|room| self.prune(room, now)).sum();
        (expired, rooms.len() - self.rooms.len())
    }

    /// Answers `renewed` or why not.
    pub fn beat(&mut self, batch: &[(Beat, i64)], now: i64) -> Vec<String> {
        let (lease_now, lease_from) = (self.clock.now(now), self.clock.from(now));
        let mut renew = |beat: &Beat, epoch: i64| {
            let session = self.session(&beat.room, &beat.user, &beat.device);
            let Some(session) = session.filter(|s| s.epoch == epoch && !s.is_expired(lease_now))
            else {
                return self.stale_reason(&beat.room, &beat.user, &beat.device, epoch);
            };
            session.lease_ms = beat.lease_ms.unwrap_or(session.lease_ms);
            session.seen_at = now;
            let lease_end = lease_from + i64::from(session.lease_ms);
            // Only who asks for another length can end earlier than before.
            session.lease_end = match beat.lease_ms {
                Some(_) => lease_end,
                None => lease_end.max(session.lease_end),
            };
            session.cursor = beat.cursor.unwrap_or(session.cursor);
            session.metadata = beat.metadata.unwrap_or(session.metadata);
            "renewed"
        };
        batch
            .iter()
            .map(|(beat, epoch)| renew(beat, *epoch).to_owned())
            .collect()
    }

    /// Answers `left` or why not. Those who leave a room at once end in order of user and device.
    pub fn leave(&mut self, batch: &[(Leave, i64)], now: i64) -> Vec<String> {
        for (leave, _) in batch {
            self.prune(&leave.room, now);
        }
        let mut ends: BTreeMap<String, BTreeMap<(String, String), usize>> = BTreeMap::new();
        for (position, (leave, epoch)) in batch.iter().enumerate() {
            let session = self.session(&leave.room, &leave.user, &leave.device);
            if session.is_some_and(|s| s.epoch == *epoch) {
                ends.entry(leave.room.clone())
                    .or_default()
                    .entry((leave.user.clone(), leave.device.clone()))
                    .or_insert(position);
            }
        }
        let left: Vec<usize> = ends.values().flat_map(|e| e.values().copied()).collect();
        for (room, ends) in ends {
            self.end(&room, ends.into_keys().collect(), "left", now);
        }
        batch
            .iter()
            .enumerate()
            .map(|(position, (leave, epoch))| {
                if left.contains(&position) {
                    return "left".to_owned();
                }
                self.stale_reason(&leave.room, &leave.user, &leave.device, *epoch)
                    .to_owned()
            })
            .collect()
    }
}
