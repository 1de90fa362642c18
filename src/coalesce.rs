//! Many requests, one commit.
//!
//! Each kind of operation has a queue and a task that takes everything that
//! waits in it, makes one call of it, answers every caller, and starts over.
//! There is no timer: an idle one starts at once, and a busy one gathers what
//! arrives meanwhile, so the batch is as large as the load needs. Only where a
//! call does not get on, as it waits for a lock that somebody holds, does the
//! next one start beside it.
//!
//! A call runs in a task of its own: a caller that goes away cancels nothing.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::store::{StoreError, retry};

/// A call that takes longer than this no longer keeps the next one from starting.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is done with a batch.
pub trait Operation: Send + Sync + 'static {
    /// How many calls start without waiting for each other. One makes the largest batches; more
    /// pay where the work on the answers is as long as that in Postgres.
    const AT_ONCE: usize = 1;

    type Request: Send + Sync + 'static;
    type Answer: Send + 'static;

    /// One call for all of them: an answer per request, in order, after the commit.
    fn run(
        &self,
        batch: &[Self::Request],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, StoreError>> + Send;

    /// Which of them another transaction holds up, asked when a call has waited for a lock in vain.
    fn held(
        &self,
        batch: &[Self::Request],
    ) -> impl Future<Output = Result<Vec<bool>, StoreError>> + Send {
        let all = vec![true; batch.len()];
        async { Ok(all) }
    }
}

/// How requests are gathered.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The most calls of each kind under way at once, those that do not get on included.
    pub lanes: usize,
    /// The most requests in one call; 1 switches coalescing off.
    pub max_batch: usize,
    /// How many of each kind may wait before the next is refused.
    pub queue: usize,
    /// How long a caller waits for its answer.
    pub timeout: Duration,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// Too many wait already; nothing was done.
    #[error("too many requests are waiting")]
    Overloaded,
    /// Not in time; it may still take effect.
    #[error("the database did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The service is stopping.
    #[error("the service is shutting down")]
    Stopping,
    /// The call failed.
    #[error(transparent)]
    Failed(#[from] Arc<StoreError>),
}

type Caller<O> = oneshot::Sender<Result<<O as Operation>::Answer, Arc<StoreError>>>;

struct Waiting<O: Operation> {
    request: O::Request,
    answer: Caller<O>,
}

/// The way to one operation: cheap to clone; its task ends when the last clone is gone.
pub struct Coalescer<O: Operation> {
    queue: mpsc::Sender<Waiting<O>>,
    timeout: Duration,
}

impl<O: Operation> Clone for Coalescer<O> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            timeout: self.timeout,
        }
    }
}

impl<O: Operation> Coalescer<O> {
    /// Starts a task of `tasks`, which ends when the last batch is answered.
    pub fn start(operation: O, settings: Settings, tasks: &mut JoinSet<()>) -> Self {
        let (queue, receiver) = mpsc::channel(settings.queue);
        tasks.spawn(gather(Arc::new(operation), receiver, settings));
        Self {
            queue,
            timeout: settings.timeout,
        }
    }

    /// Waits for the answer to one request, for a bounded time.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn ask(&self, request: O::Request) -> Result<O::Answer, NoAnswer> {
        let (answer, answered) = oneshot::channel();
        self.queue
            .try_send(Waiting { request, answer })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => NoAnswer::Overloaded,
                mpsc::error::TrySendError::Closed(_) => NoAnswer::Stopping,
            })?;
        match tokio::time::timeout(self.timeout, answered).await {
            Ok(Ok(answer)) => Ok(answer?),
            Ok(Err(_)) => Err(NoAnswer::Stopping),
            Err(_) => Err(NoAnswer::TimedOut(self.timeout)),
        }
    }
}

