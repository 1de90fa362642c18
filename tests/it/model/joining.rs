//! The rules of joining: who is refused and why, and what a join changes.

use std::collections::BTreeMap;

use super::rules::{Event, Lifetime, Person, Room, Rules, Session};
use super::steps::{Join, Limits};

impl Rules {
    /// Answers `epoch generation expires`, or the refusal.
    pub fn join(&mut self, batch: &[Join], limits: Limits, now: i64) -> Vec<String> {
        for join in batch {
            self.prune(&join.room, now);
        }
        batch
            .iter()
            .map(|join| match self.refusal(join, limits, now) {
                Some(refusal) => refusal.to_owned(),
                None => match self.asked_before(join) {
                    Some(epoch) => self.answer_again(join, epoch, now),
                    None => self.admit(join, limits, now),
                },
            })
            .collect()
    }

    fn asked_before(&self, join: &Join) -> Option<i64> {
        let id = join.id?;
        let key = (
            join.room.clone(),
            join.user.clone(),
            join.device.clone(),
            id,
        );
        let epoch = *self.joins.get(&key)?;
        (epoch > self.last_epoch(&join.room, &join.user) - 32).then_some(epoch)
    }

    fn person(&self, join: &Join) -> Option<&Person> {
        let people = &self.rooms.get(&join.room)?.people;
        people.iter().find(|p| p.user == join.user)
    }

    fn refusal(&self, join: &Join, limits: Limits, now: i64) -> Option<&'static str> {
        let reached = |limit: Option<i32>, count: usize| {
            limit.is_some_and(|limit| count >= usize::try_from(limit).unwrap())
        };
        if let Some(epoch) = self.asked_before(join) {
            let own = self.person(join).and_then(|p| p.sessions.get(&join.device));
            let lives = own.is_some_and(|session| session.epoch == epoch);
            return (!lives)
                .then(|| self.stale_reason(&join.room, &join.user, &join.device, epoch));
        }
        let Some(room) = self.rooms.get(&join.room) else {
            return reached(limits.rooms, self.rooms.len()).then_some("too_many_rooms");
        };
        let Some(person) = self.person(join) else {
            let is_full = reached(limits.members, room.people.len())
                || reached(join.capacity, room.people.len());
            return is_full.then_some("room_full");
        };
        if join.reject && person.sessions.keys().any(|device| *device != join.device) {
            return Some("already_present");
        }
        let is_new = !person.sessions.contains_key(&join.device);
        let is_full = is_new && reached(limits.devices, person.sessions.len());
        let all_live = person
            .sessions
            .values()
            .all(|s| s.lost_since(now).is_none());
        (is_full && all_live).then_some("too_many_devices")
    }

    /// It is a sign of life of the session that it began.
    fn answer_again(&mut self, join: &Join, epoch: i64, now: i64) -> String {
        let lease_from = self.clock.from(now);
        let room = self.rooms.get_mut(&join.room).unwrap();
        let person = room.people.iter_mut().find(|p| p.user == join.user);
        let session = person.unwrap().sessions.get_mut(&join.device).unwrap();
        let lease_ms = i64::from(session.lease_ms);
        session.seen_at = now;
        session.lease_end = session.lease_end.max(lease_from + lease_ms);
        format!("{epoch} {} {}", room.generation, now + lease_ms)
    }

    fn admit(&mut self, join: &Join, limits: Limits, now: i64) -> String {
        let epoch = self.last_epoch(&join.room, &join.user) + 1;
        let lifetimes = self.lifetimes.keys().filter(|(room, _)| *room == join.room);
        let last_generation = lifetimes.map(|(_, n)| *n).max().unwrap_or(0);
        let room = self.rooms.entry(join.room.clone()).or_insert_with(|| {
            let generation = last_generation + 1;
            let opened = Lifetime {
                opened_at: now,
                closed: None,
            };
            self.lifetimes
                .insert((join.room.clone(), generation), opened);
            Room {
                generation,
                version: 0,
                opened_at: now,
                peak: 0,
                people: Vec::new(),
            }
        });
        let at = room.people.iter().position(|p| p.user == join.user);
        let people = room.people.len() + usize::from(at.is_none());
        let event = |version, device: &String, epoch, end| Event {
            room: join.room.clone(),
            generation: room.generation,
            version,
            user: join.user.clone(),
            device: device.clone(),
            epoch,
            end,
            occurred_at: now,
            recorded_at: now,
            people,
        };
        let mut events = Vec::new();
        let mut version = room.version;
        // The device's own session, or else the one that was lost first where there is no other place.
        let sessions = at.map(|at| &mut room.people[at].sessions);
        if let Some(sessions) = sessions {
            let is_full = limits.devices.is_some_and(|n| sessions.len() >= n as usize);
            let lost = sessions
                .iter()
                .filter_map(|(device, s)| Some((s.lost_since(now)?, s.epoch, device)));
            let device = match sessions.contains_key(&join.device) {
                true => Some(join.device.clone()),
                false if is_full => lost.min().map(|(.., device)| device.clone()),
                false => None,
            };
            if let Some(device) = device {
                let held = sessions.remove(&device).unwrap();
                version += 1;
                let end = Some(("superseded", held.seen_at));
                events.push(event(version, &device, held.epoch, end));
            }
        }
        version += 1;
        events.push(event(version, &join.device, epoch, None));
        let generation = room.generation;
        room.version = version;
        let at = at.unwrap_or_else(|| {
            room.people.push(Person {
                user: join.user.clone(),
                arrival: version,
                arrived_at: now,
                sessions: BTreeMap::new(),
            });
            room.people.len() - 1
        });
        let lease_ms = i64::from(join.lease_ms);
        let session = Session {
            epoch,
            joined_at: now,
            seen_at: now,
            lease_end: self.clock.from(now) + lease_ms,
            lease_ms: join.lease_ms,
            cursor: join.cursor,
            metadata: join.metadata,
        };
        room.people[at]
            .sessions
            .insert(join.device.clone(), session);
        room.peak = room.peak.max(room.people.len());
        for event in events {
            self.record(event);
        }
        if let Some(id) = join.id {
            let key = (
                join.room.clone(),
                join.user.clone(),
                join.device.clone(),
                id,
            );
            self.joins.insert(key, epoch);
        }
        format!("{epoch} {generation} {}", now + lease_ms)
    }
}
