//! What changed between two readings of a room: pure.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::{DateTime, Utc};

use crate::domain::{
    Departures, DeviceId, Event, LiveSession, Participant, Participants, RoomHead, RoomId, Status,
    UserId,
};

/// What a reader of the first has to hear to know the second.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
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
pub(crate) struct Gone {
    pub user_id: UserId,
    pub arrival: i64,
    pub epoch: i64,
}

impl Difference {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Who left and what closed, in the order in which the history has it.
    pub(crate) fn departed(&self, room: RoomHead, departures: &Departures) -> Vec<Event> {
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
    pub(crate) fn between(before: &Participants, after: &Participants) -> Self {
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
                    } else if !looks_alike(then, person) {
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
    status: Status,
    cursor: Option<&'a str>,
    metadata: Option<&'a str>,
}

impl<'a> Look<'a> {
    fn new(session: &'a LiveSession) -> Self {
        Self {
            epoch: session.epoch,
            device_id: &session.device_id,
            status: session.status,
            cursor: session.cursor.as_ref().map(|json| json.get()),
            metadata: session.metadata.as_ref().map(|json| json.get()),
        }
    }
}

fn looks_alike(then: &Participant, now: &Participant) -> bool {
    then.sessions.len() == now.sessions.len()
        && then
            .sessions
            .iter()
            .zip(&now.sessions)
            .all(|(then, now)| Look::new(then) == Look::new(now))
}

/// A text that is equal for pictures of a room between which there is no difference, and for others in
/// all likelihood not; nor for those of two rooms, as a reader of both may mistake one for the other.
pub(crate) fn fingerprint(room_id: &RoomId, picture: &Participants) -> String {
    // Without a random key, so that every instance answers alike.
    let mut hasher = DefaultHasher::new();
    room_id.as_str().hash(&mut hasher);
    for person in &picture.participants {
        (
            person.user_id.as_str(),
            person.arrival,
            person.sessions.len(),
        )
            .hash(&mut hasher);
        for session in &person.sessions {
            Look::new(session).hash(&mut hasher);
        }
    }
    let generation = picture.room.map_or(0, |room| room.generation);
    format!("{generation}-{:016x}", hasher.finish())
}

/// When the picture changes by itself: a lease ends or somebody starts to look lost.
pub(crate) fn changes_by_itself_at(picture: &Participants) -> Option<DateTime<Utc>> {
    picture
        .participants
        .iter()
        .flat_map(|member| &member.sessions)
        .flat_map(|session| [session.lease_expires_at, session.reconnecting_after()])
        .filter(|turn| *turn >= picture.as_of)
        .min()
}

/// Whether somebody is not connected, so that a sign of life would show.
pub(crate) fn someone_lost(picture: &Participants) -> bool {
    let mut sessions = picture.participants.iter().flat_map(|p| &p.sessions);
    sessions.any(|session| session.status == Status::Reconnecting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Departure, EndReason};
    use chrono::TimeDelta;

    fn person(user: &str, arrival: i64, epoch: i64) -> Participant {
        let now = DateTime::UNIX_EPOCH;
        Participant {
            user_id: UserId::parse(user).unwrap(),
            arrival,
            arrived_at: now,
            sessions: vec![LiveSession {
                device_id: DeviceId::unnamed(),
                epoch,
                joined_at: now,
                last_seen_at: now,
                heartbeat_ms: 5_000,
                lease_expires_at: now + TimeDelta::seconds(15),
                status: Status::Connected,
                cursor: None,
                metadata: None,
                info: None,
            }],
        }
    }

    fn reading(generation: i64, participants: Vec<Participant>) -> Participants {
        let as_of = DateTime::UNIX_EPOCH;
        let room = (generation > 0).then_some(RoomHead {
            generation,
            version: 9,
            opened_at: as_of,
            is_locked: false,
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
        assert!(Difference::between(&reading(), &reading()).is_empty());
    }

    #[test]
    fn a_reconnect_is_a_join_and_no_departure() {
        let before = reading(1, vec![person("alice", 1, 1)]);
        let after = reading(1, vec![person("alice", 1, 2)]);
        let difference = Difference::between(&before, &after);
        assert_eq!((difference.gone.len(), difference.joined), (0, vec![0]));
    }

    #[test]
    fn a_lost_connection_is_an_update() {
        let before = reading(1, vec![person("alice", 1, 1)]);
        let mut after = reading(1, vec![person("alice", 1, 1)]);
        after.participants[0].sessions[0].status = Status::Reconnecting;
        let difference = Difference::between(&before, &after);
        assert_eq!((difference.joined.len(), difference.updated), (0, vec![0]));
    }

    #[test]
    fn the_next_lifetime_of_a_room_closes_the_one_before() {
        let before = reading(1, vec![person("alice", 1, 1)]);
        let after = reading(2, vec![person("alice", 1, 2)]);
        let difference = Difference::between(&before, &after);
        assert_eq!(difference.closed, Some(1));
        assert_eq!((difference.gone.len(), difference.joined), (1, vec![0]));
    }

    #[test]
    fn a_departure_has_the_highest_epoch_that_a_reader_may_know() {
        let before = reading(1, vec![person("alice", 1, 8)]);
        let difference = Difference::between(&before, &reading(0, Vec::new()));
        let departures = Departures {
            gone: vec![Some(Departure {
                version: 9,
                epoch: 7,
                reason: EndReason::Expired,
            })],
            closed: None,
        };
        let room = before.room.unwrap();
        let events = difference.departed(room, &departures);
        assert!(matches!(&events[0], Event::Left { epoch: 8, .. }));
    }
}
