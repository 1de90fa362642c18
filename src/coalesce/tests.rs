//! Batches and held rows in fake time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::domain::RoomId;
use crate::store::{Row, StoreError};
use crate::telemetry::{Metrics, QueueMetrics};

/// Each request is how long its batch takes; the answer, when the batch began.
struct Takes(Instant, Arc<Mutex<Vec<usize>>>);

impl Operation for Takes {
    const NAME: &'static str = "takes";

    type Request = u64;
    type Answer = u64;

    async fn run(&self, batch: &[u64]) -> Result<Vec<Answered<u64>>, StoreError> {
        let began = self.0.elapsed().as_millis() as u64;
        self.1.lock().unwrap().push(batch.len());
        let longest = batch.iter().max().unwrap();
        sleep(Duration::from_millis(*longest)).await;
        Ok(batch.iter().map(|_| Answered::Now(began)).collect())
    }

    fn row(&self, _: &u64) -> Option<Row> {
        None
    }
}

/// A row that somebody holds until an instant; counts who waits for it at a time.
struct HeldUntil(Instant, Arc<AtomicUsize>);

impl Await for HeldUntil {
    async fn await_row(&self, _: &Row) -> Result<(), StoreError> {
        assert_eq!(
            self.1.fetch_add(1, Ordering::Relaxed),
            0,
            "one waiter a row"
        );
        let turn = Instant::now() + Duration::from_secs(1);
        sleep_until(turn.min(self.0)).await;
        self.1.fetch_sub(1, Ordering::Relaxed);
        if Instant::now() >= self.0 {
            Ok(())
        } else {
            Err(StoreError::Locked)
        }
    }
}

fn holds_until(instant: Instant) -> Holds<HeldUntil> {
    Holds::new(HeldUntil(instant, Arc::default()), 1, 100)
}

fn queue_metrics() -> QueueMetrics {
    Metrics::new().unwrap().queue("test")
}

/// Each is when to ask and how long it takes; when each began, and the sizes of the batches.
async fn began(settings: Settings, requests: &[(u64, u64)]) -> (Vec<u64>, Vec<usize>) {
    let sizes = Arc::default();
    let mut tasks = JoinSet::new();
    let takes = Takes(Instant::now(), Arc::clone(&sizes));
    let coalescer = Coalescer::start(
        takes,
        settings,
        &holds_until(Instant::now()),
        queue_metrics(),
        &mut tasks,
    );
    let asking: Vec<_> = requests
        .iter()
        .map(|&(at, takes)| {
            let coalescer = coalescer.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(at)).await;
                coalescer.ask(takes).await.unwrap()
            })
        })
        .collect();
    let mut began = Vec::new();
    for asked in asking {
        began.push(asked.await.unwrap());
    }
    drop(coalescer);
    tasks.join_all().await;
    let sizes = sizes.lock().unwrap().clone();
    (began, sizes)
}

const SETTINGS: Settings = Settings {
    lanes: 2,
    max_batch: 100,
    queue: 100,
    timeout: Duration::from_secs(60),
};

