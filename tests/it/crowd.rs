//! Everything at once, in real time, with leases that end while their heartbeats are under way.

use std::time::{Duration, Instant};

use leasehold::domain::RoomId;
use leasehold::store::{Heartbeat, Join, JoinLimits, Leave, Store, StoreError};
use rand::RngExt;
use rand::rngs::ThreadRng;

use super::support::{Database, beat, join_on, leave, room};

const TASKS: usize = 8;
const LASTS: Duration = Duration::from_secs(4);

fn pick(rng: &mut ThreadRng, of: &[&'static str]) -> &'static str {
    of[rng.random_range(0..of.len())]
}

/// A room, a user and a device out of few, so that tasks meet.
fn who(rng: &mut ThreadRng) -> (&'static str, &'static str, &'static str) {
    let room = pick(rng, &["a", "B", "c", "D"]);
    let user = pick(rng, &["u", "V", "w", "X", "y"]);
    (room, user, pick(rng, &["", "phone"]))
}

fn lease_ms(rng: &mut ThreadRng) -> u32 {
    [1, 5, 20, 100, 60_000][rng.random_range(0..5)]
}

fn batch<T>(mut make: impl FnMut(&mut ThreadRng) -> T) -> Vec<T> {
    let mut rng = rand::rng();
    (0..rng.random_range(1..12))
        .map(|_| make(&mut rng))
        .collect()
}

fn joins() -> Vec<Join> {
    batch(|rng| {
        let (room, user, device) = who(rng);
        Join {
            lease_ms: lease_ms(rng),
            ..join_on(room, user, device)
        }
    })
}

/// Of epochs about as high as they have come.
fn beats(highest: i64) -> Vec<Heartbeat> {
    batch(|rng| {
        let (room, user, device) = who(rng);
        let epoch = rng.random_range((highest - 4).max(1)..=highest.max(1));
        Heartbeat {
            lease_ms: rng.random_bool(0.3).then(|| lease_ms(rng)),
            ..beat(room, user, device, epoch)
        }
    })
}

fn leaves(highest: i64) -> Vec<Leave> {
    batch(|rng| {
        let (room, user, device) = who(rng);
        let epoch = rng.random_range((highest - 4).max(1)..=highest.max(1));
        leave(room, user, device, epoch)
    })
}

/// Random operations until the time is over; how many sessions began and were renewed.
async fn one_of_the_crowd(store: Store) -> Result<(usize, usize), StoreError> {
    let rooms: Vec<RoomId> = ["a", "B", "c", "D"].iter().map(|id| room(id)).collect();
    let started = Instant::now();
    let (mut highest, mut joined, mut renewed) = (1, 0, 0);
    while started.elapsed() < LASTS {
        match rand::random_range(0..10) {
            0..3 => {
                let limits = JoinLimits {
                    members_per_room: Some(4),
                    ..JoinLimits::default()
                };
                for answer in store.join(&joins(), limits).await?.into_iter().flatten() {
                    highest = answer.epoch;
                    joined += 1;
                }
            }
            3..7 => {
                renewed += store
                    .heartbeat(&beats(highest))
                    .await?
                    .iter()
                    .flatten()
                    .count()
            }
            7 => drop(store.leave(&leaves(highest)).await?),
            8 => drop(store.sweep(5).await?),
            _ => {
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
    }
    Ok((joined, renewed))
}

#[tokio::test]
async fn whatever_a_crowd_does_at_once_the_invariants_hold_and_nobody_deadlocks() {
    let database = Database::new().await;
    let crowd: Vec<_> = (0..TASKS)
        .map(|_| tokio::spawn(one_of_the_crowd(database.store.clone())))
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
