//! Everything at once, in real time, with leases that end while their heartbeats are under way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leasehold::domain::{Heartbeat, Join, JoinLimits, SessionKey};
use leasehold::store::{Store, StoreError};
use rand::RngExt;
use rand::rngs::ThreadRng;

use super::support::{Database, beat, join_on, lease, room, session};

const TASKS: usize = 8;
const LASTS: Duration = Duration::from_secs(3);

type Who = (&'static str, &'static str, &'static str);

/// The newest epoch of each session, as far as anybody was told.
type Epochs = Arc<Mutex<HashMap<Who, i64>>>;

fn pick(rng: &mut ThreadRng, of: &[&'static str]) -> &'static str {
    of[rng.random_range(0..of.len())]
}

/// A room, a user and a device out of few, so that tasks meet.
fn who(rng: &mut ThreadRng) -> Who {
    let room = pick(rng, &["a", "B", "c", "D"]);
    let user = pick(rng, &["u", "V", "w", "X", "y"]);
    (room, user, pick(rng, &["", "phone"]))
}

fn lease_ms(rng: &mut ThreadRng) -> u32 {
    [1, 20, 100, 60_000, 60_000][rng.random_range(0..5)]
}

fn batch<T>(mut make: impl FnMut(&mut ThreadRng) -> T) -> Vec<T> {
    let mut rng = rand::rng();
    (0..rng.random_range(1..12))
        .map(|_| make(&mut rng))
        .collect()
}

fn joins() -> (Vec<Who>, Vec<Join>) {
    batch(|rng| {
        let who = who(rng);
        let join = Join {
            lease: lease(lease_ms(rng)),
            ..join_on(who.0, who.1, who.2)
        };
        (who, join)
    })
    .into_iter()
    .unzip()
}

/// Now and then an older one.
fn epoch(rng: &mut ThreadRng, epochs: &Epochs, who: Who) -> i64 {
    let newest = epochs.lock().unwrap().get(&who).copied().unwrap_or(1);
    newest - i64::from(rng.random_bool(0.1))
}

fn beats(epochs: &Epochs) -> Vec<Heartbeat> {
    batch(|rng| {
        let who = who(rng);
        let epoch = epoch(rng, epochs, who);
        Heartbeat {
            lease: rng.random_bool(0.2).then(|| lease(lease_ms(rng))),
            ..beat(who.0, who.1, who.2, epoch)
        }
    })
}

fn leaves(epochs: &Epochs) -> Vec<SessionKey> {
    batch(|rng| {
        let who = who(rng);
        session(who.0, who.1, who.2, epoch(rng, epochs, who))
    })
}

/// Random operations until the time is over; how many sessions began and were renewed.
async fn one_of_the_crowd(store: Store, epochs: Epochs) -> Result<(usize, usize), StoreError> {
    let started = Instant::now();
    let (mut joined, mut renewed) = (0, 0);
    while started.elapsed() < LASTS {
        match one_operation(&store, &epochs).await {
            Ok((began, heard)) => {
                joined += began;
                renewed += heard;
            }
            // Nothing happened: others were in its way for longer than it waits.
            Err(StoreError::Locked) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((joined, renewed))
}

/// How many sessions it began and renewed.
async fn one_operation(store: &Store, epochs: &Epochs) -> Result<(usize, usize), StoreError> {
    let (mut joined, mut renewed) = (0, 0);
    match rand::random_range(0..10) {
        0..2 => {
            let limits = JoinLimits {
                members_per_room: Some(4),
                ..JoinLimits::default()
            };
            let (who, joins) = joins();
            for (who, answer) in who.into_iter().zip(store.join(&joins, limits).await?) {
                let Ok(session) = answer else { continue };
                let mut epochs = epochs.lock().unwrap();
                let newest = epochs.entry(who).or_insert(0);
                *newest = session.epoch.max(*newest);
                joined += 1;
            }
        }
        2..7 => {
            let (resizes, beats): (Vec<_>, Vec<_>) =
                beats(epochs).into_iter().partition(|b| b.lease.is_some());
            let resizes: Vec<_> = resizes
                .into_iter()
                .filter_map(|b| Some((b.clone(), b.lease?)))
                .collect();
            let mut answers = store.heartbeat(&beats).await?;
            answers.extend(store.resize(&resizes).await?);
            renewed += answers.iter().flatten().flatten().count();
        }
        7 => drop(store.leave(&leaves(epochs)).await?),
        8 => drop(store.sweep(5).await?),
        _ => {
            let rooms = ["a", "B", "c", "D"].map(room);
            for (id, found) in store.participants(&rooms).await? {
                let empty = found.participants.is_empty();
                assert_eq!(found.room.is_none(), empty, "{id} is listed empty");
                for session in found.participants.iter().flat_map(|p| &p.sessions) {
                    assert!(
                        session.lease_expires_at >= found.as_of,
                        "{id} shows the expired"
                    );
                }
            }
        }
    }
    Ok((joined, renewed))
}

#[tokio::test]
async fn whatever_a_crowd_does_at_once_the_invariants_hold_and_nobody_deadlocks() {
    let database = Database::new().await;
    let epochs = Epochs::default();
    let crowd: Vec<_> = (0..TASKS)
        .map(|_| tokio::spawn(one_of_the_crowd(database.store.clone(), epochs.clone())))
        .collect();
    let (mut joined, mut renewed) = (0, 0);
    for one in crowd {
        let counts = one.await.unwrap().unwrap();
        joined += counts.0;
        renewed += counts.1;
    }
    assert!(
        joined > 0 && renewed > 0,
        "{joined} joined, {renewed} renewed"
    );
    database.verify().await;
}
