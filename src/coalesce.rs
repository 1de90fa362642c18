//! Many requests, one commit.
//!
//! Each lane is a task that takes everything that waits for it, makes one call
//! of it, answers every caller, and starts over. There is no timer: an idle lane
//! starts at once, and a busy one gathers what arrives meanwhile, so the batch is
//! as large as the load needs. A room always takes the same lane, so that batches
//! do not wait for each other's rows.
//!
//! The work runs in the lane's task: a caller that goes away cancels nothing.

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::store::StoreError;

/// A deadlock or a serialisation failure is tried again so many times.
const RETRIES: u32 = 5;

/// What lanes do with a batch.
pub trait Operation: Send + Sync + 'static {
    type Request: Send + Sync + 'static;
    type Answer: Send + 'static;

    /// One call for all of them: an answer per request, in order, after the commit.
    fn run(
        &self,
        batch: &[Self::Request],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, StoreError>> + Send;

    /// Requests with the same key go through the same lane.
    fn key(request: &Self::Request) -> &str;
}

/// How requests are gathered.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Lanes of each operation: how many batches of it can be under way at once.
    pub lanes: usize,
    /// The most requests in one call; 1 switches coalescing off.
    pub max_batch: usize,
    /// How many may wait in a lane before the next is refused.
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

struct Waiting<O: Operation> {
    request: O::Request,
    answer: oneshot::Sender<Result<O::Answer, Arc<StoreError>>>,
}

/// The way to one operation: cheap to clone; its lanes end when the last clone is gone.
pub struct Coalescer<O: Operation> {
    lanes: Arc<[mpsc::Sender<Waiting<O>>]>,
    timeout: Duration,
}

impl<O: Operation> Clone for Coalescer<O> {
    fn clone(&self) -> Self {
        Self {
            lanes: Arc::clone(&self.lanes),
            timeout: self.timeout,
        }
    }
}

impl<O: Operation> Coalescer<O> {
    /// Starts the lanes as tasks of `tasks`, which ends when the last batch is answered.
    pub fn start(operation: O, settings: Settings, tasks: &mut JoinSet<()>) -> Self {
        let operation = Arc::new(operation);
        let lanes = (0..settings.lanes)
            .map(|_| {
                let (sender, receiver) = mpsc::channel(settings.queue);
                tasks.spawn(lane(Arc::clone(&operation), receiver, settings.max_batch));
                sender
            })
            .collect();
        Self {
            lanes,
            timeout: settings.timeout,
        }
    }

    /// Waits for the answer to one request, for a bounded time.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn ask(&self, request: O::Request) -> Result<O::Answer, NoAnswer> {
        let lane = &self.lanes[self.lane_of(O::key(&request))];
        let (answer, answered) = oneshot::channel();
        lane.try_send(Waiting { request, answer })
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

    fn lane_of(&self, key: &str) -> usize {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        // The remainder is below the number of lanes, a usize.
        (hasher.finish() % self.lanes.len() as u64) as usize
    }
}

async fn lane<O: Operation>(
    operation: Arc<O>,
    mut queue: mpsc::Receiver<Waiting<O>>,
    max_batch: usize,
) {
    let mut waiting = Vec::with_capacity(max_batch);
    while queue.recv_many(&mut waiting, max_batch).await > 0 {
        let (requests, callers): (Vec<_>, Vec<_>) =
            waiting.drain(..).map(|w| (w.request, w.answer)).unzip();
        match run(&*operation, &requests).await {
            Ok(answers) => {
                for (caller, answer) in callers.into_iter().zip(answers) {
                    // A caller that went away no longer wants to know.
                    let _ = caller.send(Ok(answer));
                }
            }
            // One of them may be what Postgres refuses: it fails alone.
            Err(StoreError::Rejected(_)) if requests.len() > 1 => {
                for (caller, request) in callers.into_iter().zip(requests) {
                    let outcome = run(&*operation, std::slice::from_ref(&request)).await;
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
}

async fn run<O: Operation>(
    operation: &O,
    batch: &[O::Request],
) -> Result<Vec<O::Answer>, StoreError> {
    let mut retries = 0;
    loop {
        match operation.run(batch).await {
            Err(error) if error.is_conflict() && retries < RETRIES => retries += 1,
            Ok(answers) if answers.len() != batch.len() => return Err(no_answer()),
            outcome => return outcome,
        }
    }
}

fn no_answer() -> StoreError {
    StoreError::Unexpected("not one answer per request".to_owned())
}
