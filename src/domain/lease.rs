//! How long a lease is, how often it is to be renewed, and what a late renewal looks like to others.

use chrono::{DateTime, TimeDelta, Utc};

/// The lease lengths this service grants, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRules {
    /// Granted where a join does not ask for a length.
    pub default_ms: u32,
    /// The shortest a client may ask for.
    pub min_ms: u32,
    /// The longest a client may ask for.
    pub max_ms: u32,
    /// How often a lease of the default length is to be renewed; other lengths in proportion.
    pub heartbeat_ms: u32,
}

/// What a member's heartbeats say of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Heard of within one and a half of its heartbeat intervals.
    Connected,
    /// Not heard of for longer, or reported as disconnected; the lease decides.
    Reconnecting,
}

impl Status {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Reconnecting => "reconnecting",
        }
    }
}

impl LeaseRules {
    /// The heartbeat interval that belongs to a lease of this length, in milliseconds; at least 1.
    pub fn heartbeat_ms(&self, lease_ms: u32) -> u32 {
        let scaled =
            u64::from(lease_ms) * u64::from(self.heartbeat_ms) / u64::from(self.default_ms);
        u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
    }

    /// When a member that was last seen then, with a lease of this length, starts to look lost.
    pub fn reconnecting_after(&self, last_seen_at: DateTime<Utc>, lease_ms: u32) -> DateTime<Utc> {
        last_seen_at + TimeDelta::milliseconds(i64::from(self.heartbeat_ms(lease_ms)) * 3 / 2)
    }

    /// The status of a live member at an instant of the database's clock.
    pub fn status(
        &self,
        at: DateTime<Utc>,
        last_seen_at: DateTime<Utc>,
        lease_ms: u32,
        disconnected: bool,
    ) -> Status {
        if disconnected || at > self.reconnecting_after(last_seen_at, lease_ms) {
            Status::Reconnecting
        } else {
            Status::Connected
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: LeaseRules = LeaseRules {
        default_ms: 15_000,
        min_ms: 1_000,
        max_ms: 300_000,
        heartbeat_ms: 5_000,
    };

    #[test]
    fn a_longer_lease_beats_more_slowly() {
        assert_eq!(RULES.heartbeat_ms(15_000), 5_000);
        assert_eq!(RULES.heartbeat_ms(300_000), 100_000);
        assert_eq!(RULES.heartbeat_ms(1_000), 333);
    }

    #[test]
    fn a_member_is_reconnecting_strictly_after_one_and_a_half_intervals() {
        let seen = DateTime::UNIX_EPOCH;
        let at = |ms| seen + TimeDelta::milliseconds(ms);
        assert_eq!(
            RULES.status(at(7_500), seen, 15_000, false),
            Status::Connected
        );
        assert_eq!(
            RULES.status(at(7_501), seen, 15_000, false),
            Status::Reconnecting
        );
        assert_eq!(
            RULES.status(at(7_501), seen, 30_000, false),
            Status::Connected
        );
        assert_eq!(
            RULES.status(at(0), seen, 15_000, true),
            Status::Reconnecting
        );
    }
}
