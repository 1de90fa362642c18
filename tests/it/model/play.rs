//! One sequence of steps, played to the rules and to Postgres.

use std::time::Duration;

use leasehold::domain::Beat as Pulse;
use leasehold::domain::{Heartbeat, IfPresent, JoinLimits, Participants, SessionKey, StaleReason};
use leasehold::store::Store;
use leasehold::wire::Code;
use serde_json::json;

use super::super::support::{Database, Renew, beat, join_on, lease, room, session, t};
use super::rules::Rules;
use super::state;
use super::steps::{Beat, Join, Limits, Operation, Step};

/// Without the interval that clients are given to come back, of which there are tests of its own.
const PULSE: Pulse = Pulse {
    heartbeat_ms: 0,
    longest_lease_ms: 5_000,
    max_pause: Duration::from_secs(600),
    instance: 1,
    since: None,
};

/// Where they differ, and at which step.
pub async fn against_both(database: &Database, steps: &[Step]) -> Result<(), String> {
    database
        .execute(
            "delete from leasehold.members; delete from leasehold.rooms;
             delete from leasehold.closed_generations; delete from leasehold.membership_events;
             delete from leasehold.outages;
             update leasehold.pulse set last_at = null, paused = 0, floor = 0, spread_until = 0",
        )
        .await;
    let mut rules = Rules::default();
    let mut now = 0;
    for (position, step) in steps.iter().enumerate() {
        now += step.after_ms;
        let store = database.at(t(now));
        let (expected, actual) = play(&mut rules, &store, &step.operation, now).await;
        if expected != actual {
            return Err(format!(
                "step {position} at {now}: the rules answer {expected:#?}, Postgres {actual:#?}"
            ));
        }
        let (expected, actual) = (state::expected(&rules), state::actual(database).await);
        if expected != actual {
            return Err(format!(
                "after step {position} at {now}: the rules hold {expected:#?}, Postgres {actual:#?}"
            ));
        }
    }
    let violations = database.store.verify().await.unwrap();
    if !violations.is_empty() {
        return Err(format!("in the end {violations:#?}"));
    }
    Ok(())
}

/// What the rules answer, and what Postgres does.
async fn play(
    rules: &mut Rules,
    store: &Store,
    operation: &Operation,
    now: i64,
) -> (Vec<String>, Vec<String>) {
    match operation {
        Operation::Join(batch, limits) => {
            let expected = rules.join(batch, *limits, now);
            (expected, joined(store, batch, *limits, now).await)
        }
        Operation::Beat(batch) => {
            let batch: Vec<_> = batch
                .iter()
                .map(|b| (b.clone(), rules.epoch(&b.room, &b.user, &b.device, b.epoch)))
                .collect();
            let requests: Vec<Heartbeat> = batch.iter().map(|(b, e)| heartbeat(b, *e)).collect();
            let answers = store.renew(&requests).await.unwrap();
            (rules.beat(&batch, now), words(answers, "renewed"))
        }
        Operation::Leave(batch) => {
            let batch: Vec<_> = batch
                .iter()
                .map(|l| (l.clone(), rules.epoch(&l.room, &l.user, &l.device, l.epoch)))
                .collect();
            let requests: Vec<SessionKey> = batch
                .iter()
                .map(|(l, epoch)| session(&l.room, &l.user, &l.device, *epoch))
                .collect();
            let answers = store.leave(&requests).await.unwrap();
            (rules.leave(&batch, now), words(answers, "left"))
        }
        Operation::List(rooms) => {
            for room in rooms {
                rules.prune(room, now);
            }
            let expected = rooms.iter().map(|room| expected_list(rules, room, now));
            (expected.collect(), listed(store, rooms).await)
        }
        Operation::Prune(rooms) => {
            for room in rooms {
                rules.prune(room, now);
            }
            store.prune(rooms).await.unwrap();
            (Vec::new(), Vec::new())
        }
        Operation::Pulse => {
            let expected = rules.clock.beat(now);
            let beaten = store.beat(PULSE).await.unwrap();
            let actual = beaten.was_outage.then_some(beaten.paused_ms);
            (vec![format!("{expected:?}")], vec![format!("{actual:?}")])
        }
        Operation::Sweep(batch) => {
            let (expired, closed) = rules.sweep(now);
            let (mut members, mut rooms) = (0, 0);
            loop {
                let swept = store.sweep(*batch).await.unwrap();
                members += swept.members_expired;
                rooms += swept.rooms_closed;
                if swept.finished {
                    break;
                }
            }
            let expected = format!("{expired} {closed}");
            (vec![expected], vec![format!("{members} {rooms}")])
        }
    }
}

