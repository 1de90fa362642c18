//! The settings of `leasehold serve`: flags, each with an environment variable, refused at start where wrong.

mod auth;
mod edge;
mod purge;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use secrecy::SecretString;
use tracing_subscriber::EnvFilter;

pub use auth::AuthArgs;
pub use edge::EdgeArgs;
pub use purge::{PurgeArgs, age};

use crate::coalesce;
use crate::domain::JoinLimits;
use crate::domain::LeaseRules;
use crate::http::{BodyLimits, ServerSettings};
use crate::presence::PresenceSettings;
use crate::store::DatabaseSettings;
use crate::stream::LiveSettings;
use crate::telemetry::LogFormat;
use crate::wire::FieldRules;

/// A room that was open for years goes in one piece.
const PURGE_TIMEOUT: Duration = Duration::from_secs(600);

/// A whole number within a range; the error names the variable and what is allowed.
fn whole<N: FromStr + PartialOrd + std::fmt::Display + Copy + Send + Sync + 'static>(
    variable: &'static str,
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static {
    move |text| {
        text.parse()
            .ok()
            .filter(|n| range.contains(n))
            .ok_or_else(|| {
                format!(
                    "{variable} must be a whole number from {} to {}",
                    range.start(),
                    range.end()
                )
            })
    }
}

/// Where the database is: what every command needs.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// The Postgres database: postgres://user:password@host:5432/database
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: SecretString,
}

impl DatabaseArgs {
    /// For a command that runs once and then ends.
    pub fn once(&self) -> DatabaseSettings {
        DatabaseSettings {
            url: self.database_url.clone(),
            connections: 2,
            held_connections: 1,
            timeout: Duration::from_secs(60),
        }
    }
}

