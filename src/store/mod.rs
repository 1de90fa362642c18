//! The only module that talks to Postgres: one file per operation, each a call of one SQL function.

mod beat;
mod changes;
mod connector;
mod departures;
mod disconnect;
mod error;
mod handle;
mod health;
mod heartbeat;
mod hints;
mod history;
mod join;
mod keys;
mod leave;
mod migrate;
mod participants;
mod pool;
mod purge;
mod remove;
mod retry;
mod rooms;
mod row;
mod settings;
mod sweep;
mod verify;

pub use error::StoreError;
pub use handle::Store;
pub use hints::{Heard, HintListener, Hints};
pub use join::ListedJoinOutcome;
pub use migrate::{Applied, MigrateError, Migrations, UnfitSchema};
pub use purge::PurgeBatch;
pub use retry::retry;
pub use row::Row;
pub use settings::DatabaseSettings;
pub use sweep::SweepBatch;
pub use verify::Violation;
