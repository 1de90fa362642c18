//! A trial: rounds of faults under load, a quiet point after each, and the check of it all.

use std::env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep};

use super::super::support::{run, text};
use super::checker::violations;
use super::clock::Clock;
use super::faults::{
    Deck, Fault, OF_INSTANCES, OF_THE_DATABASE, OF_THE_DATABASE_AND_ITS_CLOCK, Target,
};
use super::history::{History, Kind, Outage, Recorded, Recorder, Session};
use super::long_run;
use super::readers::Readers;
use super::workload::{self, Tally, require_running};
use super::world::World;

/// Between two quiet points.
const ROUND: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(20);

/// `CHAOS_SEED`, else this.
fn seed(otherwise: u64) -> u64 {
    let given = env::var("CHAOS_SEED").ok();
    given.map_or(otherwise, |seed| seed.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_the_answers_of_a_minute_are_right() {
    trial(seed(1), Duration::from_secs(45), None).await;
    // Not beside the other, whose time it would take.
    if let Some(clock) = Clock::new() {
        trial(seed(1), ROUND, Some(clock)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a third of CHAOS_SECONDS; `make chaos`"]
async fn whatever_fails_the_answers_of_a_long_run_are_right() {
    trial(seed(rand::random()), long_run(), None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a third of CHAOS_SECONDS; `make chaos`"]
async fn whatever_fails_and_whatever_the_time_is_the_answers_are_right() {
    if let Some(clock) = Clock::new() {
        trial(seed(rand::random()), long_run(), Some(clock)).await;
    }
}

async fn trial(seed: u64, time: Duration, clock: Option<Clock>) {
    eprintln!("CHAOS_SEED={seed}");
    let clock_jumped = clock.is_some();
    let of_the_database = match clock_jumped {
        true => OF_THE_DATABASE_AND_ITS_CLOCK,
        false => OF_THE_DATABASE,
    };
    let world = Arc::new(World::start(clock).await);
    let recorder = Recorder::new();
    let target = Target {
        world: Arc::clone(&world),
        recorder: recorder.clone(),
        crashes: Arc::default(),
    };
    let mut random = StdRng::seed_from_u64(seed);
    let mut clients = workload::start(&world, &recorder, random.random());
    let readers = Readers::start(&world, &mut clients);
    let clients = Mutex::new(clients);
    let mut decks = [OF_INSTANCES, of_the_database]
        .map(|faults| Deck::new(faults, StdRng::seed_from_u64(random.random())));

    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        let [instances, database] = &mut decks;
        tokio::join!(round(&target, instances), round(&target, database));
        require_running(&clients).await;
        world.until_served().await;
        let quiet = world.quiet().await;
        readers.converge(&world).await;
        verify(&world).await;
        drop(quiet);
        eprintln!("{:>7} ms: {:?}", recorder.now(), Tally::of(&recorder));
    }

    let quiet = world.quiet().await;
    let recorded = recorded(&world, &readers).await;
    let servers = world.servers.lock().await;
    let crashes = target.crashes.lock().unwrap().clone();
    let mut history = History {
        operations: recorder.operations(),
        crashes,
        outages: outages(&mut servers.connect().await, &recorder).await,
        fed: readers.fed(),
        recorded,
        clock_jumped,
    };
    history.fed.truncate(history.recorded.len());
    let found = violations(&history);
    if !found.is_empty() {
        eprintln!("crashes: {:?}", history.crashes);
        eprintln!("outages: {:#?}", history.outages);
    }
    assert!(
        found.is_empty(),
        "CHAOS_SEED={seed}: {} violations: {:#?}",
        found.len(),
        &found[..found.len().min(20)]
    );
    // Whichever way it jumped, it came back. The only jump of a short trial may meet nobody who serves.
    let stepped_back = history.outages.iter().any(|outage| outage.paused < 0);
    let one_jump = time < Duration::from_secs(60);
    assert!(stepped_back || one_jump || !clock_jumped, "no clock jumped");
    let tally = Tally::of(&recorder);
    let enough = tally.joined > 100 && tally.done > 300 && tally.stale > 20 && tally.listed > 200;
    assert!(enough, "too little was answered: {tally:?}");
    drop(quiet);
    clients.lock().unwrap().abort_all();
    world.stop().await;
}

/// Faults one after the other, with pauses.
async fn round(target: &Target, deck: &mut Deck) {
    let end = Instant::now() + ROUND;
    while Instant::now() < end {
        let pause = Duration::from_millis(deck.random.random_range(300..1_000));
        sleep(pause).await;
        let fault: Fault = deck.deal();
        eprintln!("{:>7} ms: {fault:?}", target.recorder.now());
        target.suffer(fault, &mut deck.random).await;
    }
}

async fn verify(world: &World) {
    let url = world.servers.lock().await.url();
    let verified = run(&["verify"], &url);
    assert!(verified.status.success(), "{}", text(&verified.stdout));
}

/// The database's history, once the feed has told all of it.
async fn recorded(world: &World, readers: &Readers) -> Vec<Recorded> {
    let mut connection = world.servers.lock().await.connect().await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let recorded = events(&mut connection).await;
        let fed = readers.fed().len();
        if fed >= recorded.len() {
            return recorded;
        }
        assert!(
            Instant::now() < deadline,
            "the feed stands at {fed} of {}",
            recorded.len()
        );
        sleep(Duration::from_millis(100)).await;
    }
}

async fn events(connection: &mut PgConnection) -> Vec<Recorded> {
    sqlx::query!(
        r#"select room_id, user_id, device_id, epoch, kind from leasehold.membership_events
            order by era, xact_id, event_id"#
    )
    .fetch_all(connection)
    .await
    .unwrap()
    .into_iter()
    .map(|event| Recorded {
        session: Session {
            room: event.room_id,
            user: event.user_id,
            device: event.device_id,
            epoch: event.epoch,
        },
        kind: match &*event.kind {
            "joined" => Kind::Joined,
            _ => Kind::Ended,
        },
    })
    .collect()
}

/// On the clock of the trial.
async fn outages(connection: &mut PgConnection, recorder: &Recorder) -> Vec<Outage> {
    let rows = sqlx::query!(
        r#"select (extract(epoch from clock_timestamp() - began_at) * 1000)::bigint as "began_ago!",
                  (extract(epoch from clock_timestamp() - ended_at) * 1000)::bigint as "ended_ago!",
                  (paused_after - paused_before) / 1000 as "paused!"
             from leasehold.outages"#
    )
    .fetch_all(connection)
    .await
    .unwrap();
    let now = recorder.now();
    rows.iter()
        .map(|row| Outage {
            began: now - row.began_ago,
            ended: now - row.ended_ago,
            paused: row.paused,
        })
        .collect()
}
