//! The only module that talks to Postgres: one file per operation, each a call of one SQL function.

mod changes;
mod connections;
mod departures;
mod disconnect;
mod error;
mod heartbeat;
mod held;
mod hints;
mod history;
mod join;
mod leave;
mod list;
mod migrate;
mod pool;
mod purge;
mod remove;
mod retry;
mod rooms;
mod state;
mod sweep;
mod verify;

use chrono::{DateTime, Utc};
use connections::Connections;

pub use changes::{Change, Changes, ChangesOutcome, InvalidPosition, Position};
pub use departures::{Closing, Departure, Departures, DeparturesQuery};
pub use disconnect::{Disconnect, DisconnectOutcome};
pub use error::StoreError;
pub use heartbeat::{Heartbeat, HeartbeatOutcome};
pub use hints::{Heard, HintListener, Hints};
pub use history::{JoinPlace, Lifetime, PastSession, Period};
pub use join::{IfPresent, Join, JoinLimits, JoinOutcome, Joined, ListedJoinOutcome};
pub use leave::{Leave, LeaveOutcome};
pub use list::{Participant, Participants, RoomHead, Session};
pub use migrate::{Applied, MigrateError, Migrations, UnfitSchema};
pub use pool::DatabaseSettings;
pub use purge::PurgeBatch;
pub use remove::{Removal, RemovalOutcome};
pub use retry::retry;
pub use rooms::{RoomSummary, Whereabouts};
pub use state::{Census, Readiness};
pub use sweep::SweepBatch;
pub use verify::Violation;

/// The database, as the rest of the program knows it.
#[derive(Debug, Clone)]
pub struct Store {
    /// Connections whose commits survive a crash of Postgres.
    durable: Connections,
    /// Connections with `synchronous_commit = off`, for heartbeats alone: a crash
    /// of Postgres may lose the last fraction of a second of them.
    relaxed: Connections,
    now: Option<DateTime<Utc>>,
}

impl Store {
    /// The same database at a fixed instant: the whole of fake time. Production leaves the clock to Postgres.
    pub fn at(&self, instant: DateTime<Utc>) -> Self {
        Self {
            now: Some(instant),
            ..self.clone()
        }
    }
}