/// Everything else about serving.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, env = "LEASEHOLD_BIND", default_value = "127.0.0.1:3000", value_parser = bind)]
    pub bind: SocketAddr,

    /// The lease of a join that does not ask for one, in milliseconds
    #[arg(long, env = "LEASEHOLD_LEASE_MS", default_value = "15000",
          value_parser = whole::<u32>("LEASEHOLD_LEASE_MS", 1_000..=86_400_000))]
    pub lease_ms: u32,

    /// The shortest lease that a client may ask for, in milliseconds
    #[arg(long, env = "LEASEHOLD_MIN_LEASE_MS", default_value = "1000",
          value_parser = whole::<u32>("LEASEHOLD_MIN_LEASE_MS", 100..=86_400_000))]
    pub min_lease_ms: u32,

    /// The longest lease that a client may ask for, in milliseconds
    #[arg(long, env = "LEASEHOLD_MAX_LEASE_MS", default_value = "300000",
          value_parser = whole::<u32>("LEASEHOLD_MAX_LEASE_MS", 1_000..=86_400_000))]
    pub max_lease_ms: u32,

    /// How often a client with the default lease is to send a heartbeat, in milliseconds
    #[arg(long, env = "LEASEHOLD_HEARTBEAT_MS", default_value = "5000",
          value_parser = whole::<u32>("LEASEHOLD_HEARTBEAT_MS", 100..=86_400_000))]
    pub heartbeat_ms: u32,

    /// How often expired members are swept out of the tables, in milliseconds; 0 leaves it to others
    #[arg(long, env = "LEASEHOLD_SWEEP_INTERVAL_MS", default_value = "5000",
          value_parser = whole::<u32>("LEASEHOLD_SWEEP_INTERVAL_MS", 0..=3_600_000))]
    pub sweep_interval_ms: u32,

    /// The longest that a request waits for the database, in milliseconds
    #[arg(long, env = "LEASEHOLD_TIMEOUT_MS", default_value = "5000",
          value_parser = whole::<u32>("LEASEHOLD_TIMEOUT_MS", 100..=60_000))]
    pub timeout_ms: u32,

    /// Connections to Postgres; heartbeats may use as many again
    #[arg(long, env = "LEASEHOLD_DB_CONNECTIONS", default_value = "10",
          value_parser = whole::<u32>("LEASEHOLD_DB_CONNECTIONS", 1..=1_000))]
    pub db_connections: u32,

    /// Threads that serve HTTP; 0 means one per core
    #[arg(long, env = "LEASEHOLD_WORKERS", default_value = "0",
          value_parser = whole::<usize>("LEASEHOLD_WORKERS", 0..=1_024))]
    pub workers: usize,

    /// The most batches of one kind under way at once: beyond the first where that one waits for a lock
    #[arg(long, env = "LEASEHOLD_LANES", default_value = "4",
          value_parser = whole::<usize>("LEASEHOLD_LANES", 1..=256))]
    pub lanes: usize,

    /// The most requests that one call of the database answers; 1 switches coalescing off
    #[arg(long, env = "LEASEHOLD_MAX_BATCH", default_value = "500",
          value_parser = whole::<usize>("LEASEHOLD_MAX_BATCH", 1..=10_000))]
    pub max_batch: usize,

    /// Requests of one kind that may wait before the next is refused with 503
    #[arg(long, env = "LEASEHOLD_QUEUE", default_value = "10000",
          value_parser = whole::<usize>("LEASEHOLD_QUEUE", 1..=1_000_000))]
    pub queue: usize,

    /// The most rooms or sessions held by other transactions that are waited for at a time, a connection each
    #[arg(long, env = "LEASEHOLD_HELD_CONNECTIONS", default_value = "4",
          value_parser = whole::<u32>("LEASEHOLD_HELD_CONNECTIONS", 1..=1_000))]
    pub held_connections: u32,

    /// The most persons in one room
    #[arg(long, env = "LEASEHOLD_MAX_MEMBERS_PER_ROOM", default_value = "10000",
          value_parser = whole::<i32>("LEASEHOLD_MAX_MEMBERS_PER_ROOM", 1..=i32::MAX))]
    pub max_members_per_room: i32,

    /// The most devices of one person in one room
    #[arg(long, env = "LEASEHOLD_MAX_DEVICES_PER_MEMBER", default_value = "16",
          value_parser = whole::<i32>("LEASEHOLD_MAX_DEVICES_PER_MEMBER", 1..=10_000))]
    pub max_devices_per_member: i32,

    /// The most rooms at a time; unlimited if left out
    #[arg(long, env = "LEASEHOLD_MAX_ROOMS",
          value_parser = whole::<i32>("LEASEHOLD_MAX_ROOMS", 1..=i32::MAX))]
    pub max_rooms: Option<i32>,

    /// The largest metadata, in bytes of JSON
    #[arg(long, env = "LEASEHOLD_MAX_METADATA_BYTES", default_value = "4096",
          value_parser = whole::<usize>("LEASEHOLD_MAX_METADATA_BYTES", 2..=1_048_576))]
    pub max_metadata_bytes: usize,

    /// The largest cursor, in bytes of JSON
    #[arg(long, env = "LEASEHOLD_MAX_CURSOR_BYTES", default_value = "1024",
          value_parser = whole::<usize>("LEASEHOLD_MAX_CURSOR_BYTES", 2..=1_048_576))]
    pub max_cursor_bytes: usize,

    /// The largest body of a request about one member, in bytes
    #[arg(long, env = "LEASEHOLD_MAX_BODY_BYTES", default_value = "16384",
          value_parser = whole::<usize>("LEASEHOLD_MAX_BODY_BYTES", 1_024..=16_777_216))]
    pub max_body_bytes: usize,

    /// The most items in one call of /heartbeats or /leaves
    #[arg(long, env = "LEASEHOLD_MAX_BATCH_ITEMS", default_value = "1000",
          value_parser = whole::<usize>("LEASEHOLD_MAX_BATCH_ITEMS", 1..=100_000))]
    pub max_batch_items: usize,

    /// The largest body of a call of /heartbeats or /leaves, in bytes
    #[arg(long, env = "LEASEHOLD_MAX_BATCH_BYTES", default_value = "4194304",
          value_parser = whole::<usize>("LEASEHOLD_MAX_BATCH_BYTES", 1_024..=1_073_741_824))]
    pub max_batch_bytes: usize,

    #[command(flatten)]
    pub edge: EdgeArgs,

    #[command(flatten)]
    pub auth: AuthArgs,

    #[command(flatten)]
    pub purge: PurgeArgs,
    /// How long a change can stay unseen by subscribers where no hint tells of it, in milliseconds
    #[arg(long, env = "LEASEHOLD_POLL_MS", default_value = "1000",
          value_parser = whole::<u32>("LEASEHOLD_POLL_MS", 50..=60_000))]
    pub poll_ms: u32,

    /// How often an event stream or socket without news shows that it lives, in milliseconds
    #[arg(long, env = "LEASEHOLD_KEEP_ALIVE_MS", default_value = "15000",
          value_parser = whole::<u32>("LEASEHOLD_KEEP_ALIVE_MS", 100..=300_000))]
    pub keep_alive_ms: u32,

    /// The most event streams and sockets that this instance serves at a time
    #[arg(long, env = "LEASEHOLD_MAX_SUBSCRIBERS", default_value = "20000",
          value_parser = whole::<usize>("LEASEHOLD_MAX_SUBSCRIBERS", 0..=1_000_000))]
    pub max_subscribers: usize,

    /// The most of them for one room
    #[arg(long, env = "LEASEHOLD_MAX_SUBSCRIBERS_PER_ROOM", default_value = "5000",
          value_parser = whole::<usize>("LEASEHOLD_MAX_SUBSCRIBERS_PER_ROOM", 0..=1_000_000))]
    pub max_subscribers_per_room: usize,

    /// Whether instances tell each other of changes by NOTIFY; without, the poll finds them
    #[arg(long, env = "LEASEHOLD_HINTS", default_value = "on", value_parser = on_or_off,
          action = clap::ArgAction::Set)]
    pub hints: bool,

    /// What is logged: error, warn, info, debug, or a filter like info,sqlx=debug
    #[arg(long, env = "LEASEHOLD_LOG", default_value = "info", value_parser = log_filter)]
    pub log: String,

    /// How a log line looks: human or json
    #[arg(long, env = "LEASEHOLD_LOG_FORMAT", default_value = "human", value_parser = log_format)]
    pub log_format: LogFormat,
}

