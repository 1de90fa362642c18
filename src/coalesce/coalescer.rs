//! One kind of operation: its queue, and the task that turns what waits in it into calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Answered, Await, Holds, NoAnswer, Operation};
use crate::store::{Row, StoreError, retry};
use crate::telemetry::QueueMetrics;

/// A call that takes longer than this no longer keeps the next one from starting.
const SLOW_CALL: Duration = Duration::from_millis(100);

/// How requests are gathered.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The most calls of each kind under way at once, slow ones included.
    pub lanes: usize,
    /// The most requests in one call; 1 switches coalescing off.
    pub max_batch: usize,
    /// How many of each kind may wait before the next is refused.
    pub queue: usize,
    /// How long a caller waits for its answer.
    pub timeout: Duration,
}

/// A request on its way, and where its answer goes.
struct Waiting<O: Operation> {
    request: O::Request,
    answer: oneshot::Sender<Result<O::Answer, NoAnswer>>,
    deadline: Instant,
}

/// One of them in the queue, and since when.
type Queued<O> = (Waiting<O>, Instant);

impl<O: Operation> Waiting<O> {
    /// A caller that went away no longer wants to know.
    fn answer(self, outcome: Result<O::Answer, NoAnswer>) {
        let _ = self.answer.send(outcome);
    }
}

/// The way to one operation: cheap to clone; its task ends when the last clone is gone.
pub struct Coalescer<O: Operation, W> {
    operation: Arc<O>,
    queue: mpsc::Sender<Queued<O>>,
    holds: Holds<W>,
    metrics: QueueMetrics,
    timeout: Duration,
}

impl<O: Operation, W> Clone for Coalescer<O, W> {
    fn clone(&self) -> Self {
        Self {
            operation: Arc::clone(&self.operation),
            queue: self.queue.clone(),
            holds: self.holds.clone(),
            metrics: self.metrics.clone(),
            timeout: self.timeout,
        }
    }
}

impl<O: Operation, W: Await> Coalescer<O, W> {
    /// Starts a task of `tasks`, which ends when the last batch is answered.
    pub fn start(
        operation: O,
        settings: Settings,
        holds: &Holds<W>,
        metrics: QueueMetrics,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let operation = Arc::new(operation);
        let (queue, receiver) = mpsc::channel(settings.queue);
        let gathering = Gathering {
            operation: Arc::clone(&operation),
            queue: queue.downgrade(),
            holds: holds.clone(),
            metrics: metrics.clone(),
        };
        tasks.spawn(gathering.gather(receiver, settings));
        Self {
            operation,
            queue,
            holds: holds.clone(),
            metrics,
            timeout: settings.timeout,
        }
    }

    /// Shows how many wait now.
    pub fn measure(&self) {
        let waiting = self.queue.max_capacity() - self.queue.capacity();
        self.metrics.length(waiting);
    }

    /// Waits for the answer to one request, for a bounded time.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn ask(&self, request: O::Request) -> Result<O::Answer, NoAnswer> {
        let mut queued = Instant::now();
        let deadline = queued + self.timeout;
        if self.holds.is_held(|| self.operation.row(&request))
            && let Some(row) = self.operation.row(&request)
        {
            self.holds.released(row, deadline).await?;
            queued = Instant::now();
        }
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting {
            request,
            answer,
            deadline,
        };
        let sent = self.queue.try_send((waiting, queued));
        sent.map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NoAnswer::Overloaded,
            mpsc::error::TrySendError::Closed(_) => NoAnswer::Stopping,
        })?;
        match tokio::time::timeout_at(deadline, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(NoAnswer::Stopping),
            Err(_) => Err(NoAnswer::TimedOut(self.timeout)),
        }
    }
}

/// What the task of one operation needs.
struct Gathering<O: Operation, W> {
    operation: Arc<O>,
    /// For what comes back from a row that was held; does not keep the task alive.
    queue: mpsc::WeakSender<Queued<O>>,
    holds: Holds<W>,
    metrics: QueueMetrics,
}

