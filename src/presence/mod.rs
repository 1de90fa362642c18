//! What the service can be asked: one object, with a method for each question.

mod alone;
mod figures;
mod gathered;
mod history;
mod measured;
mod membership;
mod moderation;
mod pulse;
mod service;
mod webhooks;

pub use gathered::ListedJoin;
pub use pulse::PulseSettings;
pub use service::{Presence, PresenceSettings};
