//! What an operator asks: how full it is, and how late the sweep.

use chrono::{DateTime, Utc};

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

/// When the sweep last finished, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The instant of the answer.
    pub as_of: DateTime<Utc>,
    /// `None` where it never has.
    pub last_swept_at: Option<DateTime<Utc>>,
}
