//! How long a lease is, and how often it is to be renewed.

use super::word::words;

/// For how long a session lives without being heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// In milliseconds, at least 1.
    pub length_ms: u32,
    /// How often it is to be renewed, in milliseconds, at least 1; later, others see a lost connection.
    pub heartbeat_ms: u32,
}

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

words! {
    /// What a session's heartbeats say of its connection.
    Status {
        /// Heard of within one and a half of its heartbeat intervals.
        Connected => "connected",
        /// Not heard of for longer, or reported as disconnected; the lease decides.
        Reconnecting => "reconnecting",
    }
}

impl LeaseRules {
    /// The heartbeat interval that belongs to a lease of this length, in milliseconds; at least 1.
    fn heartbeat_ms(&self, lease_ms: u32) -> u32 {
        let scaled =
            u64::from(lease_ms) * u64::from(self.heartbeat_ms) / u64::from(self.default_ms);
        u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
    }

    /// A lease of this length, in milliseconds.
    pub fn lease(&self, length_ms: u32) -> Lease {
        Lease {
            length_ms,
            heartbeat_ms: self.heartbeat_ms(length_ms),
        }
    }

    /// The lease of a join that does not ask for a length.
    pub fn default_lease(&self) -> Lease {
        self.lease(self.default_ms)
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
}
