//! What the operations say of each session: since when it certainly lived, from when on it may be gone.

use std::collections::HashMap;

use super::history::{Answered, Asked, History, Operation, Session};

/// Longer than any request can be under way before it takes effect or is given up.
const IN_FLIGHT: i64 = 15_000;
/// Renewals this short before a crash may be lost: three times `wal_writer_delay`, and more on a busy machine.
const LOST_IN_A_CRASH: i64 = 2_000;
/// The lease clock waits for a beat, and then catches up: it may be late by this.
const LATE_BEAT: i64 = 2_000;
/// Instants are told in whole milliseconds.
const ROUNDING: i64 = 10;
/// A clock that jumps runs on until the lease clock notices.
const JUMP: i64 = 2_000;

/// Times of one request.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
    is_join: bool,
}

/// A session whose join was acknowledged.
#[derive(Debug)]
pub struct Life {
    pub session: Session,
    pub join_start: i64,
    lease: i64,
    /// Acknowledged.
    renewals: Vec<Span>,
    /// Whatever may have renewed it.
    attempts: Vec<Span>,
    /// The first request that may have ended it began then.
    may_end_from: i64,
    /// From then on it is certainly gone: an acknowledged leave or a later join was over.
    gone_from: i64,
}

/// All of them, by room, user and epoch.
pub struct Lives(HashMap<(String, String, i64), Life>);

impl Lives {
    pub fn of(operations: &[Operation]) -> Self {
        let mut lives = HashMap::new();
        for operation in operations {
            if let (
                Asked::Join {
                    room,
                    user,
                    device,
                    lease_ms,
                },
                Answered::Joined { epoch },
            ) = (&operation.asked, &operation.answered)
            {
                let joined = operation.span(true);
                let life = Life {
                    session: Session {
                        room: room.clone(),
                        user: user.clone(),
                        device: device.clone(),
                        epoch: *epoch,
                    },
                    join_start: operation.start,
                    lease: *lease_ms,
                    renewals: vec![joined],
                    attempts: vec![joined],
                    may_end_from: i64::MAX,
                    gone_from: i64::MAX,
                };
                lives.insert((room.clone(), user.clone(), *epoch), life);
            }
        }
        let mut lives = Self(lives);
        lives.replaced(operations);
        for operation in operations {
            lives.learn(operation);
        }
        lives
    }

    pub fn get(&self, room: &str, user: &str, epoch: i64) -> Option<&Life> {
        self.0.get(&(room.to_owned(), user.to_owned(), epoch))
    }

    pub fn of_session(&self, session: &Session) -> Option<&Life> {
        self.get(&session.room, &session.user, session.epoch)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Life> {
        self.0.values()
    }

    /// What renewed or ended a session by its own key.
    fn learn(&mut self, operation: &Operation) {
        let (Asked::Renew(session) | Asked::Leave(session)) = &operation.asked else {
            return;
        };
        let key = (session.room.clone(), session.user.clone(), session.epoch);
        let Some(life) = self.0.get_mut(&key) else {
            return;
        };
        let mut span = operation.span(false);
        match (&operation.asked, &operation.answered) {
            (Asked::Leave(_), answered) => {
                life.may_end_from = life.may_end_from.min(operation.start);
                if *answered == Answered::Done {
                    life.gone_from = life.gone_from.min(operation.end);
                }
            }
            (_, Answered::Done) => {
                life.renewals.push(span);
                life.attempts.push(span);
            }
            (_, Answered::Unknown) => {
                span.end += IN_FLIGHT;
                life.attempts.push(span);
            }
            _ => {}
        }
    }

    /// What later joins on the same device ended.
    fn replaced(&mut self, operations: &[Operation]) {
        let mut joins: HashMap<(&str, &str, &str), Vec<&Operation>> = HashMap::new();
        for operation in operations {
            if let Asked::Join {
                room, user, device, ..
            } = &operation.asked
            {
                joins
                    .entry((room, user, device))
                    .or_default()
                    .push(operation);
            }
        }
        for life in self.0.values_mut() {
            let Session {
                room, user, device, ..
            } = &life.session;
            for join in joins.get(&(room, user, device)).into_iter().flatten() {
                match join.answered {
                    Answered::Joined { epoch } if epoch > life.session.epoch => {
                        life.may_end_from = life.may_end_from.min(join.start);
                        life.gone_from = life.gone_from.min(join.end);
                    }
                    Answered::Unknown if join.end + IN_FLIGHT > life.join_start => {
                        life.may_end_from = life.may_end_from.min(join.start);
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Life {
    /// Whether it lived all the time between these instants, whatever the clocks did.
    pub fn surely_lives(&self, from: i64, to: i64, history: &History) -> bool {
        let slack = ROUNDING + if history.clock_jumped { JUMP } else { 0 };
        let survives = |span: &Span| {
            span.is_join
                || !history
                    .crashes
                    .iter()
                    .any(|crash| (span.start..span.end + LOST_IN_A_CRASH).contains(crash))
        };
        let lasts = |span: &&Span| {
            span.end <= from && to + slack <= span.start + self.lease && survives(span)
        };
        to < self.may_end_from && self.renewals.iter().rev().any(|span| lasts(&span))
    }

    /// Why it was certainly no member at any time between these instants.
    pub fn surely_gone(&self, from: i64, to: i64, history: &History) -> Option<String> {
        if self.gone_from < from {
            return Some(format!("had left or was replaced at {}", self.gone_from));
        }
        if history.clock_jumped {
            return None;
        }
        // Its own attempt, if this is about one, is not what kept it alive.
        let heard = self.attempts.iter().filter(|span| span.start < from);
        let heard = heard.map(|span| span.end).max()?;
        let stood: i64 = history
            .outages
            .iter()
            .filter(|outage| outage.began < to && heard < outage.ended)
            .map(|outage| outage.paused.max(0))
            .sum();
        let silent = from - heard - stood;
        (silent > self.lease + LATE_BEAT).then(|| {
            format!(
                "was last heard of at {heard} with a lease of {}",
                self.lease
            )
        })
    }

    /// Why it should have been there.
    pub fn last_renewed(&self, at: i64) -> String {
        let renewals = self.renewals.iter().filter(|span| span.end <= at);
        let last = renewals.max_by_key(|span| span.start);
        format!(
            "{:?} with a lease of {}, last renewed in {last:?}",
            self.session, self.lease
        )
    }

    /// Whether nothing after this instant can need it.
    pub fn is_over(&self, at: i64) -> bool {
        let renewed = self.renewals.iter().map(|span| span.start).max();
        self.may_end_from < at || renewed.is_none_or(|start| start + self.lease < at)
    }
}

impl Operation {
    fn span(&self, is_join: bool) -> Span {
        Span {
            start: self.start,
            end: self.end,
            is_join,
        }
    }
}
