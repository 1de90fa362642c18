//! What changed between two readings of a room: pure.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::{DateTime, Utc};

use super::event::Event;
use crate::domain::{DeviceId, LeaseRules, Status, UserId};
use crate::store::{Departures, Participant, Participants, RoomHead, Session};

/// What a reader of the first has to hear to know the second.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The lifetime of the room that is over.
    pub closed: Option<i64>,
    /// Those whose stay is over, as the first reading had them.
    pub gone: Vec<Gone>,
    /// Places in the second: who arrived, and who joined again.
    pub joined: Vec<usize>,
    /// Places in the second: who looks different.
    pub updated: Vec<usize>,
}

/// Somebody who was there and is not, even if the same person is there again.
#[derive(Debug, PartialEq, Eq)]
pub struct Gone {
    pub user_id: UserId,
    pub arrival: i64,
    pub epoch: i64,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Who left and what closed, in the order in which the history has it.
    pub fn departed(&self, room: RoomHead, departures: &Departures) -> Vec<Event> {
        let generation = room.generation;
        let mut ends: Vec<(i64, Event)> = self
            .gone
            .iter()
            .enumerate()
            .map(|(place, gone)| {
                let departure = departures.gone.get(place).copied().flatten();
                let version = departure.map_or(room.version, |d| d.version);
                let left = Event::Left {
                    generation,
                    version,
                    user_id: gone.user_id.clone(),
                    // A reader keeps whoever has a higher epoch than the one that left, and
                    // the session that ended last need not be the newest.
                    epoch: departure.map_or(gone.epoch, |d| d.epoch.max(gone.epoch)),
                    reason: departure.map(|d| d.reason),
                };
                (version, left)
            })
            .collect();
        ends.sort_by_key(|&(version, _)| version);
        let last = ends.last().map_or(room.version, |&(version, _)| version);
        let closed = self.closed.map(|generation| Event::RoomClosed {
            generation,
            version: departures.closed.map_or(last, |closing| closing.version),
            reason: departures.closed.map(|closing| closing.reason),
        });
        ends.into_iter()
            .map(|(_, left)| left)
            .chain(closed)
            .collect()
    }

    /// A person keeps the place in the order of arrival while any session of
    /// theirs lives: another place is another stay, another lifetime of the room
    /// is another stay for everybody.
    pub fn between(before: &Participants, after: &Participants, leases: &LeaseRules) -> Self {
        let was = before.room.map(|room| room.generation);
        let is = after.room.map(|room| room.generation);
        let stays: HashMap<i64, &Participant> = match was == is {
            true => before.participants.iter().map(|p| (p.arrival, p)).collect(),
            false => HashMap::new(),
        };
        let mut difference = Self {
            closed: was.filter(|_| was != is),
            ..Self::default()
        };
        let mut stayed = 0;
        for (place, person) in after.participants.iter().enumerate() {
            match stays.get(&person.arrival) {
                Some(then) if then.user_id == person.user_id => {
                    stayed += 1;
                    if person.sessions[0].epoch > then.sessions[0].epoch {
                        difference.joined.push(place);
                    } else if !looks_alike(then, before.as_of, person, after.as_of, leases) {
                        difference.updated.push(place);
                    }
                }
                _ => difference.joined.push(place),
            }
        }
        if stayed < before.participants.len() {
            let here: HashMap<i64, &UserId> = match was == is {
                true => after
                    .participants
                    .iter()
                    .map(|p| (p.arrival, &p.user_id))
                    .collect(),
                false => HashMap::new(),
            };
            difference.gone = before
                .participants
                .iter()
                .filter(|p| here.get(&p.arrival) != Some(&&p.user_id))
                .map(|p| Gone {
                    user_id: p.user_id.clone(),
                    arrival: p.arrival,
                    epoch: p.sessions[0].epoch,
                })
                .collect();
        }
        difference
    }
}

/// What others see of a session; a renewed lease by itself is nothing to see.
#[derive(PartialEq, Eq, Hash)]
struct Look<'a> {
    epoch: i64,
    device_id: &'a DeviceId,
    status: &'static str,
    cursor: Option<&'a str>,
    metadata: Option<&'a str>,
}

impl<'a> Look<'a> {
    fn new(session: &'a Session, at: DateTime<Utc>, leases: &LeaseRules) -> Self {
        let (seen, lost) = (session.last_seen_at, session.disconnected);
        Self {
            epoch: session.epoch,
            device_id: &session.device_id,
            status: leases.status(at, seen, session.lease_ms, lost).as_str(),
            cursor: session.cursor.as_ref().map(|json| json.get()),
            metadata: session.metadata.as_ref().map(|json| json.get()),
        }
    }
}

fn looks_alike(
    then: &Participant,
    then_at: DateTime<Utc>,
    now: &Participant,
    now_at: DateTime<Utc>,
    leases: &LeaseRules,
) -> bool {
    then.sessions.len() == now.sessions.len()
        && then
            .sessions
            .iter()
            .zip(&now.sessions)
            .all(|(then, now)| Look::new(then, then_at, leases) == Look::new(now, now_at, leases))
}

