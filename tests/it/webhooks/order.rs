//! A hundred thousand changes arrive once and in order of each room, whatever the receiver does.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use leasehold::domain::{Join, JoinLimits};
use leasehold::store::StoreError;
use serde_json::json;

use super::{FLAGS, SECRET, put, state, until};
use crate::support::{App, Database, Receiver, Reply, join, lease};

/// Somebody comes into every room, so many times.
async fn write(database: &Database, rooms: usize, rounds: usize) {
    for round in 0..rounds {
        let user = format!("user-{round}");
        // Nobody's lease ends meanwhile.
        let joins = (0..rooms).map(|n| Join {
            lease: lease(300_000),
            ..join(&format!("room-{n}"), &user)
        });
        let joins: Vec<_> = joins.collect();
        loop {
            let joined = database.store.join(&joins, JoinLimits::default()).await;
            match joined {
                Ok(joined) => break assert_eq!(joined.len(), rooms),
                Err(error) => assert!(matches!(error, StoreError::Locked), "{error}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_changes_arrive_once_and_in_order_of_each_room() {
    const ROOMS: usize = 200;
    const ROUNDS: usize = 500;
    let database = Database::new().await;
    // One in fifty is refused the first time, and one room is slow.
    let receiver = Receiver::answering(|delivery| {
        let sum: u32 = delivery.id().bytes().map(u32::from).sum();
        match delivery.repeats {
            0 if sum.is_multiple_of(50) => Reply::Status(503),
            _ if delivery.room() == "room-7" => Reply::After(Duration::from_millis(50), 200),
            _ => Reply::Status(200),
        }
    })
    .await;
    let app = App::spawn_with(&database, &FLAGS).await;
    put(
        &app,
        "hook",
        &json!({ "url": receiver.url, "secret": SECRET, "kinds": ["joined"] }),
    )
    .await;
    write(&database, ROOMS, ROUNDS).await;
    let began = Instant::now();
    let all = (ROOMS * ROUNDS) as i64;
    let is_done =
        |state: &serde_json::Value| state["pendingDeliveries"] == 0 && state["failures"] == 0;
    loop {
        until(&app, "delivered", is_done).await;
        let seen = receiver.deliveries();
        let first = seen.iter().filter(|d| d.repeats == 0);
        let changes: usize = first.map(|d| d.changes().len()).sum();
        if changes as i64 >= all {
            break;
        }
        let stands = state(&app).await;
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "{changes}: {stands}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!(
        "{all} changes delivered {:?} after the last was written",
        began.elapsed()
    );

    let mut versions: HashMap<String, Vec<i64>> = HashMap::new();
    let mut taken: HashMap<String, bool> = HashMap::new();
    for delivery in receiver.deliveries() {
        // In order of the answers that took them: nothing later came before what was refused.
        let refused =
            delivery.repeats == 0 && delivery.id().bytes().map(u32::from).sum::<u32>() % 50 == 0;
        if refused || taken.insert(delivery.id().to_owned(), true).is_some() {
            continue;
        }
        for change in delivery.changes() {
            let room = change["roomId"].as_str().unwrap().to_owned();
            versions
                .entry(room)
                .or_default()
                .push(change["version"].as_i64().unwrap());
        }
    }
    assert_eq!(versions.len(), ROOMS);
    for (room, versions) in versions {
        let expected: Vec<i64> = (1..=ROUNDS as i64).collect();
        assert_eq!(versions, expected, "{room}");
    }
    assert_eq!(receiver.most_of_a_room(), 1);
    database.verify().await;
}
