//! What the tests stand on: a database each, a service on a free port, and time that tests move.

mod app;
mod caller;
pub mod curl;
mod database;
mod document;
mod events;
mod gate;
mod load;
mod proxy;
pub mod psql;
pub mod race;
mod reader;
mod receiver;
mod server;
mod service;
pub mod signature;
mod socket;
mod token;

pub use app::{App, SECRET, serve_args};
pub use caller::{Caller, guarded};
pub use database::Database;
pub use document::{Document, Example};
pub use events::{Events, Picture};
pub use gate::Gate;
pub use load::{Acknowledged, Load};
pub use proxy::Proxy;
pub use reader::Reader;
pub use receiver::{Delivery, Receiver, Reply};
pub use service::{Service, command, run, text};
pub use socket::Socket;
pub use token::mint;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use leasehold::domain::{
    DeviceId, Heartbeat, IfPresent, Join, Lease, Retention, RoomId, SessionKey, SessionOutcome,
    UserId,
};
use leasehold::store::{PurgeBatch, Store, StoreError};

/// An instant of fake time, in milliseconds after an arbitrary start.
pub fn t(ms: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::milliseconds(ms)
}

pub fn room(id: &str) -> RoomId {
    RoomId::parse(id).unwrap()
}

fn device(name: &str) -> DeviceId {
    if name.is_empty() {
        DeviceId::unnamed()
    } else {
        DeviceId::parse(name).unwrap()
    }
}

/// A join with a lease of 15 s on the unnamed device.
pub fn join(room_id: &str, user_id: &str) -> Join {
    Join {
        room_id: room(room_id),
        user_id: UserId::parse(user_id).unwrap(),
        device_id: DeviceId::unnamed(),
        lease: lease(15_000),
        metadata: None,
        info: None,
        join_id: None,
        capacity: None,
        cursor: None,
        if_present: IfPresent::Replace,
    }
}

pub fn join_on(room_id: &str, user_id: &str, device_id: &str) -> Join {
    Join {
        device_id: device(device_id),
        ..join(room_id, user_id)
    }
}

/// A session's key.
pub fn session(room_id: &str, user_id: &str, device_id: &str, epoch: i64) -> SessionKey {
    SessionKey {
        room_id: room(room_id),
        user_id: UserId::parse(user_id).unwrap(),
        device_id: device(device_id),
        epoch,
    }
}

/// A heartbeat that changes nothing else.
pub fn beat(room_id: &str, user_id: &str, device_id: &str, epoch: i64) -> Heartbeat {
    Heartbeat::bare(session(room_id, user_id, device_id, epoch))
}

/// A lease of this length, renewed three times in it.
pub fn lease(length_ms: u32) -> Lease {
    Lease {
        length_ms,
        heartbeat_ms: (length_ms / 3).max(1),
    }
}

/// Heartbeats of either kind, in their order, where nobody holds a session.
pub trait Renew {
    async fn renew(&self, batch: &[Heartbeat]) -> Result<Vec<SessionOutcome>, StoreError>;
}

impl Renew for Store {
    async fn renew(&self, batch: &[Heartbeat]) -> Result<Vec<SessionOutcome>, StoreError> {
        let mut outcomes = Vec::new();
        for run in batch.chunk_by(|a, b| a.lease.is_some() == b.lease.is_some()) {
            let resizes: Vec<(Heartbeat, Lease)> = run
                .iter()
                .filter_map(|h| Some((h.clone(), h.lease?)))
                .collect();
            let answers = match resizes.is_empty() {
                true => self.heartbeat(run).await?,
                false => self.resize(&resizes).await?,
            };
            let answers = answers.into_iter();
            outcomes.extend(answers.map(|o| o.expect("another transaction holds a session")));
        }
        Ok(outcomes)
    }
}

/// Purges until nothing is due; what it did in all. A transaction of another database that has just ended
/// cannot be placed, and holds the newest events back for a moment: so it is asked several times.
pub async fn purge_settled(store: &Store, older_than: Duration) -> PurgeBatch {
    let mut all = store
        .purge(Retention::of(older_than), 10_000)
        .await
        .unwrap();
    for _ in 0..5 {
        let batch = store
            .purge(Retention::of(older_than), 10_000)
            .await
            .unwrap();
        all.ran &= batch.ran;
        all.finished = batch.finished;
        all.generations_purged += batch.generations_purged;
        all.events_purged += batch.events_purged;
        all.blocks_purged += batch.blocks_purged;
    }
    all
}
