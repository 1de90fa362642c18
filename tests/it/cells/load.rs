//! Movers that are killed at random while clients join, beat and leave on both cells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::domain::{SlotState, Slots};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::super::support::{App, Database, command};
use super::{ask, pair, slots_of};

const ROOMS: usize = 24;
const CLIENTS: usize = 8;

/// Room, user and epoch.
type Session = (String, String, i64);

#[derive(Default)]
struct Seen {
    joined: Vec<Session>,
    left: Vec<Session>,
    /// The longest that a room was refused by both.
    away: Duration,
}

/// Goes from room to room, asking the other cell where one refuses, as a proxy with an old map does.
async fn wander(n: usize, urls: [String; 2], rooms: Vec<String>, stop: Arc<AtomicBool>) -> Seen {
    let client = Client::builder()
        .timeout(Duration::from_secs(10))
        .build()
        .unwrap();
    let user = format!("user-{n}");
    let mut seen = Seen::default();
    let mut place = n;
    let mut guess: BTreeMap<String, usize> = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        place = (place * 5 + 3) % rooms.len();
        let id = &rooms[place];
        let begun = Instant::now();
        let ask = async |cell: usize, action: &str, body: Value| {
            let url = format!("{}/rooms/{id}/{action}", urls[cell]);
            let answer = client.post(url).json(&body).send().await.unwrap();
            (
                answer.status().as_u16(),
                answer.json::<Value>().await.unwrap_or_default(),
            )
        };
        let mut cell = *guess.get(id).unwrap_or(&0);
        let epoch = loop {
            let (status, said) = ask(cell, "join", json!({ "userId": user })).await;
            match status {
                200 => break said["epoch"].as_i64().unwrap(),
                421 => {
                    cell = 1 - cell;
                    sleep(Duration::from_millis(2)).await;
                }
                503 => {}
                _ => unreachable!("{status} {said}"),
            }
        };
        guess.insert(id.clone(), cell);
        seen.away = seen.away.max(begun.elapsed());
        seen.joined.push((id.clone(), user.clone(), epoch));
        let (beaten, said) =
            ask(cell, "heartbeat", json!({ "userId": user, "epoch": epoch })).await;
        assert!([204, 409, 421, 503].contains(&beaten), "{beaten} {said}");
        if beaten == 409 {
            assert_eq!(said["code"], "moved", "{said}");
        }
        if n.is_multiple_of(2) {
            let (left, _) = ask(cell, "leave", json!({ "userId": user, "epoch": epoch })).await;
            assert!([204, 421, 503].contains(&left), "{left}");
            if left == 204 {
                seen.left.push((id.clone(), user.clone(), epoch));
            }
        }
    }
    seen
}

async fn sessions(database: &Database, kind: &str) -> BTreeSet<Session> {
    let sql = format!(
        "select concat_ws(' ', room_id, user_id, epoch) from leasehold.membership_events where kind = '{kind}'"
    );
    let rows = ask(database, &sql).await;
    let parse = |row: &String| {
        let words: Vec<&str> = row.split(' ').collect();
        (
            words[0].to_owned(),
            words[1].to_owned(),
            words[2].parse().unwrap(),
        )
    };
    rows.iter().map(parse).collect()
}

async fn owned(database: &Database, slots: &Slots) -> BTreeSet<i32> {
    let all = database.store.slots().await.unwrap();
    let numbers = slots.numbers();
    let of_them = all.into_iter().filter(|(slot, ..)| numbers.contains(slot));
    let owned = of_them.filter(|(_, state, _)| *state == SlotState::Owned);
    owned.map(|(slot, ..)| slot).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_movers_under_load_lose_nothing_and_leave_one_owner() {
    let (one, two) = pair().await;
    let apps = [App::spawn(&one).await, App::spawn(&two).await];
    let urls = [apps[0].url.clone(), apps[1].url.clone()];
    let rooms: Vec<String> = (0..ROOMS).map(|n| format!("r{n}")).collect();
    let names: Vec<&str> = rooms.iter().map(String::as_str).collect();
    let slots = slots_of(&names);
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| tokio::spawn(wander(n, urls.clone(), rooms.clone(), Arc::clone(&stop))))
        .collect();

    let mover = |from: &Database, to: &Database| {
        let mut mover = command(&[
            "cell",
            "move",
            "--at-once",
            "4",
            "--slots",
            &slots.to_string(),
        ]);
        mover
            .env("LEASEHOLD_MOVE_FROM", from.url())
            .env("LEASEHOLD_MOVE_TO", to.url())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        mover
    };
    let mut killed = 0;
    for (from, to) in [(&one, &two), (&two, &one), (&one, &two)] {
        for _ in 0..6 {
            let mut child = mover(from, to).spawn().unwrap();
            sleep(Duration::from_millis(rand::random_range(30..250))).await;
            killed += usize::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // The one that is run to its end may find that the backends of one that was killed live on for a moment.
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let output = mover(from, to).output().unwrap();
            if output.status.success() {
                break;
            }
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("another move"), "{said}");
            assert!(Instant::now() < deadline, "{said}");
            sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(owned(from, &slots).await, BTreeSet::new());
        assert_eq!(owned(to, &slots).await.len(), slots.len());
    }
    stop.store(true, Ordering::Relaxed);
    let mut all = Seen::default();
    for client in clients {
        let seen = client.await.unwrap();
        // Of one client in one room each epoch is higher than the one before.
        let mut last: BTreeMap<&str, i64> = BTreeMap::new();
        for (room, _, epoch) in &seen.joined {
            let before = last.insert(room, *epoch);
            assert!(before < Some(*epoch), "{room}: {epoch} after {before:?}");
        }
        all.joined.extend(seen.joined);
        all.left.extend(seen.left);
        all.away = all.away.max(seen.away);
    }
    eprintln!(
        "{} joins, {} leaves, {killed} movers killed, a room away for {:?} at most",
        all.joined.len(),
        all.left.len(),
        all.away
    );
    assert!(all.joined.len() > 200);
    // Whatever was acknowledged is in the history of the owner, wherever it happened.
    let (joins, ends) = (
        sessions(&two, "joined").await,
        sessions(&two, "ended").await,
    );
    for session in &all.joined {
        assert!(joins.contains(session), "a join was lost: {session:?}");
    }
    for session in &all.left {
        assert!(ends.contains(session), "a leave was lost: {session:?}");
    }
    for app in apps {
        app.stop().await;
    }
    one.verify().await;
    two.verify().await;
}
