//! How often one client may ask: so many requests a second, and a burst beyond.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::domain::UserId;
use crate::http::ApiError;

/// After so many requests, clients that have been quiet are forgotten.
const TIDY_EVERY: u32 = 10_000;

/// What one client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSettings {
    /// Requests a second.
    pub per_second: NonZeroU32,
    /// Requests at once after a pause.
    pub burst: NonZeroU32,
}

/// Each client's account, by the subject of its token, or else by its address.
pub struct RateLimit {
    subjects: Accounts<UserId>,
    addresses: Accounts<Option<IpAddr>>,
}

impl RateLimit {
    pub fn new(settings: RateSettings) -> Self {
        Self {
            subjects: Accounts::new(settings),
            addresses: Accounts::new(settings),
        }
    }

    /// # Errors
    /// 429
    pub fn admit_subject(&self, subject: &UserId) -> Result<(), ApiError> {
        self.subjects.admit(subject)
    }

    /// # Errors
    /// 429
    pub fn admit_address(&self, address: Option<IpAddr>) -> Result<(), ApiError> {
        self.addresses.admit(&address)
    }
}

struct Accounts<K: Hash + Eq + Clone> {
    limiter: DefaultKeyedRateLimiter<K>,
    since_tidied: AtomicU32,
}

impl<K: Hash + Eq + Clone> Accounts<K> {
    fn new(settings: RateSettings) -> Self {
        let quota = Quota::per_second(settings.per_second).allow_burst(settings.burst);
        Self {
            limiter: RateLimiter::keyed(quota),
            since_tidied: AtomicU32::new(0),
        }
    }

    fn admit(&self, client: &K) -> Result<(), ApiError> {
        if self.since_tidied.fetch_add(1, Ordering::Relaxed) >= TIDY_EVERY {
            self.since_tidied.store(0, Ordering::Relaxed);
            self.limiter.retain_recent();
        }
        self.limiter.check_key(client).map_err(|refusal| {
            let wait = refusal.wait_time_from(DefaultClock::default().now());
            ApiError::rate_limited(wait.as_secs() + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Code;

    #[test]
    fn one_client_exhausting_its_burst_does_not_touch_another() {
        let limit = RateLimit::new(RateSettings {
            per_second: NonZeroU32::MIN,
            burst: NonZeroU32::new(2).unwrap(),
        });
        let (alice, bob) = (
            UserId::parse("alice").unwrap(),
            UserId::parse("bob").unwrap(),
        );
        assert!(limit.admit_subject(&alice).is_ok() && limit.admit_subject(&alice).is_ok());
        assert_eq!(
            limit.admit_subject(&alice).unwrap_err().code(),
            Code::RateLimited
        );
        assert!(limit.admit_subject(&bob).is_ok());
        assert!(limit.admit_address(None).is_ok());
    }
}
