//! What runs on a schedule: a step that says what it did, apart from the loop that repeats it.

mod purge;
mod sweep;

pub use purge::{Purge, Purged};
pub use sweep::{Sweep, Swept};
