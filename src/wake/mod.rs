//! Who looks again when a room changes: the watchers of this instance, the other instances, the feed.
//!
//! Nothing here says what changed, and nothing is lost by missing a wake: a
//! watcher reads the room, and reads it now and then without being woken.

mod hinting;
mod wakes;

pub use hinting::Hinting;
pub use wakes::{Bell, Wakes};
