//! How often one client may ask: so many requests a second, and a burst beyond.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::http::ApiError;
use crate::stream::Client;

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

/// Each client's account.
pub(crate) struct RateLimit {
    clients: DefaultKeyedRateLimiter<Client>,
    since_tidied: AtomicU32,
}

impl RateLimit {
    pub(crate) fn new(settings: RateSettings) -> Self {
        let quota = Quota::per_second(settings.per_second).allow_burst(settings.burst);
        Self {
            clients: RateLimiter::keyed(quota),
            since_tidied: AtomicU32::new(0),
        }
    }

    /// # Errors
    /// 429
    pub(crate) fn admit(&self, client: &Client) -> Result<(), ApiError> {
        // The service's own back end speaks for many.
        if *client == Client::Server {
            return Ok(());
        }
        if self.since_tidied.fetch_add(1, Ordering::Relaxed) >= TIDY_EVERY {
            self.since_tidied.store(0, Ordering::Relaxed);
            self.clients.retain_recent();
        }
        self.clients.check_key(client).map_err(|refusal| {
            let wait = refusal.wait_time_from(DefaultClock::default().now());
            ApiError::rate_limited(wait.as_secs() + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::UserId;
    use crate::wire::Code;

    #[test]
    fn one_client_exhausting_its_burst_does_not_touch_another() {
        let limit = RateLimit::new(RateSettings {
            per_second: NonZeroU32::MIN,
            burst: NonZeroU32::new(2).unwrap(),
        });
        let subject = |user| Client::Subject(UserId::parse(user).unwrap());
        let (alice, bob) = (subject("alice"), subject("bob"));
        assert!(limit.admit(&alice).is_ok() && limit.admit(&alice).is_ok());
        assert_eq!(limit.admit(&alice).unwrap_err().code(), Code::RateLimited);
        assert!(limit.admit(&bob).is_ok());
        assert!(limit.admit(&Client::Address(None)).is_ok());
        for _ in 0..10 {
            assert!(limit.admit(&Client::Server).is_ok());
        }
    }
}