impl<O: Operation, W> Clone for Gathering<O, W> {
    fn clone(&self) -> Self {
        Self {
            operation: Arc::clone(&self.operation),
            queue: self.queue.clone(),
            holds: self.holds.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

impl<O: Operation, W: Await> Gathering<O, W> {
    async fn gather(self, mut queue: mpsc::Receiver<Queued<O>>, settings: Settings) {
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
            let mut batch = Vec::new();
            if queue.recv_many(&mut batch, settings.max_batch).await == 0 {
                break;
            }
            let batch = self.begin(batch);
            let this = self.clone();
            tokio::spawn(async move {
                let _lane = lane;
                let mut call = std::pin::pin!(this.answer(batch));
                if tokio::time::timeout(SLOW_CALL, &mut call).await.is_err() {
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

    /// Takes a batch out of the queue, and counts it.
    fn begin(&self, queued: Vec<Queued<O>>) -> Vec<Waiting<O>> {
        // One value a batch, and not one a request: that would cost a heartbeat a hundredth more.
        if let Some((_, since)) = queued.first() {
            self.metrics.batch_began(queued.len(), since.elapsed());
        }
        queued.into_iter().map(|(waiting, _)| waiting).collect()
    }

    /// Until each has its answer, or waits for a row in the place for that.
    async fn answer(&self, mut batch: Vec<Waiting<O>>) {
        loop {
            let (requests, callers) = split(batch);
            match self.run(&requests).await {
                // Who can go on without the others does so at once; after another's own batch, all of them.
                Err(StoreError::Locked) => {
                    let held = self.operation.held(&requests).await;
                    let held = held.unwrap_or_else(|_| {
                        let rows = requests.iter().map(|request| self.operation.row(request));
                        rows.collect()
                    });
                    batch = Vec::new();
                    let now = Instant::now();
                    for (waiting, row) in join::<O>(requests, callers).into_iter().zip(held) {
                        match row {
                            Some(row) => self.hold(waiting, row),
                            None if waiting.deadline <= now => {
                                waiting.answer(Err(NoAnswer::Held));
                            }
                            None => batch.push(waiting),
                        }
                    }
                    if batch.is_empty() {
                        return;
                    }
                }
                // One of them may be what Postgres refuses: it fails alone.
                Err(StoreError::Rejected(_)) if requests.len() > 1 => {
                    for waiting in join::<O>(requests, callers) {
                        Box::pin(self.answer(vec![waiting])).await;
                    }
                    return;
                }
                Ok(answers) => {
                    for (waiting, answer) in join::<O>(requests, callers).into_iter().zip(answers) {
                        match answer {
                            Answered::Now(answer) => waiting.answer(Ok(answer)),
                            Answered::Later => match self.operation.row(&waiting.request) {
                                Some(row) => self.hold(waiting, row),
                                None => waiting.answer(Err(NoAnswer::Held)),
                            },
                        }
                    }
                    return;
                }
                Err(error) => {
                    let error = NoAnswer::from(error);
                    for waiting in join::<O>(requests, callers) {
                        waiting.answer(Err(error.clone()));
                    }
                    return;
                }
            }
        }
    }

    async fn run(&self, batch: &[O::Request]) -> Result<Vec<Answered<O::Answer>>, StoreError> {
        let answers = retry(|| self.operation.run(batch)).await?;
        if answers.len() == batch.len() {
            Ok(answers)
        } else {
            Err(StoreError::Unexpected(
                "not one answer per request".to_owned(),
            ))
        }
    }

    /// Waits for the row that the request needs, and puts it back into the queue.
    fn hold(&self, waiting: Waiting<O>, row: Row) {
        // Keeps the task alive that is to answer it.
        let Some(queue) = self.queue.upgrade() else {
            return waiting.answer(Err(NoAnswer::Stopping));
        };
        let holds = self.holds.clone();
        tokio::spawn(async move {
            match holds.released(row, waiting.deadline).await {
                // Its place in the queue is one that others freed.
                Ok(()) => {
                    let queued = (waiting, Instant::now());
                    if let Err(mpsc::error::SendError((waiting, _))) = queue.send(queued).await {
                        waiting.answer(Err(NoAnswer::Stopping));
                    }
                }
                Err(error) => waiting.answer(Err(error)),
            }
        });
    }
}

type Caller<O> = (
    oneshot::Sender<Result<<O as Operation>::Answer, NoAnswer>>,
    Instant,
);

/// The requests side by side, as a call takes them.
fn split<O: Operation>(batch: Vec<Waiting<O>>) -> (Vec<O::Request>, Vec<Caller<O>>) {
    batch
        .into_iter()
        .map(|waiting| (waiting.request, (waiting.answer, waiting.deadline)))
        .unzip()
}

/// The opposite of [`split`].
fn join<O: Operation>(requests: Vec<O::Request>, callers: Vec<Caller<O>>) -> Vec<Waiting<O>> {
    let asked = requests.into_iter().zip(callers);
    asked
        .map(|(request, (answer, deadline))| Waiting {
            request,
            answer,
            deadline,
        })
        .collect()
}