#[tokio::test(start_paused = true)]
async fn what_comes_during_a_call_goes_into_the_next() {
    let requests = [(0, 90), (10, 0), (20, 0), (80, 0)];
    let (began, sizes) = began(SETTINGS, &requests).await;
    assert_eq!(began, [0, 90, 90, 90]);
    assert_eq!(sizes, [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_holds_up_the_others_for_a_moment() {
    let requests = [(0, 5_000), (10, 0), (150, 0), (160, 0)];
    let (began, _) = began(SETTINGS, &requests).await;
    assert_eq!(began, [0, 100, 150, 160]);
}

#[tokio::test(start_paused = true)]
async fn there_are_never_more_calls_than_lanes() {
    let requests = [(0, 5_000), (10, 9_000), (300, 0)];
    let (began, _) = began(SETTINGS, &requests).await;
    assert_eq!(began, [0, 100, 5_000]);
}

#[tokio::test(start_paused = true)]
async fn one_by_one_there_are_as_many_calls_as_lanes() {
    let settings = Settings {
        max_batch: 1,
        ..SETTINGS
    };
    let (began, sizes) = began(settings, &[(0, 50), (10, 50), (20, 0)]).await;
    assert_eq!(began, [0, 10, 50]);
    assert_eq!(sizes, [1, 1, 1]);
}

/// What is asked: whether it needs the held row, and how the call finds out.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Nothing,
    /// The call waits a moment for the lock, in vain.
    Lock,
    /// The call passes over it.
    Skip,
}

/// The answer is when it came, in milliseconds.
struct Held {
    began: Instant,
    until: Instant,
}

impl Held {
    fn is_held(&self) -> bool {
        Instant::now() < self.until
    }
}

impl Operation for Held {
    const NAME: &'static str = "held";

    type Request = Needs;
    type Answer = u64;

    async fn run(&self, batch: &[Needs]) -> Result<Vec<Answered<u64>>, StoreError> {
        if self.is_held() && batch.contains(&Needs::Lock) {
            sleep(Duration::from_millis(50)).await;
            return Err(StoreError::Locked);
        }
        let at = self.began.elapsed().as_millis() as u64;
        Ok(batch
            .iter()
            .map(|needs| match needs {
                Needs::Skip if self.is_held() => Answered::Later,
                _ => Answered::Now(at),
            })
            .collect())
    }

    fn row(&self, needs: &Needs) -> Option<Row> {
        (*needs != Needs::Nothing).then(|| Row::Room(RoomId::parse("held").unwrap()))
    }

    async fn held(&self, batch: &[Needs]) -> Result<Vec<Option<Row>>, StoreError> {
        let rows = batch.iter().map(|needs| self.row(needs));
        Ok(rows.map(|row| row.filter(|_| self.is_held())).collect())
    }
}

/// A coalescer of requests for a row that somebody holds for so long.
fn held_for(
    held: Duration,
    timeout: Duration,
    tasks: &mut JoinSet<()>,
) -> Coalescer<Held, HeldUntil> {
    let began = Instant::now();
    let until = began + held;
    let settings = Settings {
        timeout,
        ..SETTINGS
    };
    Coalescer::start(
        Held { began, until },
        settings,
        &holds_until(until),
        queue_metrics(),
        tasks,
    )
}

#[tokio::test(start_paused = true)]
async fn who_shares_a_batch_with_one_that_is_held_goes_on_without_it() {
    let mut tasks = JoinSet::new();
    let seconds = Duration::from_secs;
    let coalescer = held_for(seconds(5), seconds(60), &mut tasks);
    let (held, free, skipped, also_free) = tokio::join!(
        coalescer.ask(Needs::Lock),
        coalescer.ask(Needs::Nothing),
        coalescer.ask(Needs::Skip),
        coalescer.ask(Needs::Nothing),
    );
    assert_eq!((free.unwrap(), also_free.unwrap()), (50, 50));
    assert_eq!((held.unwrap(), skipped.unwrap()), (5_000, 5_000));
}

#[tokio::test(start_paused = true)]
async fn a_trickle_for_a_held_row_delays_nobody_else() {
    let mut tasks = JoinSet::new();
    let seconds = Duration::from_secs;
    let coalescer = held_for(seconds(12), seconds(60), &mut tasks);
    let began = Instant::now();
    let mut held = JoinSet::new();
    let mut slowest = 0;
    for turn in 0..100_u64 {
        sleep_until(began + Duration::from_millis(100 * turn)).await;
        let coalescer = coalescer.clone();
        if turn % 2 == 0 {
            held.spawn(async move { coalescer.ask(Needs::Lock).await.unwrap() });
        } else {
            let answered = coalescer.ask(Needs::Nothing).await.unwrap();
            slowest = slowest.max(answered - 100 * turn);
        }
    }
    assert!(slowest <= 50, "{slowest} ms");
    let answers = held.join_all().await;
    assert_eq!(answers, vec![12_000; 50]);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_held_row_no_longer_than_its_caller() {
    let mut tasks = JoinSet::new();
    let seconds = Duration::from_secs;
    for needs in [Needs::Lock, Needs::Skip] {
        let began = Instant::now();
        let coalescer = held_for(seconds(600), seconds(3), &mut tasks);
        let refused = coalescer.ask(needs).await.unwrap_err();
        assert!(matches!(refused, NoAnswer::Held | NoAnswer::TimedOut(_)));
        assert_eq!(began.elapsed(), seconds(3));
    }
    // Nothing goes on for a caller who has his answer.
    let began = Instant::now();
    tasks.join_all().await;
    assert!(began.elapsed() <= seconds(1));
}
