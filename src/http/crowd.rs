//! How many connections there are, and how there is always a place for the next.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix_web::dev::ServiceResponse;
use actix_web::http::{ConnectionType, StatusCode};

/// A crowd that comes and goes is in the log once in so long.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The connections that are open.
pub(super) struct Crowd {
    open: AtomicUsize,
    most: usize,
    logged: Mutex<Option<Instant>>,
}

/// A connection's place among them, given back when dropped.
pub(super) struct Place(Arc<Crowd>);

impl Crowd {
    /// Of so many at the most.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            open: AtomicUsize::new(0),
            most,
            logged: Mutex::default(),
        })
    }

    pub(super) fn enter(self: &Arc<Self>) -> Place {
        self.open.fetch_add(1, Ordering::Relaxed);
        if self.is_dense() {
            self.log();
        }
        Place(Arc::clone(self))
    }

    /// Whether no more than an eighth of the places is free.
    fn is_dense(&self) -> bool {
        self.open.load(Ordering::Relaxed) > self.most - self.most / 8
    }

    /// In a crowd no connection is kept for a next request, which may come late.
    pub(super) fn make_room<B>(&self, response: &mut ServiceResponse<B>) {
        if self.is_dense() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let head = response.response_mut().head_mut();
            head.set_connection_type(ConnectionType::Close);
        }
    }

    fn log(&self) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|last| last.elapsed() > LOG_EVERY) {
            *logged = Some(Instant::now());
            tracing::warn!(
                most = self.most,
                "there are nearly as many connections as there may be: each is closed after its answer"
            );
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