/// A text that is equal for pictures between which there is no difference, and
/// for others in all likelihood not.
pub fn fingerprint(picture: &Participants, leases: &LeaseRules) -> String {
    let Some(room) = picture.room else {
        return "0".to_owned();
    };
    // Without a random key, so that every instance answers alike.
    let mut hasher = DefaultHasher::new();
    for person in &picture.participants {
        (
            person.user_id.as_str(),
            person.arrival,
            person.sessions.len(),
        )
            .hash(&mut hasher);
        for session in &person.sessions {
            Look::new(session, picture.as_of, leases).hash(&mut hasher);
        }
    }
    format!("{}-{:016x}", room.generation, hasher.finish())
}

/// When the picture changes by itself: a lease ends or somebody starts to look lost.
pub fn next_turn(picture: &Participants, leases: &LeaseRules) -> Option<DateTime<Utc>> {
    picture
        .participants
        .iter()
        .flat_map(|person| &person.sessions)
        .flat_map(|session| {
            [
                session.lease_expires_at,
                leases.reconnecting_after(session.last_seen_at, session.lease_ms),
            ]
        })
        .filter(|turn| *turn >= picture.as_of)
        .min()
}

/// Whether somebody is not connected, so that a sign of life would show.
pub fn someone_lost(picture: &Participants, leases: &LeaseRules) -> bool {
    let at = picture.as_of;
    let sessions = picture.participants.iter().flat_map(|p| &p.sessions);
    sessions.into_iter().any(|s| {
        leases.status(at, s.last_seen_at, s.lease_ms, s.disconnected) == Status::Reconnecting
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::StaleReason;
    use crate::store::Departure;
    use chrono::TimeDelta;

    const LEASES: LeaseRules = LeaseRules {
        default_ms: 15_000,
        min_ms: 1_000,
        max_ms: 300_000,
        heartbeat_ms: 5_000,
    };

    fn person(user: &str, arrival: i64, epoch: i64) -> Participant {
        let now = DateTime::UNIX_EPOCH;
        Participant {
            user_id: UserId::parse(user).unwrap(),
            arrival,
            sessions: vec![Session {
                device_id: DeviceId::unnamed(),
                epoch,
                joined_at: now,
                last_seen_at: now,
                lease_ms: 15_000,
                lease_expires_at: now + TimeDelta::seconds(15),
                disconnected: false,
                cursor: None,
                metadata: None,
            }],
        }
    }

    fn reading(generation: i64, participants: Vec<Participant>) -> Participants {
        let as_of = DateTime::UNIX_EPOCH;
        let room = (generation > 0).then_some(RoomHead {
            generation,
            version: 9,
            opened_at: as_of,
        });
        Participants {
            as_of,
            room,
            participants,
        }
    }

    #[test]
    fn two_equal_readings_have_no_difference() {
        let reading = || reading(1, vec![person("alice", 1, 1)]);
        assert!(Difference::between(&reading(), &reading(), &LEASES).is_empty());
    }

    #[test]
    fn a_reconnect_is_a_join_and_no_departure() {
        let before = reading(1, vec![person("alice", 1, 1)]);
        let after = reading(1, vec![person("alice", 1, 2)]);
        let difference = Difference::between(&before, &after, &LEASES);
        assert_eq!((difference.gone.len(), difference.joined), (0, vec![0]));
    }

    #[test]
    fn a_lost_connection_is_an_update() {
        let before = reading(1, vec![person("alice", 1, 1)]);
        let mut after = reading(1, vec![person("alice", 1, 1)]);
        after.participants[0].sessions[0].disconnected = true;
        let difference = Difference::between(&before, &after, &LEASES);
        assert_eq!((difference.joined.len(), difference.updated), (0, vec![0]));
    }

    #[test]
    fn the_next_lifetime_of_a_room_closes_the_one_before() {
        let before = reading(1, vec![person("alice", 1, 1)]);
        let after = reading(2, vec![person("alice", 1, 2)]);
        let difference = Difference::between(&before, &after, &LEASES);
        assert_eq!(difference.closed, Some(1));
        assert_eq!((difference.gone.len(), difference.joined), (1, vec![0]));
    }

    #[test]
    fn a_departure_has_the_highest_epoch_that_a_reader_may_know() {
        let before = reading(1, vec![person("alice", 1, 8)]);
        let difference = Difference::between(&before, &reading(0, Vec::new()), &LEASES);
        let departures = Departures {
            gone: vec![Some(Departure {
                version: 9,
                epoch: 7,
                reason: StaleReason::Expired,
            })],
            closed: None,
        };
        let room = before.room.unwrap();
        let events = difference.departed(room, &departures);
        assert!(matches!(&events[0], Event::Left { epoch: 8, .. }));
    }
}
