//! Batches in fake time.

use std::sync::Mutex;

use tokio::time::sleep;

use super::*;

/// Each request is how long its batch takes; the answer, when the batch began.
struct Waits(Instant, Arc<Mutex<Vec<usize>>>);

impl Operation for Waits {
    type Request = u64;
    type Answer = u64;

    async fn run(&self, batch: &[u64]) -> Result<Vec<u64>, StoreError> {
        let began = self.0.elapsed().as_millis() as u64;
        self.1.lock().unwrap().push(batch.len());
        let longest = batch.iter().max().unwrap();
        sleep(Duration::from_millis(*longest)).await;
        Ok(vec![began; batch.len()])
    }
}

/// Each is when to ask and how long it takes; when each began, and the sizes of the batches.
async fn began(settings: Settings, requests: &[(u64, u64)]) -> (Vec<u64>, Vec<usize>) {
    let sizes = Arc::default();
    let mut tasks = JoinSet::new();
    let waits = Waits(Instant::now(), Arc::clone(&sizes));
    let coalescer = Coalescer::start(waits, settings, &mut tasks);
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
async fn what_comes_while_a_call_gets_on_goes_into_the_next() {
    let requests = [(0, 90), (10, 0), (20, 0), (80, 0)];
    let (began, sizes) = began(SETTINGS, &requests).await;
    assert_eq!(began, [0, 90, 90, 90]);
    assert_eq!(sizes, [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_get_on_holds_up_the_others_for_a_moment() {
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

/// A request is whether somebody holds what it needs, until 5 s have passed; a call gives up
/// waiting for a lock after one. The answer is when it came.
struct Holds(Instant);

impl Operation for Holds {
    type Request = bool;
    type Answer = u64;

    async fn run(&self, batch: &[bool]) -> Result<Vec<u64>, StoreError> {
        if batch.contains(&true) && self.0.elapsed() < Duration::from_secs(5) {
            sleep(Duration::from_secs(1)).await;
            return Err(StoreError::Locked);
        }
        Ok(vec![self.0.elapsed().as_secs(); batch.len()])
    }

    async fn held(&self, batch: &[bool]) -> Result<Vec<bool>, StoreError> {
        Ok(batch.to_vec())
    }
}

#[tokio::test(start_paused = true)]
async fn who_shares_a_batch_with_one_that_is_held_goes_on_without_it() {
    let mut tasks = JoinSet::new();
    let coalescer = Coalescer::start(Holds(Instant::now()), SETTINGS, &mut tasks);
    let answers = tokio::join!(
        coalescer.ask(true),
        coalescer.ask(false),
        coalescer.ask(true),
        coalescer.ask(false),
    );
    let (held, free, also_held, also_free) = answers;
    assert_eq!((free.unwrap(), also_free.unwrap()), (1, 1));
    assert_eq!((held.unwrap(), also_held.unwrap()), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_locks_no_longer_than_its_callers() {
    let settings = Settings {
        timeout: Duration::from_secs(3),
        ..SETTINGS
    };
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    let coalescer = Coalescer::start(Holds(began), settings, &mut tasks);
    let refused = coalescer.ask(true).await.unwrap_err();
    assert!(matches!(
        refused,
        NoAnswer::TimedOut(_) | NoAnswer::Failed(_)
    ));
    drop(coalescer);
    tasks.join_all().await;
    assert!(began.elapsed() <= Duration::from_secs(5));
}
