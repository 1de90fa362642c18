//! How long leases are, and how often they are swept.

use std::time::Duration;

use clap::Args;
use humantime::format_duration;

use super::value::{as_millis, duration, millis};
use crate::domain::LeaseRules;

/// The lengths of leases.
#[derive(Debug, Clone, Args)]
pub struct LeaseArgs {
    /// The lease of a join that does not ask for one
    #[arg(long = "lease-ms", env = "LEASEHOLD_LEASE_MS", default_value = "15s",
          value_parser = millis("LEASEHOLD_LEASE_MS", 1_000..=86_400_000))]
    pub lease: Duration,

    /// The shortest lease that a client may ask for
    #[arg(long = "min-lease-ms", env = "LEASEHOLD_MIN_LEASE_MS", default_value = "1s",
          value_parser = millis("LEASEHOLD_MIN_LEASE_MS", 100..=86_400_000))]
    pub min_lease: Duration,

    /// The longest lease that a client may ask for
    #[arg(long = "max-lease-ms", env = "LEASEHOLD_MAX_LEASE_MS", default_value = "5m",
          value_parser = millis("LEASEHOLD_MAX_LEASE_MS", 1_000..=86_400_000))]
    pub max_lease: Duration,

    /// How often a client with the default lease is to send a heartbeat
    #[arg(long = "heartbeat-ms", env = "LEASEHOLD_HEARTBEAT_MS", default_value = "5s",
          value_parser = millis("LEASEHOLD_HEARTBEAT_MS", 100..=86_400_000))]
    pub heartbeat: Duration,

    /// The longest time without a serving instance that leases do not count; 0 counts all of it
    #[arg(long, env = "LEASEHOLD_OUTAGE_GRACE", default_value = "10m",
          value_parser = duration("LEASEHOLD_OUTAGE_GRACE", Duration::ZERO..=Duration::from_secs(86_400)))]
    pub outage_grace: Duration,

    /// How often expired members are swept out of the tables; 0 leaves it to others
    #[arg(long = "sweep-interval-ms", env = "LEASEHOLD_SWEEP_INTERVAL_MS", default_value = "5s",
          value_parser = millis("LEASEHOLD_SWEEP_INTERVAL_MS", 0..=3_600_000))]
    pub sweep_interval: Duration,
}

/// Settings that are each fine and do not fit together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{variable} is {} ({} ms), but must be {allowed}",
    format_duration(*.value),
    value.as_millis()
)]
pub struct InvalidSetting {
    variable: &'static str,
    value: Duration,
    allowed: String,
}

impl InvalidSetting {
    pub(super) fn new(variable: &'static str, value: Duration, allowed: impl Into<String>) -> Self {
        Self {
            variable,
            value,
            allowed: allowed.into(),
        }
    }
}

impl LeaseArgs {
    /// The lease lengths, where they fit together.
    ///
    /// # Errors
    /// [`InvalidSetting`]
    pub fn rules(&self) -> Result<LeaseRules, InvalidSetting> {
        let shown = format_duration;
        let (min, max) = (self.min_lease, self.max_lease);
        if max < min {
            let allowed = format!("at least LEASEHOLD_MIN_LEASE_MS ({})", shown(min));
            return Err(InvalidSetting::new("LEASEHOLD_MAX_LEASE_MS", max, allowed));
        }
        if !(min..=max).contains(&self.lease) {
            let allowed = format!(
                "from LEASEHOLD_MIN_LEASE_MS ({}) to LEASEHOLD_MAX_LEASE_MS ({})",
                shown(min),
                shown(max)
            );
            return Err(InvalidSetting::new(
                "LEASEHOLD_LEASE_MS",
                self.lease,
                allowed,
            ));
        }
        if self.heartbeat >= self.lease {
            let allowed = format!("less than LEASEHOLD_LEASE_MS ({})", shown(self.lease));
            return Err(InvalidSetting::new(
                "LEASEHOLD_HEARTBEAT_MS",
                self.heartbeat,
                allowed,
            ));
        }
        Ok(LeaseRules {
            default_ms: as_millis(self.lease),
            min_ms: as_millis(min),
            max_ms: as_millis(max),
            heartbeat_ms: as_millis(self.heartbeat),
        })
    }

    /// How often to sweep; `None` where others do.
    pub fn sweep_interval(&self) -> Option<Duration> {
        Some(self.sweep_interval).filter(|interval| !interval.is_zero())
    }
}