async fn gather<O: Operation>(
    operation: Arc<O>,
    mut queue: mpsc::Receiver<Waiting<O>>,
    settings: Settings,
) {
    let at_once = if settings.max_batch == 1 {
        settings.lanes
    } else {
        settings.lanes.min(O::AT_ONCE)
    };
    let lanes = Arc::new(Semaphore::new(settings.lanes));
    let starts = Arc::new(Semaphore::new(at_once));
    // Neither is ever closed.
    while let Ok(lane) = Arc::clone(&lanes).acquire_owned().await
        && let Ok(start) = Arc::clone(&starts).acquire_owned().await
    {
        let mut waiting = Vec::new();
        if queue.recv_many(&mut waiting, settings.max_batch).await == 0 {
            break;
        }
        let operation = Arc::clone(&operation);
        tokio::spawn(async move {
            let _lane = lane;
            let deadline = Instant::now() + settings.timeout;
            let mut call = std::pin::pin!(answer(&*operation, waiting, deadline));
            if tokio::time::timeout(PATIENCE, &mut call).await.is_err() {
                drop(start);
                call.await;
            }
        });
    }
    for _ in 0..settings.lanes {
        let Ok(ended) = lanes.acquire().await else {
            break;
        };
        ended.forget();
    }
}

async fn answer<O: Operation>(operation: &O, waiting: Vec<Waiting<O>>, deadline: Instant) {
    let (requests, callers): (Vec<_>, Vec<_>) =
        waiting.into_iter().map(|w| (w.request, w.answer)).unzip();
    match run(operation, &requests, Instant::now()).await {
        // Who can go on without the others does so; those wait until their callers no longer do.
        Err(StoreError::Locked) => {
            let held = operation.held(&requests).await;
            let held = held.unwrap_or_else(|_| vec![true; requests.len()]);
            let asked = requests.into_iter().zip(callers).zip(held);
            let (stuck, free): (Vec<_>, Vec<_>) = asked.partition(|(_, is_held)| *is_held);
            for part in [free, stuck] {
                let (requests, callers): (Vec<_>, Vec<_>) =
                    part.into_iter().map(|(asked, _)| asked).unzip();
                if !requests.is_empty() {
                    let outcome = run(operation, &requests, deadline).await;
                    tell(operation, requests, callers, outcome).await;
                }
            }
        }
        outcome => tell(operation, requests, callers, outcome).await,
    }
}

/// What became of the batch, to each of the callers; one that went away no longer wants to know.
async fn tell<O: Operation>(
    operation: &O,
    requests: Vec<O::Request>,
    callers: Vec<Caller<O>>,
    outcome: Result<Vec<O::Answer>, StoreError>,
) {
    match outcome {
        Ok(answers) => {
            for (caller, answer) in callers.into_iter().zip(answers) {
                let _ = caller.send(Ok(answer));
            }
        }
        // One of them may be what Postgres refuses: it fails alone.
        Err(StoreError::Rejected(_)) if requests.len() > 1 => {
            for (caller, request) in callers.into_iter().zip(requests) {
                let alone = std::slice::from_ref(&request);
                let outcome = run(operation, alone, Instant::now()).await;
                let _ = caller.send(match outcome {
                    Ok(mut answers) => answers.pop().ok_or_else(|| Arc::new(no_answer())),
                    Err(error) => Err(Arc::new(error)),
                });
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for caller in callers {
                let _ = caller.send(Err(Arc::clone(&error)));
            }
        }
    }
}

/// Waits for locks until the deadline, or once where it has passed.
async fn run<O: Operation>(
    operation: &O,
    batch: &[O::Request],
    deadline: Instant,
) -> Result<Vec<O::Answer>, StoreError> {
    let answers = retry(deadline, || operation.run(batch)).await?;
    if answers.len() == batch.len() {
        Ok(answers)
    } else {
        Err(no_answer())
    }
}

fn no_answer() -> StoreError {
    StoreError::Unexpected("not one answer per request".to_owned())
}

#[cfg(test)]
mod tests;
