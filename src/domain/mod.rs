//! The words of presence as types: ids, epochs, leases, reasons. Pure; no I/O.

mod id;
mod lease;
mod reason;

pub use id::{DeviceId, InvalidId, RoomId, UserId};
pub use lease::{LeaseRules, Status};
pub use reason::{JoinRefusal, StaleReason, UnknownWord};
