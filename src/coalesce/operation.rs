//! What is done with a batch, and why a request may have no answer.

use std::sync::Arc;
use std::time::Duration;

use crate::store::{Row, StoreError};

/// What a call says to one request of its batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Answered<A> {
    /// This.
    Now(A),
    /// Nothing yet, and nothing was changed: another transaction holds a row that it needs.
    Later,
}

/// What is done with a batch.
pub trait Operation: Send + Sync + 'static {
    /// How many calls start without waiting for each other. One makes the largest batches; more
    /// pay where the work on the answers is as long as that in Postgres.
    const AT_ONCE: usize = 1;

    /// What the metrics call it.
    const NAME: &'static str;

    /// What is asked.
    type Request: Send + Sync + 'static;
    /// What is answered.
    type Answer: Send + 'static;

    /// One call for all of them: an answer per request, in order, after the commit.
    fn run(
        &self,
        batch: &[Self::Request],
    ) -> impl Future<Output = Result<Vec<Answered<Self::Answer>>, StoreError>> + Send;

    /// The row without which nothing can be done for this request; `None` where it never waits for one.
    fn row(&self, request: &Self::Request) -> Option<Row>;

    /// For each of them the row that another transaction holds at this moment and that it needs,
    /// asked when a call waited for a lock in vain.
    fn held(
        &self,
        batch: &[Self::Request],
    ) -> impl Future<Output = Result<Vec<Option<Row>>, StoreError>> + Send {
        let none = batch.iter().map(|_| None).collect();
        async { Ok(none) }
    }
}

/// Why a request has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoAnswer {
    /// Too many wait already; nothing was done.
    #[error("too many requests are waiting")]
    Overloaded,
    /// Not in time; it may still take effect.
    #[error("the database did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// Another transaction holds what the request would change, and did not end in time; nothing was done.
    #[error("another transaction holds what this would change, and did not end in time")]
    Held,
    /// The service is stopping.
    #[error("the service is shutting down")]
    Stopping,
    /// The call failed.
    #[error(transparent)]
    Failed(Arc<StoreError>),
}

impl NoAnswer {
    /// Whether another database has the room.
    pub fn is_misdirected(&self) -> bool {
        matches!(self, Self::Failed(error) if matches!(**error, StoreError::Misdirected))
    }
}

impl From<StoreError> for NoAnswer {
    fn from(error: StoreError) -> Self {
        Self::Failed(Arc::new(error))
    }
}
