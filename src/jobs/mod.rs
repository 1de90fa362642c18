//! What runs on a schedule: steps that say what they did, apart from the loop that repeats them.

mod every;
mod purge;
mod sweep;
mod tidy;

pub use every::{Job, every};
pub use purge::{Purge, Purged};
pub use sweep::{Sweep, Swept};
pub use tidy::Tidy;
