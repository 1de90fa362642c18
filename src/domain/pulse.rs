//! The sign that somebody serves, by which the lease clock runs.

use std::time::Duration;

/// What a beat says of the instance that sends it.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    /// How long clients take to notice that an instance serves again, in milliseconds: the
    /// interval of a heartbeat.
    pub heartbeat_ms: u32,
    /// The longest lease that is granted, in milliseconds.
    pub longest_lease_ms: u32,
    /// The longest that one outage stops the lease clock; zero for not at all.
    pub max_pause: Duration,
    /// A number that no other instance has.
    pub instance: i64,
    /// Since this instance's own last beat; `None` for its first.
    pub since: Option<Duration>,
}

/// What a beat found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beaten {
    /// It came after a gap.
    pub was_outage: bool,
    /// By how many milliseconds it stopped the lease clock; negative where the database's clock
    /// stepped back.
    pub paused_ms: i64,
}
