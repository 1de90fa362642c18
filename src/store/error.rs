//! What can go wrong with the database, told apart by what a caller can do about it.

use super::failures::kind;
use crate::domain::{InvalidId, SessionOutcome, UnknownWord};
use crate::telemetry::DatabaseErrorKind as Kind;

/// An operation that did not take effect, or of which that is not known.
///
/// The cause is part of the sentence and not a source, or a chain of causes would say it twice.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address of the database cannot be read; says which setting has it.
    #[error("{0} is not a Postgres address; write postgres://user:password@host:5432/database")]
    BadUrl(String),
    /// No connection, no answer in time, or a server that is starting or stopping: try again later.
    #[error("the database is not available: {0}")]
    Unavailable(sqlx::Error),
    /// Postgres chose this transaction to give way to another: nothing happened, try again at once.
    #[error("the database asked to try again: {0}")]
    Conflict(sqlx::Error),
    /// Another transaction held what this needs for too long: nothing happened.
    #[error("another transaction holds what this would change, and did not end in time")]
    Locked,
    /// The same while a process starts; says for what it waited, and who holds it.
    #[error("gave up waiting for {0}; end that transaction, or try again when it has ended")]
    WaitedInVain(String),
    /// The server only reads: a standby, or a primary that was demoted.
    #[error("the database only reads: {0}")]
    ReadOnly(sqlx::Error),
    /// A value that Postgres cannot store, for a reason that was not foreseen here.
    #[error("the database refuses a value: {0}")]
    Rejected(sqlx::Error),
    /// The schema is not the one this program was built for.
    #[error("the database does not have the schema of this program; run `leasehold migrate`: {0}")]
    Schema(sqlx::Error),
    /// The room is another database's, or about to be: nothing can be said of it here.
    #[error("another database has the room; leasehold cell show says which slots this one owns")]
    Misdirected,
    /// A step with slots that cannot be taken; says what to do.
    #[error("{0}")]
    CellRefused(String),
    /// A table of ours that Citus has spread over several servers.
    #[error(
        "Citus has distributed {0}, where presence would be wrong in silence; take every table of the schema back with \
         undistribute_table, and spread rooms over databases of their own instead (docs/scaling.md)"
    )]
    Distributed(String),
    /// An answer that this program cannot read.
    #[error("unexpected answer of the database: {0}")]
    Unexpected(String),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match kind(&error) {
            Kind::Serialization => Self::Conflict(error),
            Kind::Lock => Self::Locked,
            Kind::ReadOnly => Self::ReadOnly(error),
            Kind::Schema => Self::Schema(error),
            Kind::Rejected => Self::Rejected(error),
            Kind::Timeout | Kind::Connection | Kind::Resources | Kind::Other => {
                Self::Unavailable(error)
            }
        }
    }
}

impl StoreError {
    /// What the metrics count it as.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Unavailable(error)
            | Self::Conflict(error)
            | Self::ReadOnly(error)
            | Self::Rejected(error)
            | Self::Schema(error) => kind(error),
            Self::Locked | Self::WaitedInVain(_) => Kind::Lock,
            Self::BadUrl(_)
            | Self::Distributed(_)
            | Self::Misdirected
            | Self::CellRefused(_)
            | Self::Unexpected(_) => Kind::Other,
        }
    }
}

impl From<InvalidId> for StoreError {
    fn from(error: InvalidId) -> Self {
        Self::Unexpected(error.to_string())
    }
}

impl From<UnknownWord> for StoreError {
    fn from(error: UnknownWord) -> Self {
        Self::Unexpected(error.to_string())
    }
}

/// A column that an SQL function promises to fill.
pub(super) fn promised<T>(value: Option<T>, column: &str) -> Result<T, StoreError> {
    value.ok_or_else(|| StoreError::Unexpected(format!("{column} is null")))
}

/// A word of a closed set, or the one that stands for success.
pub(super) fn outcome<W>(word: &str, success: &str) -> Result<Option<W>, StoreError>
where
    W: std::str::FromStr<Err = UnknownWord>,
{
    if word == success {
        return Ok(None);
    }
    Ok(Some(word.parse()?))
}

/// The same of a call that passes over what another transaction holds: `None` for that.
pub(super) fn skipping_outcomes(
    words: &[String],
    success: &str,
) -> Result<Vec<Option<SessionOutcome>>, StoreError> {
    words
        .iter()
        .map(|word| match word.as_str() {
            "busy" => Ok(None),
            word => Ok(Some(outcome(word, success)?.map_or(Ok(()), Err))),
        })
        .collect()
}

/// For each session the word that stands for success, or why it is stale.
pub(super) fn session_outcomes(
    words: &[String],
    success: &str,
) -> Result<Vec<SessionOutcome>, StoreError> {
    words
        .iter()
        .map(|word| Ok(outcome(word, success)?.map_or(Ok(()), Err)))
        .collect()
}
