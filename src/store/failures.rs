//! What went wrong with the database, told apart by its SQLSTATE, and how often.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::Error;

use crate::telemetry::DatabaseErrorKind as Kind;

/// Which kind of failure it is.
pub(super) fn kind(error: &Error) -> Kind {
    if let Error::Io(error) = error
        && error.kind() == io::ErrorKind::TimedOut
    {
        return Kind::Timeout;
    }
    let Some(code) = error.as_database_error().and_then(|e| e.code()) else {
        return match error {
            Error::PoolTimedOut => Kind::Timeout,
            Error::Io(_)
            | Error::Tls(_)
            | Error::Protocol(_)
            | Error::PoolClosed
            | Error::WorkerCrashed => Kind::Connection,
            _ => Kind::Other,
        };
    };
    // https://www.postgresql.org/docs/current/errcodes-appendix.html
    match code.as_ref() {
        "40001" | "40P01" => Kind::Serialization,
        "55P03" => Kind::Lock,
        "25006" => Kind::ReadOnly,
        "57014" => Kind::Timeout,
        "3F000" | "42883" | "42P01" | "42703" => Kind::Schema,
        code => match code.get(..2) {
            // Does not answer, is not let in, or the server starts or stops.
            Some("08" | "28" | "57") => Kind::Connection,
            Some("53") => Kind::Resources,
            // 54: ids whose bytes do not fit into an index together.
            Some("22" | "23" | "54") => Kind::Rejected,
            _ => Kind::Other,
        },
    }
}

/// How often each kind came up.
#[derive(Default)]
pub(super) struct Failures([AtomicU64; Kind::ALL.len()]);

impl Failures {
    pub(super) fn count(&self, kind: Kind) {
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn so_far(&self, kind: Kind) -> u64 {
        self.0[kind as usize].load(Ordering::Relaxed)
    }
}
