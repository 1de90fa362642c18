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
            .map(|join| match self.refusal(join, limits) {
                Some(refusal) => refusal.to_owned(),
                None => self.admit(join, now),
            })
            .collect()
    }

    fn refusal(&self, join: &Join, limits: Limits) -> Option<&'static str> {
        let reached = |limit: Option<i32>, count: usize| {
            limit.is_some_and(|limit| count >= usize::try_from(limit).unwrap())
        };
        let Some(room) = self.rooms.get(&join.room) else {
            return reached(limits.rooms, self.rooms.len()).then_some("too_many_rooms");
        };
        let Some(person) = room.people.iter().find(|p| p.user == join.user) else {
            return reached(limits.members, room.people.len()).then_some("room_full");
        };
        if join.reject {
            return Some("already_present");
        }
        let is_new = !person.sessions.contains_key(&join.device);
        (is_new && reached(limits.devices, person.sessions.len())).then_some("too_many_devices")
    }

    fn admit(&mut self, join: &Join, now: i64) -> String {
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
        let event = |version, epoch, end| Event {
            room: join.room.clone(),
            generation: room.generation,
            version,
            user: join.user.clone(),
            device: join.device.clone(),
            epoch,
            end,
            occurred_at: now,
            recorded_at: now,
        };
        let mut events = Vec::new();
        let mut version = room.version;
        let at = room.people.iter().position(|p| p.user == join.user);
        let held = at.and_then(|at| room.people[at].sessions.get(&join.device));
        if let Some(held) = held {
            version += 1;
            events.push(event(
                version,
                held.epoch,
                Some(("superseded", held.seen_at)),
            ));
        }
        version += 1;
        events.push(event(version, epoch, None));
        let generation = room.generation;
        room.version = version;
        let at = at.unwrap_or_else(|| {
            room.people.push(Person {
                user: join.user.clone(),
                arrival: version,
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
        format!("{epoch} {generation} {}", now + lease_ms)
    }
}
