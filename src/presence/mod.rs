//! What the service can be asked: one object, with a method for each question.

mod alone;
mod gathered;
mod history;
mod membership;
mod service;

pub use gathered::ListedJoin;
pub use service::{Presence, PresenceSettings};
