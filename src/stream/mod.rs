//! Who is here, the moment it changes.
//!
//! Level-triggered: a room that has subscribers has one watcher. Woken by a
//! change of this instance, a hint of another, the end of a lease or a slow
//! poll, it reads the room once for all of them and sends the difference to
//! what they know. Nothing depends on every change having been seen.

mod batch;
mod client;
mod difference;
mod live;
mod lobby;
mod picture;
mod rate;
mod subscriptions;
mod watched;
mod watcher;

pub use batch::Batch;
pub use client::Client;
pub use live::{Live, NoSeat, Subscription};
pub use subscriptions::{MAX_ROOMS, News, Subscriptions};
pub use watched::LiveSettings;