fn words(answers: Vec<Result<(), StaleReason>>, success: &str) -> Vec<String> {
    answers
        .into_iter()
        .map(|answer| match answer {
            Ok(()) => success.to_owned(),
            Err(reason) => reason.as_str().to_owned(),
        })
        .collect()
}

async fn joined(store: &Store, batch: &[Join], limits: Limits, now: i64) -> Vec<String> {
    let requests: Vec<_> = batch
        .iter()
        .map(|j| leasehold::domain::Join {
            lease: lease(j.lease_ms),
            cursor: j.cursor.map(|n| json!(n)),
            metadata: j.metadata.map(|n| json!(n)),
            if_present: if j.reject {
                IfPresent::Reject
            } else {
                IfPresent::Replace
            },
            join_id: j.id.map(|id| id.to_string()),
            capacity: j.capacity,
            ..join_on(&j.room, &j.user, &j.device)
        })
        .collect();
    let limits = JoinLimits {
        members_per_room: limits.members,
        devices_per_member: limits.devices,
        rooms: limits.rooms,
    };
    let answers = store.join(&requests, limits).await.unwrap();
    answers
        .into_iter()
        .map(|answer| match answer {
            Err(refusal) => Code::from(&refusal).as_str().to_owned(),
            Ok(joined) => {
                assert_eq!(joined.as_of, t(now));
                let expires = (joined.lease_expires_at - t(0)).num_milliseconds();
                format!("{} {} {expires}", joined.epoch, joined.generation)
            }
        })
        .collect()
}

fn heartbeat(b: &Beat, epoch: i64) -> Heartbeat {
    Heartbeat {
        lease: b.lease_ms.map(lease),
        cursor: b.cursor.map(|set| set.map(|n| json!(n))),
        metadata: b.metadata.map(|set| set.map(|n| json!(n))),
        ..beat(&b.room, &b.user, &b.device, epoch)
    }
}

/// A room as a reader sees it: people in order of arrival, their sessions newest first.
fn expected_list(rules: &Rules, id: &str, now: i64) -> String {
    let Some(room) = rules.rooms.get(id) else {
        return format!("{id} is not there at {now}");
    };
    let mut text = format!(
        "{id} {} {} {} at {now}",
        room.generation, room.version, room.opened_at
    );
    for person in &room.people {
        text += &format!(", {}", person.user);
        let mut sessions: Vec<_> = person.sessions.iter().collect();
        sessions.sort_by_key(|(_, s)| -s.epoch);
        for (device, s) in sessions {
            let expires_at = now + s.lease_end - rules.clock.now(now);
            text += &format!(" {device:?} {} {} {expires_at}", s.epoch, s.seen_at);
        }
    }
    text
}

async fn listed(store: &Store, ids: &[String]) -> Vec<String> {
    let rooms: Vec<_> = ids.iter().map(|id| room(id)).collect();
    let found = store.participants(&rooms).await.unwrap();
    rooms
        .iter()
        .map(|id| as_listed(id.as_str(), &found[id]))
        .collect()
}

fn as_listed(id: &str, found: &Participants) -> String {
    let ms = |instant: chrono::DateTime<chrono::Utc>| (instant - t(0)).num_milliseconds();
    let now = ms(found.as_of);
    let Some(head) = found.room else {
        return format!("{id} is not there at {now}");
    };
    let opened_at = ms(head.opened_at);
    let mut text = format!(
        "{id} {} {} {opened_at} at {now}",
        head.generation, head.version
    );
    for person in &found.participants {
        text += &format!(", {}", person.user_id);
        for s in &person.sessions {
            let device = s.device_id.name().unwrap_or("");
            let (seen, expires) = (ms(s.last_seen_at), ms(s.lease_expires_at));
            text += &format!(" {device:?} {} {seen} {expires}", s.epoch);
        }
    }
    text
}
