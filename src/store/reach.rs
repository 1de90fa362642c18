//! How far a failure reaches: what is left of a connection, and of those beside it.

use sqlx::Error;

/// How far a failure reaches.
pub(super) enum Reach {
    /// Postgres refused it and took it back.
    Call,
    /// What became of this one is not known.
    Connection,
    /// It is gone, silent, stopping, or does not write any more.
    Server,
}

impl Reach {
    pub(super) fn of(error: &Error) -> Self {
        let Some(code) = error.as_database_error().and_then(|error| error.code()) else {
            return Self::Server;
        };
        match &*code {
            // A lock that was not granted, a transaction that gives way to another, a time limit, a value.
            "55P03" | "40001" | "40P01" | "57014" => Self::Call,
            code if ["22", "23", "54"].contains(&&code[..2]) => Self::Call,
            // It only reads; it is stopping or starting; connections break.
            "25006" | "57P01" | "57P02" | "57P03" => Self::Server,
            code if code.starts_with("08") => Self::Server,
            _ => Self::Connection,
        }
    }
}
