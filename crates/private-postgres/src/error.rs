use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// The oldest major version of PostgreSQL that is used.
pub const OLDEST_MAJOR: u32 = 14;

/// Why a private cluster could not be started, kept or stopped. Each says what
/// is the case and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// No usable `initdb` and `postgres` on this machine.
    #[error(
        "no PostgreSQL server programs of version {OLDEST_MAJOR} or later (found: {found}); \
         install them (Debian, Ubuntu: `apt install postgresql`; macOS: `brew install postgresql@17`), \
         or put the directory with `initdb` and `postgres` on PATH"
    )]
    ProgramsMissing {
        /// The versions that were found and are too old, or "none".
        found: String,
    },

    /// The data was made by a major version that is not installed here.
    #[error(
        "the data in {} was made by PostgreSQL {data_major}, and only {found} is installed; \
         install PostgreSQL {data_major}, or choose another data directory, or remove this one \
         if its data may go", data.display()
    )]
    OtherVersion {
        /// PostgreSQL's data directory.
        data: PathBuf,
        /// The major version in its `PG_VERSION`.
        data_major: u32,
        /// The versions installed here.
        found: String,
    },

    /// Started by root, and there is no `postgres` user to run the server as.
    #[error(
        "PostgreSQL refuses to run as root, and this machine has no user named `postgres` to run \
         it as; start as another user, or create one with `useradd --system postgres`"
    )]
    NoServerUser,

    /// The `postgres` user may not enter a directory above the data.
    #[error(
        "the user `postgres`, which the server runs as when root starts it, may not enter {}; \
         choose a data directory elsewhere, such as /var/lib/leasehold", ancestor.display()
    )]
    Closed {
        /// The topmost directory that is closed to it.
        ancestor: PathBuf,
    },

    /// A directory that should be ours was made by somebody else.
    #[error(
        "{} is not a directory that belongs to this user (it belongs to user id {owner}); \
         remove it, start as that user, or choose another data directory", path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
    },

    /// Another process supervises a cluster in the same directory.
    #[error(
        "{} is in use by another process (pid {holder}); stop that one, or choose another data \
         directory", path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The pid of the process that holds the lock, or "unknown".
        holder: String,
    },

    /// `postmaster.pid` was left by, or belongs to, another server.
    #[error(
        "process {pid} holds {}; if it is a PostgreSQL server left on this directory, stop it with \
         `kill -INT {pid}`, and if it is anything else, remove that file\n{log}", file.display()
    )]
    Held {
        /// The path of `postmaster.pid`.
        file: PathBuf,
        /// The pid it names.
        pid: u32,
        /// The last lines of the server's log.
        log: String,
    },

    /// `initdb` failed.
    #[error("initdb could not make a cluster in {} ({status})\n{output}", data.display())]
    Initdb {
        /// The directory it was given.
        data: PathBuf,
        /// How it ended.
        status: ExitStatus,
        /// The last lines it wrote.
        output: String,
    },

    /// The server ended though nobody had asked it to.
    #[error("PostgreSQL ended by itself ({status}); its log is {}\n{log}", file.display())]
    Exited {
        /// How it ended.
        status: ExitStatus,
        /// The path of its log.
        file: PathBuf,
        /// The last lines of its log.
        log: String,
    },

    /// The server did not become ready in time and was stopped.
    #[error(
        "PostgreSQL was not ready after {} s and was stopped; a long recovery needs no more than \
         another start, anything else is in its log, {}\n{log}", waited.as_secs(), file.display()
    )]
    NotReady {
        /// How long it was waited for.
        waited: Duration,
        /// The path of its log.
        file: PathBuf,
        /// The last lines of its log.
        log: String,
    },

    /// The server did not end when asked and was made to.
    #[error(
        "PostgreSQL did not stop within {} s and was killed; no committed data is lost, and the \
         next start recovers\n{log}", waited.as_secs()
    )]
    Forced {
        /// How long it was waited for.
        waited: Duration,
        /// The last lines of its log.
        log: String,
    },

    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as an infinitive: "create", "read".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl ClusterError {
    /// For `map_err`: says what was tried on which path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
