//! The rules of the lease clock: time in which nobody served did not happen. In milliseconds, as all of the model.

/// For how long the clock runs after a beat.
const REACH: i64 = 1_500;
/// Beats that are further apart are an outage.
const GAP: i64 = 3_000;

/// Nobody has served yet where there was no beat: then it is the database's.
#[derive(Default)]
pub struct LeaseClock {
    last_beat: Option<i64>,
    paused: i64,
    outages: Vec<Outage>,
}

struct Outage {
    /// Where the lease clock stood.
    lease_at: i64,
    paused_before: i64,
    paused_after: i64,
}

impl LeaseClock {
    /// By which leases are judged.
    pub fn now(&self, now: i64) -> i64 {
        self.reached(now, REACH)
    }

    /// From where they begin: as if the beat that is late came now.
    pub fn from(&self, now: i64) -> i64 {
        self.reached(now, GAP)
    }

    fn reached(&self, now: i64, reach: i64) -> i64 {
        let most = self.last_beat.map_or(i64::MAX, |last| last + reach);
        now.min(most) - self.paused
    }

    /// An instance beats; answers by how much this stops the clock, where the beat ends an outage.
    pub fn beat(&mut self, now: i64) -> Option<i64> {
        let late = self.last_beat.is_some_and(|last| now - last > GAP);
        let lease_at = self.now(now);
        self.last_beat = Some(now);
        if !late {
            return None;
        }
        let paused_before = self.paused;
        self.paused = now - lease_at;
        self.outages.push(Outage {
            lease_at,
            paused_before,
            paused_after: self.paused,
        });
        Some(self.paused - paused_before)
    }

    /// When a lease that is over ended, on the database's clock.
    pub fn instant(&self, lease_end: i64) -> i64 {
        let before = self.outages.iter().rev().find(|o| o.lease_at < lease_end);
        let paused = match (before, self.outages.first()) {
            (Some(outage), _) => outage.paused_after,
            (None, Some(first)) => first.paused_before,
            (None, None) => self.paused,
        };
        lease_end + paused
    }
}
