//! The beats of this instance, by which the lease clock runs.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Presence;
use super::gathered::Sign;
use crate::coalesce::NoAnswer;
use crate::domain::{Beat, LeaseRules};

/// How far an outage stops the lease clock.
#[derive(Debug, Clone, Copy)]
pub struct PulseSettings {
    /// How soon clients come back, and how long the longest of them may be silent.
    pub leases: LeaseRules,
    /// The longest that one outage stops the clock; zero for not at all.
    pub max_pause: Duration,
}

/// What one beat has to know of the one before.
pub(super) struct Pulse {
    settings: PulseSettings,
    instance: i64,
    /// By this host's monotonic clock, before the beat was sent: so its age is never taken for less than it is.
    last: Mutex<Option<Instant>>,
}

impl Pulse {
    pub(super) fn new(settings: PulseSettings) -> Self {
        Self {
            settings,
            instance: rand::random(),
            last: Mutex::new(None),
        }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        // Nothing that can panic is done while it is locked.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Presence {
    /// Shows that this instance serves; returns when that is known to the database.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn beat(&self) -> Result<(), NoAnswer> {
        let sent = Instant::now();
        let PulseSettings { leases, max_pause } = self.pulse.settings;
        let beat = Beat {
            heartbeat_ms: leases.default_lease().heartbeat_ms,
            longest_lease_ms: leases.max_ms,
            max_pause,
            instance: self.pulse.instance,
            since: self.pulse.last().map(|last| last.elapsed()),
        };
        // It cannot be stale.
        let _ = self.heartbeats.ask(Sign::Beat(beat)).await?;
        *self.pulse.last() = Some(sent);
        Ok(())
    }
}
