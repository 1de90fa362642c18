//! What an operator asks: how full it is, and how late the sweep.

use chrono::{DateTime, TimeDelta, Utc};

use super::word::words;

/// What is in the tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Census {
    /// Rooms with a live member.
    pub active_rooms: i64,
    /// Live members, counted once per room.
    pub active_members: i64,
    /// Since the last heartbeat of the session that was seen longest ago, swept or not.
    pub oldest_lease_age_seconds: f64,
    /// By how much the lease clock is behind the database's.
    pub paused_seconds: f64,
    /// Since the last beat of any instance; `None` where there never was one.
    pub pulse_age_seconds: Option<f64>,
    /// How often the lease clock had to be stopped.
    pub outages: i64,
}

words! {
    /// Who can keep a transaction, or a view of the past, for long.
    Holder {
        /// A connection.
        Session => "session",
        /// A transaction that was prepared for a commit in two phases.
        Prepared => "prepared",
        /// A standby that reads, with `hot_standby_feedback`.
        Standby => "standby",
        /// A replication slot, whether or not somebody uses it.
        Slot => "slot",
    }
}

/// What the oldest transaction of one kind of holder keeps: dead rows, and the end of the feed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenTransactions {
    /// Whose.
    pub holder: Holder,
    /// Since the oldest began, of those whose beginning is known.
    pub oldest_seconds: f64,
    /// Transactions that began after the oldest.
    pub oldest_transactions: i64,
    /// Of how many this role may not see when they began.
    pub unseen: i64,
}

/// How far behind the history and the feed are.
#[derive(Debug, Clone, PartialEq)]
pub struct Backlog {
    /// For how long the oldest committed change has waited to be shown in the feed.
    pub feed_lag_seconds: f64,
    /// Since a sweep last found nothing more to do; `None` where none ever has.
    pub sweep_age_seconds: Option<f64>,
    /// What holds the feed back or keeps dead rows.
    pub open: Vec<OpenTransactions>,
}

/// How the sweep is, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The instant of the answer.
    pub as_of: DateTime<Utc>,
    /// When one last found nothing more to do; `None` where none ever has.
    pub last_swept_at: Option<DateTime<Utc>>,
    /// When a batch last left something to do; `None` after a sweep that finished.
    pub unfinished_at: Option<DateTime<Utc>>,
    /// Whether one is at work at this moment.
    pub sweep_works: bool,
}

impl Readiness {
    /// Whether a sweep finished, or at least got on, in this time, or is at work.
    pub fn is_swept(&self, within: TimeDelta) -> bool {
        let signs = [self.last_swept_at, self.unfinished_at];
        let lately = |at: DateTime<Utc>| self.as_of - at <= within;
        self.sweep_works || signs.into_iter().flatten().any(lately)
    }
}
