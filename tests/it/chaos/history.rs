//! What clients asked and were answered, and what the database says of it at the end.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

/// One session of a member.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Session {
    pub room: String,
    pub user: String,
    pub device: String,
    pub epoch: i64,
}

#[derive(Debug, Clone)]
pub enum Asked {
    Join {
        room: String,
        user: String,
        device: String,
        lease_ms: i64,
    },
    /// A heartbeat, a cursor or an item of a batch.
    Renew(Session),
    Leave(Session),
    List {
        room: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    Joined {
        epoch: i64,
    },
    Done,
    /// 409
    Stale,
    /// Users with the epochs of all their sessions.
    Listed(Vec<(String, i64)>),
    /// No answer, or 503: it may have taken effect, or may yet.
    Unknown,
}

/// All times are milliseconds on one clock that does not jump.
#[derive(Debug, Clone)]
pub struct Operation {
    pub asked: Asked,
    pub answered: Answered,
    pub start: i64,
    pub end: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Joined,
    Ended,
}

/// A line of the database's own history, or of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recorded {
    pub session: Session,
    pub kind: Kind,
}

/// A time in which the lease clock stood still.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    pub began: i64,
    pub ended: i64,
    /// By how much the lease clock was stopped.
    pub paused: i64,
}

#[derive(Debug, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    /// When Postgres was killed: heartbeats of the moments before may be lost.
    pub crashes: Vec<i64>,
    pub recorded: Vec<Recorded>,
    /// What a reader of the feed got, in its order.
    pub fed: Vec<Recorded>,
    pub outages: Vec<Outage>,
    /// Whether the database's clock jumped: then it says nothing about how long somebody was silent.
    pub clock_jumped: bool,
}

/// Shared by all clients of a trial.
#[derive(Clone)]
pub struct Recorder {
    began: Instant,
    operations: Arc<Mutex<Vec<Operation>>>,
}

impl Recorder {
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            operations: Arc::default(),
        }
    }

    pub fn now(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    /// Asks, and records when, and what came of it.
    pub async fn record(&self, asked: Asked, answer: impl Future<Output = Answered>) -> Answered {
        let begun = self.begin(asked);
        let answered = answer.await;
        self.end(begun, answered.clone());
        answered
    }

    /// The same for several in one request.
    pub async fn record_all(
        &self,
        asked: Vec<Asked>,
        answers: impl Future<Output = Vec<Answered>>,
    ) {
        let begun: Vec<Begun> = asked.into_iter().map(|asked| self.begin(asked)).collect();
        for (begun, answered) in begun.into_iter().zip(answers.await) {
            self.end(begun, answered);
        }
    }

    pub fn begin(&self, asked: Asked) -> Begun {
        Begun {
            asked,
            start: self.now(),
        }
    }

    pub fn end(&self, Begun { asked, start }: Begun, answered: Answered) {
        self.operations.lock().unwrap().push(Operation {
            asked,
            answered,
            start,
            end: self.now(),
        });
    }

    /// All that was recorded so far, in the order of the answers.
    pub fn operations(&self) -> Vec<Operation> {
        self.operations.lock().unwrap().clone()
    }
}

/// An operation without an answer yet.
pub struct Begun {
    asked: Asked,
    start: i64,
}