fn bind(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "LEASEHOLD_BIND must be an address and a port, like 127.0.0.1:3000".to_owned())
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("LEASEHOLD_HINTS must be on or off".to_owned()),
    }
}

fn log_filter(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "LEASEHOLD_LOG must be a level or a filter like info,sqlx=debug: {error}"
        )),
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    <LogFormat as ValueEnum>::from_str(text, true)
        .map_err(|_| "LEASEHOLD_LOG_FORMAT must be one of human, json".to_owned())
}

/// Settings that are each fine and do not fit together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is {value}, but must be {allowed}")]
pub struct InvalidSetting {
    variable: &'static str,
    value: u32,
    allowed: String,
}

impl ServeArgs {
    /// The lease lengths, where they fit together.
    ///
    /// # Errors
    /// [`InvalidSetting`]
    pub fn leases(&self) -> Result<LeaseRules, InvalidSetting> {
        if self.max_lease_ms < self.min_lease_ms {
            return Err(InvalidSetting {
                variable: "LEASEHOLD_MAX_LEASE_MS",
                value: self.max_lease_ms,
                allowed: format!("at least LEASEHOLD_MIN_LEASE_MS ({})", self.min_lease_ms),
            });
        }
        if !(self.min_lease_ms..=self.max_lease_ms).contains(&self.lease_ms) {
            return Err(InvalidSetting {
                variable: "LEASEHOLD_LEASE_MS",
                value: self.lease_ms,
                allowed: format!(
                    "from LEASEHOLD_MIN_LEASE_MS ({}) to LEASEHOLD_MAX_LEASE_MS ({})",
                    self.min_lease_ms, self.max_lease_ms
                ),
            });
        }
        if self.heartbeat_ms >= self.lease_ms {
            return Err(InvalidSetting {
                variable: "LEASEHOLD_HEARTBEAT_MS",
                value: self.heartbeat_ms,
                allowed: format!("less than LEASEHOLD_LEASE_MS ({})", self.lease_ms),
            });
        }
        Ok(LeaseRules {
            default_ms: self.lease_ms,
            min_ms: self.min_lease_ms,
            max_ms: self.max_lease_ms,
            heartbeat_ms: self.heartbeat_ms,
        })
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.into())
    }

    /// How often to sweep; `None` where others do.
    pub fn sweep_interval(&self) -> Option<Duration> {
        (self.sweep_interval_ms > 0).then(|| Duration::from_millis(self.sweep_interval_ms.into()))
    }

    pub fn keep_alive(&self) -> Duration {
        Duration::from_millis(self.keep_alive_ms.into())
    }

    pub fn poll(&self) -> Duration {
        Duration::from_millis(self.poll_ms.into())
    }

    pub fn live(&self) -> LiveSettings {
        LiveSettings {
            poll: self.poll(),
            max_subscribers: self.max_subscribers,
            max_subscribers_per_room: self.max_subscribers_per_room,
        }
    }

    /// What the fields of a request may be.
    ///
    /// # Errors
    /// [`InvalidSetting`]
    pub fn field_rules(&self) -> Result<FieldRules, InvalidSetting> {
        Ok(FieldRules {
            leases: self.leases()?,
            max_metadata_bytes: self.max_metadata_bytes,
            max_cursor_bytes: self.max_cursor_bytes,
        })
    }

    /// How requests are gathered, and what joins are measured by.
    pub fn presence(&self) -> PresenceSettings {
        PresenceSettings {
            limits: JoinLimits {
                members_per_room: Some(self.max_members_per_room),
                devices_per_member: Some(self.max_devices_per_member),
                rooms: self.max_rooms,
            },
            coalescing: coalesce::Settings {
                lanes: self.lanes,
                max_batch: self.max_batch,
                queue: self.queue,
                timeout: self.timeout(),
            },
            held_rows: self.held_connections as usize,
        }
    }

    /// How the server listens.
    pub fn server(&self, shutdown_timeout: Duration) -> ServerSettings {
        ServerSettings {
            bind: self.bind,
            workers: self.workers,
            origins: self.edge.origins().into_iter().map(str::to_owned).collect(),
            bodies: BodyLimits {
                max_bytes: self.max_body_bytes,
                max_batch_bytes: self.max_batch_bytes,
                timeout: self.edge.request_timeout(),
            },
            shutdown_timeout,
        }
    }

    /// For the purge, which may take longer than a request would wait.
    pub fn purge_database(&self, url: SecretString) -> DatabaseSettings {
        DatabaseSettings {
            url,
            connections: 1,
            held_connections: 1,
            timeout: PURGE_TIMEOUT,
        }
    }

    pub fn database(&self, url: SecretString) -> DatabaseSettings {
        DatabaseSettings {
            url,
            connections: self.db_connections,
            held_connections: self.held_connections,
            timeout: self.timeout(),
        }
    }
}
