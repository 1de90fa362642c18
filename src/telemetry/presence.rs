//! Who is there, by the tables and by what requests met.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};

use super::registry::{Registry, float};
use crate::domain::{Census, StaleReason};

/// Who is there, by the tables and by what requests met.
#[derive(Clone)]
pub struct PresenceMetrics {
    active_rooms: Gauge,
    active_members: Gauge,
    oldest_lease_age: Gauge,
    lease_clock_paused: Gauge,
    pulse_age: Gauge,
    outages: Gauge,
    members_expired: Counter,
    stale_sessions: [Counter; StaleReason::ALL.len()],
    heartbeat_duration: Histogram,
    sweep_duration: Histogram,
}

impl PresenceMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauge = |name, text| registry.gauge((name, text), &[]);
        let histogram = |name, text| registry.histogram((name, text), &[]);
        let stale = (
            "leasehold_stale_sessions_total",
            "Heartbeats, cursors and leaves of stale sessions, by how the session ended",
        );
        Self {
            active_rooms: gauge("leasehold_active_rooms", "Rooms with a live member"),
            active_members: gauge(
                "leasehold_active_members",
                "Live members, counted once per room",
            ),
            oldest_lease_age: gauge(
                "leasehold_oldest_lease_age_seconds",
                "Since the last heartbeat of the longest unseen row, swept or not",
            ),
            lease_clock_paused: gauge(
                "leasehold_lease_clock_paused_seconds",
                "By how much the lease clock is behind the database's",
            ),
            pulse_age: gauge(
                "leasehold_pulse_age_seconds",
                "Since the last beat of any instance",
            ),
            outages: gauge(
                "leasehold_outages",
                "Times in which no instance served, or the database's clock jumped",
            ),
            members_expired: registry.counter(
                (
                    "leasehold_members_expired_total",
                    "Sessions that this instance recorded as expired: in joins, leaves, lists and sweeps",
                ),
                &[],
            ),
            stale_sessions: std::array::from_fn(|n| {
                registry.counter(stale, &[("code", StaleReason::ALL[n].as_str())])
            }),
            heartbeat_duration: histogram(
                "leasehold_heartbeat_duration_seconds",
                "From the arrival of a heartbeat to its answer",
            ),
            sweep_duration: histogram("leasehold_sweep_duration_seconds", "One run of the sweep"),
        }
    }

    /// What a count of the tables found.
    pub fn census(&self, census: Census) {
        self.active_rooms
            .set(float(census.active_rooms.unsigned_abs()));
        self.active_members
            .set(float(census.active_members.unsigned_abs()));
        self.outages.set(float(census.outages.unsigned_abs()));
        self.oldest_lease_age.set(census.oldest_lease_age_seconds);
        self.lease_clock_paused.set(census.paused_seconds);
        self.pulse_age.set(census.pulse_age_seconds.unwrap_or(0.0));
    }

    /// So many sessions were recorded as expired since this instance started, whoever pruned them.
    pub fn members_expired(&self, sessions: u64) {
        self.members_expired.absolute(sessions);
    }

    /// A request named a session that ended like this.
    pub fn stale_session(&self, reason: StaleReason) {
        self.stale_sessions[reason as usize].increment(1);
    }

    /// From the arrival of a heartbeat to its answer.
    pub fn heartbeat_took(&self, duration: Duration) {
        self.heartbeat_duration.record(duration);
    }

    /// One run of the sweep.
    pub fn sweep_took(&self, duration: Duration) {
        self.sweep_duration.record(duration);
    }
}
