//! Where the database is, and how much of it the service uses.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use secrecy::SecretString;

use super::value::{millis, whole};
use crate::store::{DatabaseSettings, DatabaseUrl};

/// A generation that was open for years is purged in one piece.
const PURGE_TIMEOUT: Duration = Duration::from_secs(600);

/// Where the database is: what every command needs.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// The Postgres database: postgres://user:password@host:5432/database
    #[arg(
        long,
        env = "DATABASE_URL",
        hide_env_values = true,
        required_unless_present = "database_url_file",
        conflicts_with = "database_url_file"
    )]
    pub database_url: Option<SecretString>,

    /// A file with that address instead; read again for each new connection
    #[arg(long, env = "DATABASE_URL_FILE")]
    pub database_url_file: Option<PathBuf>,
}

impl DatabaseArgs {
    /// Where it is.
    pub fn url(&self) -> DatabaseUrl {
        match (&self.database_url_file, &self.database_url) {
            (Some(path), _) => DatabaseUrl::File(path.clone()),
            (None, Some(url)) => DatabaseUrl::Given(url.clone()),
            // The command line is refused without either.
            (None, None) => "".into(),
        }
    }

    /// For a command that runs once and then ends.
    pub fn once(&self) -> DatabaseSettings {
        DatabaseSettings {
            url: self.url(),
            connections: 2,
            held_connections: 1,
            timeout: Duration::from_secs(60),
            serves: false,
        }
    }
}

/// How many connections there may be, and how long anything waits for them.
#[derive(Debug, Clone, Args)]
pub struct ConnectionArgs {
    /// The longest that a request waits for the database
    #[arg(long = "timeout-ms", env = "LEASEHOLD_TIMEOUT_MS", default_value = "5s",
          value_parser = millis("LEASEHOLD_TIMEOUT_MS", 100..=60_000))]
    pub timeout: Duration,

    /// Connections to Postgres; heartbeats may use as many again
    #[arg(long, env = "LEASEHOLD_DB_CONNECTIONS", default_value = "10",
          value_parser = whole::<u32>("LEASEHOLD_DB_CONNECTIONS", 1..=1_000))]
    pub db_connections: u32,

    /// The most rooms or sessions held by other transactions that are waited for at a time, a connection each
    #[arg(long, env = "LEASEHOLD_HELD_CONNECTIONS", default_value = "4",
          value_parser = whole::<u32>("LEASEHOLD_HELD_CONNECTIONS", 1..=1_000))]
    pub held_connections: u32,
}

/// For all endpoints together.
const WEBHOOK_CONNECTIONS: u32 = 4;

/// Connections of the hints, of the purge and of the webhooks.
const BESIDE: u32 = 12;

impl ConnectionArgs {
    /// The most that serving opens.
    pub fn all(&self) -> usize {
        (2 * self.db_connections + self.held_connections + BESIDE) as usize
    }

    /// For serving.
    pub fn serving(&self, url: DatabaseUrl) -> DatabaseSettings {
        DatabaseSettings {
            url,
            connections: self.db_connections,
            held_connections: self.held_connections,
            timeout: self.timeout,
            serves: true,
        }
    }

    /// For the webhooks, whose steps are short and delay no request.
    pub fn delivering(&self, url: DatabaseUrl) -> DatabaseSettings {
        DatabaseSettings {
            connections: WEBHOOK_CONNECTIONS,
            held_connections: 1,
            ..self.serving(url)
        }
    }

    /// For the purge, which may take longer than a request would wait.
    pub fn purging(&self, url: DatabaseUrl) -> DatabaseSettings {
        DatabaseSettings {
            url,
            connections: 1,
            held_connections: 1,
            timeout: PURGE_TIMEOUT,
            serves: true,
        }
    }
}
